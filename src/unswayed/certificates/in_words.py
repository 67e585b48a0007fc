"""What was noted beside votes, in words: the audit of the answers, and settings of any shape."""

from collections.abc import Mapping
from typing import Any

from unswayed.notes import PENDING


def audited(notes: Mapping[str, Any]) -> dict[str, int] | None:
    """How many counted answers were asked again, agreed and tied; None where none was."""
    audit = notes.get("audit") or {}
    return {name: int(audit[name]) for name in ("asked", "agreed", "ties")} if audit.get("asked") else None


def refused(notes: Mapping[str, Any]) -> str | None:
    """Why votes with these notes may not be used; None where nothing speaks against them.

    >>> refused({"audit": {"asked": 300, "agreed": 290, "ties": 1}})
    '9 of 300 answers asked again one at a time were not what had been counted.'
    """
    if "refused" in notes:
        return str(notes["refused"])
    found = audited(notes) or {"asked": 0, "agreed": 0, "ties": 0}
    other = found["asked"] - found["agreed"] - found["ties"]
    return (
        f"{other:,} of {found['asked']:,} answers asked again one at a time were not what had been counted."
        if other
        else None
    )


def pending(notes: Mapping[str, Any]) -> int:
    """How many counted answers are still to be asked again: more than 0 where a poll was stopped before its audit."""
    heard = (notes.get("audit") or {}).get("heard", ())
    return sum(PENDING in answer for answer in heard)


def audit_in_words(notes: Mapping[str, Any]) -> str:
    """What asking again showed, in a sentence.

    >>> audit_in_words({"audit": {"asked": 300, "agreed": 299, "ties": 1}})
    'Of 300 counted answers asked again one graph at a time, 299 agreed and 1 tied within rounding.'
    """
    found, whose = audited(notes), "counted answers"
    if found is None:  # a service audits itself, not every request
        found, whose = audited({"audit": notes.get("service")}), "answers of the service that counted"
    if found is None:
        return "The counted answers were not audited."
    ties = f" and {found['ties']:,} tied within rounding" if found["ties"] else ""
    return f"Of {found['asked']:,} {whose} asked again one graph at a time, {found['agreed']:,} agreed{ties}."


def spent_in_words(spent: Mapping[str, Any]) -> str:
    """What answering took.

    >>> spent_in_words({"answers": 2_000_000, "seconds": 65.6})
    '2,000,000 answers in 65.6 s, 30,488 a second'
    """
    answers, seconds = spent["answers"], spent["seconds"]
    return f"{answers:,} answers in {seconds:,.1f} s, {answers / max(seconds, 1e-9):,.0f} a second"


def in_words(value: Any) -> str:
    """A JSON value as a line of text."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {in_words(part)}" for name, part in value.items() if name != "words")
    return ", ".join(map(in_words, value)) if isinstance(value, list) else str(value)
