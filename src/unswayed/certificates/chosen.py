"""Choosing the noise for each target without spending confidence twice.

Each noise level makes its own smoothed classifier. For every target one level is chosen, once, before any attack, and the
promise is about the classifier of that level: **the level is frozen per target before the attack**. An attacker who may
change the graph cannot change the choice; whoever chooses anew on an attacked graph has no promise.

Two ways are sound. `best_of`: all certificates of a target hold together with confidence 1 minus the sum of their alphas,
so the best of them does. `chosen_on`: the level is chosen on votes of purpose "select", which share no noise with the
votes of purpose "certify", so the certificate keeps its own alpha.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from unswayed.certificates import presenting
from unswayed.certificates.files import pack, unpack
from unswayed.certificates.levels import confidence_in_words, most_wrong
from unswayed.certificates.protocol import About, Certified, Column, Explanation, check_change
from unswayed.certificates.smoothed import Certificates
from unswayed.errors import InputError
from unswayed.votes import Votes

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Score = Callable[[Certificates], npt.ArrayLike]


@dataclass(frozen=True, eq=False)
class Chosen(Certified):
    """For each target one of several certificates; it holds with confidence 1 − `alpha`, for the level in `choice`.

    `choice[t]` is the position in `certificates` of the level that target `t` is given for good. `spent` is the probability
    of a wrong one: alpha, or more where the certificates chosen from hold with less.
    """

    certificates: tuple[Certificates, ...]
    choice: IntArray
    alpha: float
    spent: float

    kind = "chosen"

    @classmethod
    def of(cls, certificates: Sequence[Certificates], choice: IntArray, alpha: float, spent: float) -> Self:
        """Each target with the label and size of its own level."""
        label, size = (_pick([getattr(c, name) for c in certificates], choice) for name in ("label", "size"))
        return cls(label, size, certificates[0].about, tuple(certificates), choice, alpha, spent)

    @property
    def method(self) -> str:
        """Proven from votes under noise."""
        return "smoothed"

    @property
    def confidence(self) -> float:
        """1 − `spent`."""
        return 1 - self.spent

    @property
    def family(self) -> bool:
        """Whether all targets hold together."""
        return self.certificates[0].family

    def assurance(self) -> str:
        """The confidence of the choice."""
        if self.spent >= 1:
            return f"Without any confidence ({self.certificates[0].caveat})"
        return f"With confidence {confidence_in_words(self.spent)}, for {self.certificates[0].scope}"

    @property
    def doubtful(self) -> int:
        """At most so many are wrong, with 95%; with `family` none, with the stated confidence."""
        if self.family and self.spent < 1:
            return 0
        return most_wrong(self.spent, max(certs.together for certs in self.certificates), len(self))

    def sizes(self, change: str = "any") -> IntArray:
        """Each target at its own level."""
        return _pick([certs.sizes(check_change(change)) for certs in self.certificates], self.choice)

    def grid(self, adds: int, deletes: int) -> BoolArray:
        """bool[targets, adds+1, deletes+1], each target at its own level."""
        return _pick([certs.grid(adds, deletes) for certs in self.certificates], self.choice)

    def outcome(self, label: str) -> str:
        """No attack moves the smoothed classifier of the chosen level."""
        return self.certificates[0].outcome(label)

    def grounds(self, position: int) -> str:
        """Those of the chosen level."""
        return self.certificates[int(self.choice[position])].grounds(position)

    def tally(self, position: int) -> str:
        """That of the chosen level."""
        return self.certificates[int(self.choice[position])].tally(position)

    def terms(self) -> str:
        """The choice is frozen as well."""
        return f"{self.certificates[0].terms()} The level was chosen before any attack and stays."

    def evidence(self) -> tuple[Column, ...]:
        """The level, and its bounds."""
        every = [{column.name: column for column in certs.evidence()} for certs in self.certificates]
        picked = [
            replace(column, values=_pick([each[name].values for each in every], self.choice))
            for name, column in every[0].items()
        ]
        return (Column("choice", self.choice, "level", "which of the levels was chosen for it"), *picked)

    def reading(self) -> list[tuple[str, str]]:
        """The terms of the levels, and what the choice is."""
        levels = "; ".join(f"{i}: {certs.noise.words()}" for i, certs in enumerate(self.certificates))
        return [
            *self.certificates[0].reading()[1:],
            ("Level", f"Each {self.unit} has its own noise: {levels}."),
        ]

    def settings(self) -> dict[str, str]:
        """The settings of every level."""
        told = {"Confidence": self.assurance(), "Ceiling": f"K can reach at most {self.ceiling}"}
        for place, certs in enumerate(self.certificates):
            told |= {f"Level {place}: {name}": text for name, text in certs.settings().items()}
        return told

    def facts(self) -> dict[str, Any]:
        """The settings of every level, for machines."""
        return {"alpha": self.alpha, "family": self.family, "levels": [c.facts() for c in self.certificates]}

    def explanation(self, position: int) -> Explanation:
        """That of the chosen level."""
        level = int(self.choice[position])
        found = self.certificates[level].explanation(position)
        said = f"Its noise was chosen among {len(self.certificates)} before any attack: number {level}."
        return replace(
            found,
            statement=presenting.statement(self, position),
            sentences=(said, *found.sentences),
            facts={**found.facts, "choice": level},
        )

    @property
    def ceiling(self) -> int | None:
        """The largest ceiling of the levels."""
        return max(certs.ceiling or 0 for certs in self.certificates)

    @property
    def lead(self) -> FloatArray:
        """That of the chosen level."""
        return _pick([certs.lead for certs in self.certificates], self.choice)

    def take(self, index: IntArray, **parts: Any) -> Self:
        """Every level's certificates of these targets."""
        picked = tuple(certs.take(index) for certs in self.certificates)
        return super().take(index, certificates=picked, **parts)

    def named(self, *, targets: Any = None, classes: Any = None, nodes: Any = None) -> Self:
        """Every level is named alike."""
        levels = tuple(
            certs.named(targets=targets, classes=classes, nodes=nodes) for certs in self.certificates
        )
        return replace(super().named(targets=targets, classes=classes, nodes=nodes), certificates=levels)

    def arrays(self) -> dict[str, Any]:
        """Every level's arrays among ours."""
        arrays = dict(super().arrays())
        for place, certs in enumerate(self.certificates):
            arrays |= {f"level{place}.{name}": value for name, value in pack(certs)[1].items()}
        return arrays

    def header(self) -> dict[str, Any]:
        """Every level's header within ours."""
        return {**super().header(), "certificates": [pack(certs)[0] for certs in self.certificates]}

    @classmethod
    def restore(cls, about: About, arrays: Mapping[str, Any], header: Mapping[str, Any]) -> Self:
        """The levels are put together first."""
        levels = []
        for place, packed in enumerate(header["certificates"]):
            start = f"level{place}."
            inside = {name[len(start) :]: value for name, value in arrays.items() if name.startswith(start)}
            levels.append(unpack(packed, inside))
        own = {name: value for name, value in arrays.items() if not name.startswith("level")}
        return super().restore(about, own, {**header, "certificates": tuple(levels)})


def _pick(every: Sequence[npt.NDArray[Any]], choice: IntArray) -> npt.NDArray[Any]:
    """Of one array for each level, each target's own."""
    picked: npt.NDArray[Any] = np.stack(every)[choice, np.arange(len(choice))]
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
    spent = min(sum(certs.spent for certs in certificates), 1.0)
    return Chosen.of(certificates, _best(certificates, by), sum(certs.alpha for certs in certificates), spent)


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
    alpha, spent = (max(getattr(certs, name) for certs in certificates) for name in ("alpha", "spent"))
    return Chosen.of(certificates, _best(selection, by), alpha, spent)


def _best(certificates: Sequence[Certificates], by: Score | None) -> IntArray:
    scores = [certs.size if by is None else np.asarray(by(certs)) for certs in certificates]
    best: IntArray = np.stack(scores).argmax(axis=0)
    return best


def _check(certificates: Sequence[Certificates]) -> None:
    if not certificates:
        raise InputError("There are no certificates to choose from.")
    first = certificates[0]
    for certs in certificates[1:]:
        same = certs.votes.classes == first.votes.classes and all(
            np.array_equal(getattr(certs.about, name), getattr(first.about, name))
            for name in ("targets", "entries", "ones")
        )
        known = certs.votes.provenance.get("threat") == first.votes.provenance.get("threat")
        if not same or not known or certs.family != first.family:
            raise InputError("The certificates are not about the same targets of the same graph.")
        if certs.about.class_names != first.about.class_names:
            raise InputError(
                "The certificates call their labels differently, and would be read by the names of the first; name all of them alike."
            )
        if certs.rivals != first.rivals:
            raise InputError(
                "The certificates define the label differently (rivals); certify all with the same rivals=."
            )


def _check_purposes(selection: Votes, certifying: Votes) -> None:
    if selection.provenance.get("purpose") != "select" or certifying.provenance.get("purpose") != "certify":
        raise InputError(
            'Levels must be chosen on votes polled with purpose="select", apart from those that certify.'
        )
    if selection.noise != certifying.noise:
        raise InputError("selection and certificates must list the same levels in the same order.")
