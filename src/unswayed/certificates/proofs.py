"""Proofs: exact certificates without noise, samples or alpha. K is the largest that is true, and a witness shows why."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from unswayed.certificates.presenting import with_article
from unswayed.certificates.protocol import About, Bar, Certified, Column, Explanation, check_change
from unswayed.errors import StoreError, Unsupported
from unswayed.theory import records
from unswayed.theory.records import Record

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

LISTED = 10  # voices that an explanation shows
UNSAID = 1e-3  # a lead too small for a word


@dataclass(frozen=True, eq=False)
class Proofs(Certified):
    """For each target its label and the exact K: no change of at most K entries changes it, and some change of K + 1 does.

    K is all entries where no change at all does. `record` holds the margins, in units of 1/`unit_scale`; `told` says in words what is
    taken as fixed; `model` names the model and the hash of its tables; `reads` says what an answer depends on: "own row" (the
    target's entries alone, whatever else changes), "surroundings" (which must stay), "separate" (targets share nothing), "fakes".
    """

    record: Record
    told: str = "Everything but the attackable entries is taken as fixed."
    model: Mapping[str, str] = field(default_factory=dict)
    reads: str = "surroundings"
    unit_scale: float = 1.0
    exact: bool = True  # otherwise a lower bound

    kind = "exact"

    @classmethod
    def of(cls, record: Record, about: About, size: IntArray | None = None, **told: Any) -> Self:
        """The proofs that a record gives; −1 where it promises nothing. `size` if it was computed elsewhere."""
        size = record.sizes() if size is None else size
        return cls(label=np.where(size < 0, -1, record.label), size=size, about=about, record=record, **told)

    @property
    def method(self) -> str:
        """By adding whole numbers."""
        return "exact"

    @property
    def confidence(self) -> float | None:
        """None: nothing was left to chance."""
        return None

    def sizes(self, change: str = "any") -> IntArray:
        """The largest number of changes of this kind alone that cannot change the label, no more than there are to make."""
        if check_change(change) == "any":
            return self.size
        return self._adds if change == "adds" else self._deletes

    @cached_property
    def _adds(self) -> IntArray:
        return self._cut(self.record.sizes("adds"), self.about.zeros)

    @cached_property
    def _deletes(self) -> IntArray:
        return self._cut(self.record.sizes("deletes"), self.about.ones)

    def _cut(self, sizes: IntArray, most: IntArray | None) -> IntArray:
        return sizes if most is None else np.minimum(sizes, most)

    def grid(self, adds: int, deletes: int) -> BoolArray:
        """bool[targets, adds+1, deletes+1]: does the label stand against every attack with at most so many of each?"""
        return self.record.grid(adds, deletes) & ~self.abstained[:, None, None]

    def witness(self, position: int | str, change: str = "any") -> IntArray | None:
        """A cheapest set of entries whose change flips this target, by position or name: size + 1 of them; None if none exists.

        Entries are positions in the threat's structure vector: in a row the other node, in all pairs j(j−1)/2 + i. What a
        linear classifier rounds may keep the label even then, where proofs are not `exact` or one kind of change alone is asked about.
        """
        back = isinstance(position, int) and -len(self) <= position < 0  # from the end
        place = position + len(self) if back else self.about.position(position)  # type: ignore[operator]
        return self.record.witness(place, check_change(change))

    @cached_property
    def runner_up(self) -> IntArray:
        """int64[targets]: the class with the least distance to the label."""
        spare = self.record.spare.copy()
        spare[np.arange(len(self)), self.record.label] = np.iinfo(np.int64).max
        return np.asarray(spare.argmin(axis=1), dtype=np.int64)

    @cached_property
    def margin(self) -> FloatArray:
        """float64[targets]: how far the label's score is ahead of the runner-up's."""
        spare = self.record.spare[np.arange(len(self)), self.runner_up]
        return np.asarray((spare + (self.runner_up < self.record.label)) / self.unit_scale)

    @property
    def lead(self) -> FloatArray:
        """The margin over the runner-up."""
        return self.margin

    @property
    def reach(self) -> str:
        """By what an answer reads."""
        known = {"own row": "rows", "separate": "apart", "fakes": "anywhere"}
        if self.reads not in known:
            raise Unsupported(
                "These answers also read the voters' own neighbours, which another target's changes may reach; use voters that are "
                "features or a snapshot."
            )
        return known[self.reads]

    def at_once(self) -> str:
        """What is exact is sure of the harm, too."""
        return "can already move it" if self.exact else super().at_once()

    def grounds(self, position: int) -> str:
        """The margin, and what one more change does."""
        rival = self.about.label_name(int(self.runner_up[position]))
        ahead = f"It leads label {rival} by {self.margin[position]:.3g}"
        if self.margin[position] == 0:
            ahead = f"It ties with label {rival}, and ties go to the lower class"
        if self.abstained[position]:
            return f"{ahead}, which is within the rounding of the model's own sums."
        if not self.exact:
            return f"{ahead}; this is a lower bound."
        if self.size[position] >= self.about.entries[position]:
            return f"{ahead}, and all harmful changes together do not use that up."
        if self.size[position] == 0:
            return f"{ahead}{', which one change can use up' if self.margin[position] else ''}."
        return f"{ahead}; it is exact: some attack with {int(self.size[position]) + 1} changes does move it."

    def terms(self) -> str:
        """What is taken as fixed."""
        return self.told

    def evidence(self) -> tuple[Column, ...]:
        """The runner-up and the margin."""
        return (
            Column(
                "runner_up",
                self.runner_up,
                "runner-up",
                "the label with the next highest score",
                names=self.about.label_names,
            ),
            Column(
                "margin",
                self.margin,
                "margin",
                "how far the label's score is ahead of the runner-up's",
                "down",
            ),
        )

    def reading(self) -> list[tuple[str, str]]:
        """What a proof is."""
        both = (
            "exact: one change more, where there is one, can move it"
            if self.exact
            else "a lower bound: more may be true"
        )
        return [
            (
                "How it was proven",
                f"The model's answer for {with_article(self.unit)} is a sum of what each entry says, in whole numbers. No noise was drawn and nothing "
                "was sampled, so nothing is left to chance.",
            ),
            (
                "K, the certified size",
                f"No attacker who {self.about.words.attack('K')} can change the label. It is {both}.",
            ),
            (
                "Margin",
                "How far the label's score is ahead of the runner-up's. What an attacker adds or takes away must use it up.",
            ),
            ("What is not promised", self.told),
        ]

    def settings(self) -> dict[str, str]:
        """The model and its tables."""
        named = {f"Model: {name}": value for name, value in self.model.items()}
        return {"Method": "exact, without noise" if self.exact else "a lower bound, without noise", **named}

    def facts(self) -> dict[str, Any]:
        """For machines."""
        return {"exact": self.exact, "model": dict(self.model), "reads": self.reads}

    def explanation(self, position: int) -> Explanation:
        """Who speaks for the label against the runner-up, who against it, how loudly; and a cheapest attack."""
        rival = int(self.runner_up[position])
        entry, gain = self.record.voices(position, rival)
        order = np.argsort(-abs(gain), kind="stable")
        all_ = max(int(abs(gain).sum()), 1)
        bars = [self._bar(position, int(entry[i]), int(gain[i]), all_) for i in order[:LISTED]]
        total = {"for": int(gain[gain > 0].sum()), "against": -int(gain[gain < 0].sum())}
        heard = {name: value / self.unit_scale for name, value in total.items()}
        # what is left of the lead is said whatever entries are there: by own scores
        heard["alone"] = float(self.margin[position]) - int(gain.sum()) / self.unit_scale
        voices = [{"entry": int(entry[i]), "says": int(gain[i]) / self.unit_scale} for i in order]
        witness = self._witness_or_none(position)
        facts = {"runner_up": self.about.label_name(rival), "margin": float(self.margin[position]), **heard}
        plain = super().explanation(position)
        return replace(
            plain,
            bars=tuple(bars),
            titles=("entry", "says", "side"),
            sentences=(*plain.sentences, *self._told_of(position, entry, gain, heard, witness)),
            facts={**plain.facts, **facts, "voices": voices, "witness": witness},
        )

    def _bar(self, position: int, entry: int, gain: int, all_: int) -> Bar:
        side = "for" if gain > 0 else "against" if gain < 0 else "neither"
        return Bar(
            self.about.entry_name(position, entry), f"{gain / self.unit_scale:+.3f}", abs(gain) / all_, side
        )

    def _told_of(
        self,
        position: int,
        entry: IntArray,
        gain: IntArray,
        heard: dict[str, float],
        witness: list[int] | None,
    ) -> list[str]:
        label, rival = (
            self.about.label_name(int(self.label[position])),
            self.about.label_name(int(self.runner_up[position])),
        )
        told = []
        if len(gain):
            told.append(
                f"{_speak(gain > 0, f' of {len(gain)} entries that are there')} for {label} over {rival}, by {heard['for']:.3g} together; "
                f"{_speak(gain < 0)} against it, by {heard['against']:.3g}."
                + self._alone(label if heard["alone"] > 0 else rival, abs(heard["alone"]))
            )
        if witness:
            told.append(
                f"A cheapest attack makes {len(witness)} change{'s' * (len(witness) > 1)}: {self._attack_in_words(position, witness, entry)}."
            )
        return told

    def _alone(self, ahead: str, by: float) -> str:
        """The lead that no entry makes."""
        return f" Without any entry {ahead} leads by {by:.3g}." if by > UNSAID else ""

    def _attack_in_words(self, position: int, witness: list[int], there: IntArray) -> str:
        """What an attack adds and what it deletes."""
        gone = np.isin(witness, there)
        parts = [("adds", [e for e, lost in zip(witness, gone, strict=True) if not lost])]
        parts.append(("deletes", [e for e, lost in zip(witness, gone, strict=True) if lost]))
        return " and ".join(f"it {verb} {self._listed(position, which)}" for verb, which in parts if which)

    def _listed(self, position: int, entries: list[int]) -> str:
        ends = self.unit == "node" and self.about.ends(position, entries[0]) is not None
        shown = ", ".join(self.about.entry_name(position, entry) for entry in entries[:LISTED])
        more = f" and {len(entries) - LISTED} more" if len(entries) > LISTED else ""
        links = "a link to " if len(entries) == 1 else "links to "
        return f"{links if ends else ''}{shown}{more}"

    def known_attack(self, position: int) -> IntArray | None:
        """The witness, where sizes are exact."""
        return self.record.witness(position) if self.exact else None

    def known_attack_in_words(self, position: int) -> str:
        """The links of the witness."""
        found = self._witness_or_none(position)
        there = self.record.voices(position, int(self.runner_up[position]))[0]
        return self._attack_in_words(position, found, there) if found else ""

    def _witness_or_none(self, position: int) -> list[int] | None:
        found = self.known_attack(position)
        return None if found is None else found.tolist()

    def take(self, index: IntArray, **parts: Any) -> Self:
        """The record of these targets goes along."""
        return super().take(index, record=self.record.take(index), **parts)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The record's arrays among ours."""
        return {**super().arrays(), **{f"record.{name}": v for name, v in records.pack(self.record).items()}}

    def header(self) -> dict[str, Any]:
        """The record's kind within ours."""
        return {**super().header(), "model": dict(self.model), "record": type(self.record).__name__}

    @classmethod
    def restore(cls, about: About, arrays: Mapping[str, Any], header: Mapping[str, Any]) -> Self:
        """The record is put together first, and must prove the sizes that are stated."""
        inside = {name[7:]: value for name, value in arrays.items() if name.startswith("record.")}
        own = {name: value for name, value in arrays.items() if not name.startswith("record.")}
        record = records.unpack(header["record"], inside)
        made = super().restore(about, own, {**header, "record": record})
        proven = cls.of(record, about)
        if not (np.array_equal(made.size, proven.size) and np.array_equal(made.label, proven.label)):
            raise StoreError("states other labels or sizes than its own margins prove; prove them again.")
        return made


def _speak(those: npt.NDArray[np.bool_], of: str = "") -> str:
    """How many of them speak."""
    number = int(those.sum())
    return f"{number}{of} {'speaks' if number == 1 else 'speak'}"
