"""Choosing the noise for each target without spending confidence twice.

Each noise level makes its own smoothed classifier. For every target one level is chosen, once, before any attack, and the
promise is about the classifier of that level: **the level is frozen per target before the attack**. An attacker who may
change the graph cannot change the choice; whoever chooses anew on an attacked graph has no promise.

Two ways are sound. `best_of`: all certificates of a target hold together with confidence 1 minus the sum of their alphas,
so the best of them does. `chosen_on`: the level is chosen on votes of purpose "select", which share no noise with the
votes of purpose "certify", so the certificate keeps its own alpha.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unswayed.certificates import Certificates
from unswayed.errors import InputError
from unswayed.votes import Votes

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Score = Callable[[Certificates], npt.ArrayLike]


@dataclass(frozen=True, eq=False)
class Chosen:
    """For each target one of several certificates; it holds with confidence 1 − `alpha`, for the level in `choice`.

    `choice[t]` is the position in `certificates` of the level that target `t` is given for good.
    """

    certificates: tuple[Certificates, ...]
    choice: IntArray
    alpha: float

    def _pick(self, name: str) -> npt.NDArray[np.int64]:
        every = np.stack([getattr(certs, name) for certs in self.certificates])
        picked: IntArray = every[self.choice, np.arange(len(self.choice))]
        return picked

    @property
    def label(self) -> IntArray:
        """The label of each target's own smoothed classifier; −1 where it abstains."""
        return self._pick("label")

    @property
    def size(self) -> IntArray:
        """The certified size of each target's own smoothed classifier; −1 where it abstains."""
        return self._pick("size")

    @property
    def abstained(self) -> BoolArray:
        """Where nothing is promised."""
        return self.label < 0

    def __len__(self) -> int:
        return len(self.choice)

    def accuracy(self, truth: npt.ArrayLike, at: npt.ArrayLike) -> FloatArray:
        """Certified accuracy, as `Certificates.accuracy`, each target at its own level."""
        right = np.asarray(truth)
        if right.shape != self.choice.shape:
            raise InputError(f"There are {len(self)} targets but truth has shape {right.shape}.")
        good = np.where((self.label == right) & ~self.abstained, self.size, -1)
        shares: FloatArray = (good >= np.maximum(np.asarray(at), 0)[..., None]).mean(axis=-1)
        return shares

    def grid(self, adds: int, deletes: int) -> BoolArray:
        """bool[targets, adds+1, deletes+1], as `Certificates.grid`, each target at its own level."""
        every = np.stack([certs.grid(adds, deletes) for certs in self.certificates])
        picked: BoolArray = every[self.choice, np.arange(len(self.choice))]
        return picked


def best_of(certificates: Sequence[Certificates], *, by: Score | None = None) -> Chosen:
    """For each target the certificate of the largest size, at the sum of all alphas: certify each of B at alpha/B.

    `by` scores the certificates of a level, one number a target, where something else than the size should be largest.

    >>> from unswayed import Flip, Votes, certify
    >>> weak = Votes.from_counts([[990, 10], [999, 1]], Flip(beta=0.8), entries=50)
    >>> strong = Votes.from_counts([[900, 100], [999, 1]], Flip(beta=0.7), entries=50)
    >>> best = best_of([certify(votes, alpha=0.0005) for votes in (weak, strong)])
    >>> best.choice, best.size, best.alpha
    (array([0, 1]), array([2, 7]), 0.001)
    """
    _check(certificates)
    return Chosen(tuple(certificates), _best(certificates, by), sum(certs.alpha for certs in certificates))


def chosen_on(
    selection: Sequence[Certificates], certificates: Sequence[Certificates], *, by: Score | None = None
) -> Chosen:
    """For each target the level that looks best in `selection`, with its certificate from other votes at its own alpha.

    Position by position both must be of the same question, but for the purpose of the noise: "select" and "certify".
    """
    _check(selection)
    _check(certificates)
    if len(selection) != len(certificates):
        raise InputError("selection and certificates must list the same levels in the same order.")
    for one, other in zip(selection, certificates, strict=True):
        _check_purposes(one.votes, other.votes)
    return Chosen(tuple(certificates), _best(selection, by), max(certs.alpha for certs in certificates))


def _best(certificates: Sequence[Certificates], by: Score | None) -> IntArray:
    scores = [certs.size if by is None else np.asarray(by(certs)) for certs in certificates]
    best: IntArray = np.stack(scores).argmax(axis=0)
    return best


def _check(certificates: Sequence[Certificates]) -> None:
    if not certificates:
        raise InputError("There are no certificates to choose from.")
    first = certificates[0]
    for certs in certificates[1:]:
        same = np.array_equal(certs.targets, first.targets) and certs.votes.classes == first.votes.classes
        known = certs.votes.provenance.get("threat") == first.votes.provenance.get("threat")
        if not same or not known or certs.family != first.family:
            raise InputError("The certificates are not about the same targets of the same graph.")


def _check_purposes(selection: Votes, certifying: Votes) -> None:
    if selection.provenance.get("purpose") != "select" or certifying.provenance.get("purpose") != "certify":
        raise InputError(
            'Levels must be chosen on votes polled with purpose="select", apart from those that certify.'
        )
    if selection.noise != certifying.noise:
        raise InputError("selection and certificates must list the same levels in the same order.")
