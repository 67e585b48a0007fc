"""Notes: what happened while votes were counted. Unlike the provenance they are never compared, and they join."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from types import MappingProxyType
from typing import Any

PENDING, SAME, TIE, OTHER = "pending", "same", "tie", "other"
ADDED = ("spent",)  # notes of which two that are equal are still two
VERDICTS = (PENDING, SAME, TIE, OTHER)


@dataclass(frozen=True, order=True)
class Heard:
    """One answer as it was counted: `label` for the target at this position in this sample, and what asking again said.

    The `priority` was drawn at random, so the answers with the lowest ones are a random choice of all.
    """

    priority: float
    sample: int
    target: int
    label: int
    verdict: str = PENDING

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"unknown verdict {self.verdict!r}")


@dataclass(frozen=True)
class Audit:
    """Answers drawn at random from all that were counted, to be asked again; any two audits add up to one of both.

    Of the `covered` answers, the `wanted` ones with the lowest priorities are heard. `uncovered` answers were counted
    without drawing any of them. `seconds` is what asking again took.
    """

    wanted: int = 0
    covered: int = 0
    uncovered: int = 0
    seconds: float = 0.0
    heard: tuple[Heard, ...] = ()

    def __add__(self, other: "Audit") -> "Audit":
        wanted = max(self.wanted, other.wanted)
        return Audit(
            wanted,
            self.covered + other.covered,
            self.uncovered + other.uncovered,
            self.seconds + other.seconds,
            tuple(sorted({*self.heard, *other.heard})[:wanted]),
        )

    def number(self, *verdicts: str) -> int:
        """How many of the answers heard have one of these verdicts."""
        return sum(answer.verdict in verdicts for answer in self.heard)

    def judged(self, verdicts: Iterable[str], seconds: float) -> "Audit":
        """The audit with these verdicts on all that was pending, in order."""
        left = iter(verdicts)
        heard = (replace(a, verdict=next(left)) if a.verdict == PENDING else a for a in self.heard)
        return replace(self, heard=tuple(heard), seconds=self.seconds + seconds)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: asked, agreed, ties (beyond which none may differ), seconds, and what is needed to go on."""
        return {
            "asked": self.number(SAME, TIE, OTHER),
            "agreed": self.number(SAME),
            "ties": self.number(TIE),
            "seconds": self.seconds,
            "wanted": self.wanted,
            "covered": self.covered,
            "uncovered": self.uncovered,
            "heard": [astuple(answer) for answer in self.heard],
        }

    @classmethod
    def from_dict(cls, words: Mapping[str, Any]) -> "Audit":
        """What `to_dict` wrote."""
        heard = tuple(Heard(*answer) for answer in words["heard"])
        return cls(words["wanted"], words["covered"], words["uncovered"], words["seconds"], heard)


def joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Both notes: audits add up, and where words differ both are kept."""
    return {key: _both(key, one.get(key), other.get(key)) for key in {**one, **other}}


def _both(key: str, one: Any, other: Any) -> Any:
    if one is None or other is None or (one == other and key not in ADDED):
        return other if one is None else one
    if key == "spent":
        return {name: one[name] + other[name] for name in one}
    if key == "audit":
        return (Audit.from_dict(one) + Audit.from_dict(other)).to_dict()
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return joined(one, other)
    return ", ".join(dict.fromkeys([*str(one).split(", "), *str(other).split(", ")]))


class _Many(list[Any]):
    """A list that says how long it is instead of filling the screen."""

    def __repr__(self) -> str:
        return f"<{len(self):,} answers>"


def frozen(notes: Mapping[str, Any]) -> Mapping[str, Any]:
    """A read-only copy as it will be read back from JSON."""
    copied = json.loads(json.dumps(dict(notes)))
    if isinstance(audit := copied.get("audit"), dict) and "heard" in audit:
        audit["heard"] = _Many(audit["heard"])
    return MappingProxyType(copied)


def wordless(description: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON description without the words for people: better words do not make another question."""
    return {
        name: wordless(value) if isinstance(value, Mapping) else value
        for name, value in description.items()
        if name != "words"
    }
