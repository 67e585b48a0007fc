"""What all certificates that rest on votes have in common: their level, their noise, and what those are worth."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from unswayed.certificates.about import IntArray
from unswayed.certificates.in_words import audit_in_words, audited, in_words, spent_in_words
from unswayed.certificates.levels import confidence_in_words, most_wrong
from unswayed.certificates.presenting import every
from unswayed.certificates.protocol import About, Bar, Certified, Column, Explanation
from unswayed.certificates.shared import reach_of_votes
from unswayed.errors import InputError, Unsupported
from unswayed.theory.bounds import check_level
from unswayed.theory.noise import Noise
from unswayed.votes import Votes

LISTED = 6  # labels that an explanation shows the votes of


@dataclass(frozen=True, eq=False)
class Polled(Certified):
    """Certificates from votes: they hold with confidence 1 − `alpha` for each target, or with `family` for all together.

    With the published bounds ("paper") and with votes drawn for choosing (purpose "select") they hold with less, and say so.
    """

    votes: Votes
    alpha: float
    bounds: str
    family: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        check_level(self.alpha)
        if len(self.votes) != len(self.about):
            raise InputError(f"There are {len(self.about)} targets but votes of {len(self.votes)}.")

    @property
    def method(self) -> str:
        """Proven from votes under noise."""
        return "smoothed"

    @property
    def noise(self) -> Noise:
        """The noise the votes were drawn with."""
        return self.votes.noise

    @property
    def together(self) -> int:
        """How many targets were polled along with these, themselves included: more than `len` after picking some."""
        return self.votes.polled_together

    @property
    def level(self) -> float:
        """The alpha that each target is certified at."""
        return self.alpha / max(self.together, 1) if self.family else self.alpha

    @property
    def spent(self) -> float:
        """The probability that a certificate is wrong is at most this.

        The published bounds take alpha/C for each of C limits, which covers a label fixed beforehand; for the label chosen
        from the same votes C + 2 limits must hold. Votes drawn for choosing may have chosen what they certify.
        """
        if self.votes.provenance.get("purpose") == "select":
            return 1.0
        classes = self.votes.classes
        return min(self.alpha * (classes + 2) / classes, 1.0) if self.bounds == "paper" else self.alpha

    @property
    def confidence(self) -> float:
        """1 − `spent`."""
        return 1 - self.spent

    @property
    def caveat(self) -> str:
        """Why the confidence is less than 1 − alpha; empty where it is not."""
        if self.votes.provenance.get("purpose") == "select":
            return "these votes were drawn for choosing, and whatever was chosen on them is not certified by them"
        if self.bounds == "paper":
            return (
                f"the published bounds hold with {confidence_in_words(self.alpha)} for a label fixed before the votes, "
                "and this one was chosen from them"
            )
        return ""

    @property
    def scope(self) -> str:
        """What the confidence is about."""
        return "all targets of this run together" if self.family else "this target taken by itself"

    def assurance(self) -> str:
        """The confidence that is really had, what it is about, and what makes it less than it seems."""
        if self.spent >= 1:
            return f"Without any confidence ({self.caveat})"
        weaker = f" ({self.caveat})" if self.caveat else ""
        return f"With confidence {confidence_in_words(self.spent)}{weaker}, for {self.scope}"

    @property
    def doubtful(self) -> int:
        """At most so many are wrong, with 95%; with `family` none, with the stated confidence."""
        if self.family and self.spent < 1:
            return 0
        return most_wrong(self.spent, self.together, len(self))

    @property
    def reach(self) -> str:
        """The threat decides; and the certificates must hold together."""
        self._check_family()
        return reach_of_votes(self.about)

    def check_fields(self, change: str) -> None:
        """A deletion matters only to those who could see the edge, if neither noise nor attacker adds any."""
        self._check_family()
        whole = self.about.threat.get("kind") == "all-pairs" and self.about.words.unit == "node"
        if not (whole and change == "deletes" and getattr(self.noise, "p_add", 1) == 0):
            raise Unsupported(
                "Fields count for deletions of any edge under noise that adds nothing: AllPairs(data, nodes), AddDelete(p_add=0, …) "
                'and change="deletes".'
            )

    def _check_family(self) -> None:
        if not self.family or self.spent >= 1:
            raise Unsupported(
                "Each certificate holds with its own confidence, not all together; certify with family=True."
            )

    def overall(self) -> str:
        """With `family` all hold at once; else most of them do."""
        if self.spent >= 1:
            return f"No certificate has any confidence: {self.caveat}."
        level = confidence_in_words(self.spent)
        if len(self) == 1:
            return (
                f"The certificate holds with confidence {level}{f' ({self.caveat})' if self.caveat else ''}."
            )
        if self.family:
            return f"With confidence {level}, {every(len(self))} certificates hold at once."
        weaker = f" ({self.caveat})" if self.caveat else ""
        wrong, total = self.doubtful, len(self)
        each = f"Each certificate holds with confidence {level}{weaker} by itself; with 95% confidence"
        if wrong == 0:
            return f"{each} {every(total)} of them hold at once."
        return f"{each} at most {wrong:,} of the {total:,} {'is' if wrong == 1 else 'are'} wrong."

    def tally(self, position: int) -> str:
        """How many votes the first label won."""
        counts, drawn = self.votes.counts[position], int(self.votes.samples[position])
        first = self.about.label_name(int(counts.argmax()))
        return f"Label {first} won {int(counts.max()):,} of {drawn:,} votes."

    def how(self, position: int) -> str:
        """How many noisy copies of the target were drawn, and how."""
        return f"{int(self.votes.samples[position]):,} noisy copies ({self.noise.words()})"

    def terms(self) -> str:
        """It is about the smoothed classifier, and rests on the answers that were counted."""
        entries = "" if self.about.counts_nodes else " and these attackable entries"
        return (
            f"The promise is about the smoothed classifier with these weights{entries}; "
            f"everything else is taken as fixed. {audit_in_words(self.votes.notes)}"
        )

    def counted(self) -> tuple[Column, ...]:
        """The columns that every kind of vote has."""
        votes = self.votes
        return (
            Column("samples", votes.samples, meaning="noisy copies drawn"),
            Column("no_answer", votes.no_answer, meaning="noisy copies without an answer"),
            Column("votes", votes.counts, meaning="noisy copies answered with each label"),
        )

    def reading(self) -> list[tuple[str, str]]:
        """What a vote is, and how far it goes."""
        unit = self.unit
        return [
            (
                "What was asked",
                f"Each {unit} was shown to the model many times with random noise on its structure "
                f"({self.noise.words()}). The label that wins this vote is the smoothed model's answer.",
            ),
            *self.terms_of_size(),
            (
                "Abstains",
                "The votes were too close to prove anything. No label is given and nothing is promised.",
            ),
            (
                "Ceiling",
                f"Even if every vote agreed, this many samples at this confidence and noise could prove no more than "
                f"K = {self.ceiling}. More samples, or more noise, raise it.",
            ),
            (
                "What is not promised",
                "The weights and everything but the attackable entries are taken as fixed: changes of features, of the "
                "training data or of other parts of the graph are not covered. The promise is about the smoothed model, so "
                "the smoothed model must be the one that is deployed.",
            ),
        ]

    def terms_of_size(self) -> list[tuple[str, str]]:
        """What K and the family's own columns mean."""
        return []

    def settings(self) -> dict[str, str]:
        """Noise, samples, level and everything that was asked."""
        drawn = self.votes.samples
        span = f"{drawn.min():,}" if drawn.min() == drawn.max() else f"{drawn.min():,} to {drawn.max():,}"
        scope = "all targets together" if self.family else "each target by itself"
        weaker = f"; {self.caveat}" if self.caveat else ""
        return {
            "Noise": self.noise.words(),
            "Samples for each target": span,
            "Confidence": f"{confidence_in_words(self.spent)}, for {scope}{weaker}",
            "Bounds": self.bounds,
            "Ceiling": f"K can reach at most {self.ceiling} with these settings",
            "Audit": audit_in_words(self.votes.notes),
            **{
                f"Provenance: {name}": in_words(value)
                for name, value in self.votes.provenance.items()
                if name != "words"
            },
            **{
                f"Note: {name}": spent_in_words(value) if name == "spent" else in_words(value)
                for name, value in self.votes.notes.items()
                if name != "audit"
            },
        }

    def facts(self) -> dict[str, Any]:
        """The settings, for machines."""
        return {
            "noise": self.noise.to_dict(),
            "alpha": self.alpha,
            "bounds": self.bounds,
            "family": self.family,
            "caveat": self.caveat or None,
            "notes": {**self.votes.notes, "audit": audited(self.votes.notes)},
        }

    def explanation(self, position: int) -> Explanation:
        """The votes as bars, and what more of them would bring."""
        counts, samples = self.votes.counts[position], int(self.votes.samples[position])
        order = np.argsort(-counts, kind="stable")
        silent = int(self.votes.no_answer[position])
        bars = [self._bar(position, int(label), int(counts[label])) for label in order[:LISTED]]
        bars += [self._bar(position, -1, silent)] if silent else []
        votes = [[self.about.label_name(int(label)), int(counts[label])] for label in order]
        facts = {"votes": votes, "no_answer": silent, "samples": samples, **self.advice(position)}
        plain = super().explanation(position)
        sentences = (*plain.sentences, *filter(None, (facts.get("advice"),)))
        return replace(plain, bars=tuple(bars), sentences=sentences, facts={**plain.facts, **facts})

    def _bar(self, position: int, label: int, count: int) -> Bar:
        name = "no answer" if label < 0 else self.about.label_name(label)
        share = count / int(self.votes.samples[position])
        return Bar(name, f"{count:,}", share, self.proven(position, label))

    def proven(self, position: int, label: int) -> str:
        """What is proven of this label's probability (−1: of no answer); may be empty."""
        return ""

    def advice(self, position: int) -> dict[str, Any]:
        """What the next size would take: JSON-ready facts, the text as "advice"."""
        return {}

    def take(self, index: IntArray, **parts: Any) -> Self:
        """The votes of these targets go along."""
        return super().take(index, votes=self.votes.take(index), **parts)

    def arrays(self) -> dict[str, Any]:
        """The votes' arrays among ours."""
        votes = {f"votes.{name}": value for name, value in self.votes.arrays().items()}
        return {**super().arrays(), **votes}

    def header(self) -> dict[str, Any]:
        """The votes' header within ours."""
        return {**super().header(), "votes": self.votes.header()}

    @classmethod
    def restore(cls, about: About, arrays: Mapping[str, Any], header: Mapping[str, Any]) -> Self:
        """The votes are put together first."""
        inside = {name[6:]: value for name, value in arrays.items() if name.startswith("votes.")}
        own = {name: value for name, value in arrays.items() if not name.startswith("votes.")}
        votes = Votes.restore(inside, header["votes"])
        return super().restore(about, own, {**header, "votes": votes})
