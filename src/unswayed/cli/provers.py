"""The model that is proved: label ballots, a network trained from them, a vote of groups, or the user's own."""

from typing import TYPE_CHECKING, Any

import torch

from unswayed.cli.common import note, working
from unswayed.cli.inputs import load_factory
from unswayed.cli.models import warn_before_training
from unswayed.cli.record import tell_threads
from unswayed.models.training.keeping import telling, threads_in_words
from unswayed.models.training.stepping import diary

if TYPE_CHECKING:
    from unswayed.cli.proving import ProvePlan

LABELS, TRAINED, HASHED = "label-ballots", "ballots", "hashed:"
FEW = 50  # validation nodes: the standard error of a share among them is .07
UNLIKE = "Known labels are linked to other labels more often than to their own, so each speaks for those it is met beside."
FLATTERED = "Everybody whose label is known is asked about, so what labels mean is read off them, and they are right more often than others would be; --nodes test says how often those are."


def make_model(plan: "ProvePlan") -> Any:
    """What is proved: label ballots, a network trained from them, a vote of groups, or the user's own."""
    if plan.model == LABELS:
        return _label_ballots(plan)
    if plan.model == TRAINED or plan.hashed:
        warn_before_training(plan)
        if plan.model == TRAINED and plan.dataset.task == "node" and len(plan.split.val) < FEW:
            note(
                f"Only {len(plan.split.val)} validation nodes choose the network, so chance has a say; compare with --model {LABELS}, "
                "which needs no training."
            )
        note(f"Training {plan.model} on {plan.dataset.name} ({plan.protocol}) …")
        if plan.precision is not None and plan.positive is not None:  # few choose badly
            truly = int((plan.dataset.labels[plan.split.val] == plan.positive).sum())
            note(
                f"{truly:,} of {len(plan.split.val):,} validation nodes, which choose, bear the flagged label."
            )
        with working("training") as progress, diary() as kept:
            told = telling(progress)
            model = _hashed(plan, told) if plan.hashed else _trained(plan, told)
        if getattr(model, "meaning", None) is not None:
            note(UNLIKE)
        return tell_threads(model, threads_in_words(plan.device, kept))
    model = load_factory(plan.model, plan.dataset)
    if plan.dataset.task == "node" and getattr(model, "frozen", None) is False:
        model.freeze(plan.dataset.graph, known=plan.known)
    return model


def _label_ballots(plan: "ProvePlan") -> Any:
    """Untrained, frozen; where like does not go with like, that is said and heeded, read off nobody who is asked about."""
    from unswayed.ballots.links import Links
    from unswayed.ballots.meaning import suited

    graph, known, asked = plan.dataset.graph, plan.known, plan.targets.ids
    others = known.index_fill(0, asked, -1)
    apart = bool((others >= 0).any())
    # where everybody is asked about nothing else is left to read; strangers' links never are
    gone, told = (asked, others) if apart else (asked[known[asked] < 0], known)
    ballots = suited(Links.of(graph).without(gone), told, plan.dataset.num_classes)
    if ballots.meaning is not None:
        note(UNLIKE if apart else f"{UNLIKE} {FLATTERED}")
    return ballots.freeze(graph, known=known)


def _trained(plan: "ProvePlan", progress: Any) -> Any:
    if plan.dataset.task == "graph":
        return _trained_on_graphs(plan, progress)
    from unswayed.models.training.ballot_settings import BallotSettings
    from unswayed.models.training.ballots import fit_ballots

    # what is presumed holds no link of theirs
    strangers = bool(torch.isin(plan.targets.ids, plan.split.test).all())
    asked: dict[str, Any] = {
        "attack_size": plan.attack_size,
        "voters": plan.voters,
        "presume": strangers,
    }
    settings = BallotSettings(**{name: value for name, value in asked.items() if value is not None})
    how = {"protocol": plan.protocol, "seed": plan.seed, "device": plan.device, "progress": progress}
    if plan.precision is not None:
        from unswayed.models.training.flags import FlagSettings, fit_flags

        assert plan.positive is not None
        flag = FlagSettings(network=settings)
        return fit_flags(
            plan.dataset, plan.split, precision=plan.precision, positive=plan.positive, settings=flag, **how
        ).cpu()  # fmt: skip
    return fit_ballots(plan.dataset, plan.split, settings=settings, **how).cpu()


def _trained_on_graphs(plan: "ProvePlan", progress: Any) -> Any:
    from unswayed.models.training.pairs import fit_pairs

    return fit_pairs(plan.dataset, plan.split, seed=plan.seed, device=plan.device, progress=progress)


def _hashed(plan: "ProvePlan", progress: Any) -> Any:
    from unswayed.models.training.hashed import GROUPS, fit_hashed

    return fit_hashed(
        plan.model.removeprefix(HASHED), plan.dataset, plan.split, groups=plan.groups or GROUPS,
        protocol=plan.protocol, seed=plan.seed, device=plan.device, progress=progress,
    ).cpu()  # fmt: skip
