"""The other loop: a model made of ballots + a threat → exact proofs, without noise, samples or alpha."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from unswayed.ballots.linear import linear_model
from unswayed.ballots.models import BallotModel
from unswayed.certificates.protocol import Certified
from unswayed.errors import InputError, Unsupported
from unswayed.naming import check_distinct, check_places
from unswayed.sampling.beforehand import check_columns, check_instance, check_surroundings
from unswayed.sampling.threats import Threat
from unswayed.spelling import spelled


@runtime_checkable
class Provable(Protocol):
    """A model that says by itself what can be proved of it."""

    def prove_under(self, threat: Threat) -> Certified:
        """Exact certificates, or a refusal that says why and what to do instead."""


# tried on models that cannot speak for themselves
READERS: list[Callable[[Any], Provable | None]] = [linear_model]


@spelled()
def prove(
    model: Any, threat: Threat, *, classes: Sequence[Any] | None = None, runner: Any = None
) -> Certified:
    """For every target its label and a proven size: exact where the model is a sum of ballots, a lower bound where it is a vote.

    `model` is a `BallotNetwork`, `LabelBallots`, `PairBallots`, `Hashed`, or a linear classifier of binary rows. A model with tables is
    frozen on the threat's graph if it is not yet. `classes` names the labels in the order of their numbers. With `runner`, a `RayRunner`,
    the sizes of nodes under `Row` and `AllPairs` are found on its cluster. What cannot be proved is refused with the reason.
    """
    if not isinstance(threat, Threat):
        raise InputError(
            f"The threat must be one of unswayed's, such as Row or AllPairs, not {type(threat).__name__}."
        )
    if not threat.undirected or threat.edge_function is not None:
        raise Unsupported(
            "Proofs are about undirected edges without attributes; poll and certify take these too."
        )
    check_surroundings()
    check_distinct(() if classes is None else classes)  # before anything slow
    known = provable(model)
    check_columns(model, threat)
    proofs = known.prove_under(threat) if runner is None else _proved_by(runner, known, threat)
    if classes is None:
        return proofs
    check_places(classes, proofs.about.class_names)
    return proofs.named(classes=classes)


def _proved_by(runner: Any, model: Provable, threat: Threat) -> Certified:
    """The same proofs, whose sizes a runner finds."""
    if not callable(getattr(runner, "sizes", None)):
        raise InputError(f"A proof takes a RayRunner or none, not {type(runner).__name__}.")
    if not isinstance(model, BallotModel):
        raise Unsupported(
            f"Only ballot models of nodes are proved on a cluster; leave the runner away for {type(model).__name__}."
        )
    return model.prove_under(threat, sizes=runner.sizes)


def provable(model: Any) -> Provable:
    """The model as something that can be proved; refused where its answer is not known to be a sum or a vote."""
    check_instance(model)
    if isinstance(model, Provable) and hasattr(type(model), "prove_under"):  # not one that it passes on
        return model
    for reader in READERS:
        if (found := reader(model)) is not None:
            return found
    raise Unsupported(
        f"{type(model).__name__} is not a sum of ballots, so nothing exact is known about it: smooth it (poll, then certify; on the command line "
        "certify), which takes any model; or Hashed(model) for a proof by voting; or train a BallotNetwork."
    )
