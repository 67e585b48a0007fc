"""The one JSON document that certify, prove, report and attack print, and the table of their targets."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # scipy and torch load when a command runs, not when it is asked for help
    from unswayed.certificates import Certified
    from unswayed.cli.record import Record
    from unswayed.report.summary import Summary


def document(
    record: "Record", certs: "Certified", report: Path | None, shared: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The whole result, JSON-ready: what the certificates say of themselves, and what the run knows besides.

    `shared` is what `one_attacker` says.
    """
    from unswayed.report.advice import advice

    summary = record.summarise(certs)
    told = summary.certs.to_json()
    rows = [
        {**row, "truth": truth if truth >= 0 else None}
        for row, truth in zip(told.pop("targets"), record.truth, strict=True)
    ]
    named = "certified_accuracy" if summary.truth is not None else "share_certified"
    return {
        "command": record.again,
        "training": dict(record.training),
        "version": record.version,
        **told,
        "floor": None if record.floor is None else {"name": record.floor_name, "accuracy": record.floor},
        "base": None if record.base is None else {"accuracy": record.base},
        "advice": advice(summary),
        named: _curve(summary, "any"),
        **{f"{named}_{change}": _curve(summary, change) for change in summary.sides},
        **_flags(summary),
        "targets": rows,
        "shared": shared,
        "report": None if report is None else str(report),
    }


def save_table(record: "Record", certs: "Certified", path: Path) -> None:
    """Write a CSV file with one row for each target, and its true label by name (nothing where it is unknown)."""
    from unswayed.files import write_atomically

    summary = record.summarise(certs)
    table = summary.certs.to_frame()
    if summary.truth is not None:
        truth = [summary.label_name(label) if label >= 0 else "" for label in record.truth]
        table.insert(list(table.columns).index("size"), "truth", truth)
    write_atomically(path, table.to_csv(index=False).encode())


def _flags(summary: "Summary") -> dict[str, Any]:
    """What stays flagged, JSON-ready; nothing where no label was named."""
    if summary.positive is None:
        return {}
    sizes = list(range(max(summary.top, 0) + 1))
    right = summary.precision_told(sizes)
    told = {"positive": summary.label_name(summary.positive)}
    recall = dict(zip(map(str, sizes), summary.recall(sizes).tolist(), strict=True))
    least = None if right is None else dict(zip(map(str, sizes), right, strict=True))
    return {**told, "recall": recall, "precision": least}


def _curve(summary: "Summary", change: str) -> dict[str, float]:
    """The share at each size, up to the first that nobody withstands (or the widest that is drawn)."""
    from unswayed.report.summary import WIDEST

    last = summary.top if change == "any" else min(int(summary.certs.sizes(change).max()) + 1, WIDEST)
    sizes = range(max(last, 0) + 1)
    return {
        str(size): share for size, share in zip(sizes, summary.share(sizes, change).tolist(), strict=True)
    }
