"""Certificates of any family as people and machines read them: a line, a paragraph, a table, a document."""

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from unswayed.certificates.levels import confidence_in_words

if TYPE_CHECKING:
    import pandas as pd

    from unswayed.certificates.protocol import Certified

ROWS = 20  # targets that a notebook shows


def plural(number: int, noun: str) -> str:
    """A number and its noun.

    >>> plural(1, "node"), plural(3, "node")
    ('1 node', '3 nodes')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def with_article(noun: str) -> str:
    """One of them; a first u is taken for that of "user".

    >>> with_article("node"), with_article("input")
    ('a node', 'an input')
    """
    return f"a{'n' * (noun[:1].lower() in tuple('aeio'))} {noun}"


def every(number: int) -> str:
    """All of so many.

    >>> every(2), every(1_000)
    ('both', 'all 1,000')
    """
    return "both" if number == 2 else f"all {number:,}"


def line(certs: "Certified") -> str:
    """How many targets, how many of them certified, the median size and the confidence."""
    sure = ~certs.abstained
    median = f", median size {int(np.median(certs.size[sure]))}" if sure.any() else ""
    level = "" if certs.confidence is None else f", confidence {confidence_in_words(1 - certs.confidence)}"
    return f"{type(certs).__name__}({plural(len(certs), certs.unit)}, {int(sure.sum()):,} certified{median}{level})"


def statement(certs: "Certified", position: int) -> str:
    """Who is promised what, how sure it is, what it rests on and what it takes as fixed."""
    who = f"{certs.unit.capitalize()} {certs.about.target_name(position)}"
    if certs.abstained[position]:
        return _sentences(f"{who}: no guarantee.", certs.grounds(position))
    sure = certs.assurance()
    promise = f"{who}: {sure[0].lower()}{sure[1:]}, {_promise(certs, position)}."
    return _sentences(promise, certs.grounds(position), certs.terms())


def _promise(certs: "Certified", position: int) -> str:
    size, entries = int(certs.size[position]), int(certs.about.entries[position])
    label = certs.about.label_name(int(certs.label[position]))
    if certs.about.counts_nodes:
        attack = certs.about.words.attack(max(size, 1))
        if size == 0:
            return f"the label is {label}, but somebody who {attack} {certs.at_once()}"
        return f"nobody who {attack} {certs.outcome(label)}"
    if size == 0:
        return f"the label is {label}, but a single changed entry {certs.at_once()}"
    of = f"{entries:,} attackable entries"
    much = f"of its {of}, however large," if size >= entries else f"of at most {size} of its {of}"
    return f"no change {much} {certs.outcome(label)}"


def _sentences(*parts: str) -> str:
    return " ".join(filter(None, parts))


def overall(certs: "Certified") -> str:
    """How many of all certificates may be wrong."""
    total, wrong = len(certs), certs.doubtful
    if certs.confidence is None and total == 1:
        return "The certificate is a proof: no chance is involved."
    if certs.confidence is None:
        return f"{every(total).capitalize()} certificates are proofs: no chance is involved, and all of them hold at once."
    if total == 1:
        return f"{certs.assurance()}."
    each = f"{certs.assurance()}; with 95% confidence"
    if wrong == 0:
        return f"{each} {every(total)} of them hold at once."
    return f"{each} at most {wrong:,} of the {total:,} {'is' if wrong == 1 else 'are'} wrong."


def frame(certs: "Certified") -> "pd.DataFrame":
    """One row per target: label, sizes, evidence."""
    import pandas as pd  # pandas costs half a second, and only tables need it

    return pd.DataFrame({
        "target": list(certs.about.target_names) or certs.targets,
        "label": certs.label,
        **({"answer": certs.answer} if certs.about.class_names else {}),
        "size": certs.size,
        **{change: certs.sizes(change) for change in certs.about.sides},
        "abstained": certs.abstained,
        **{column.name: column.values for column in certs.evidence() if column.values.ndim == 1},
        "entries": certs.about.entries,
    })  # fmt: skip


def document(certs: "Certified") -> dict[str, Any]:
    """Everything, JSON-ready."""
    return {
        "kind": certs.kind,
        "method": certs.method,
        "confidence": certs.confidence,
        "classes": list(certs.about.class_names) or None,
        **certs.facts(),
        "ceiling": certs.ceiling,
        "at_most_wrong_95": certs.doubtful,
        "targets": rows(certs),
    }


def rows(certs: "Certified") -> list[dict[str, Any]]:
    """One JSON-ready row per target."""
    columns = {"label": certs.label, **({"answer": certs.answer} if certs.about.class_names else {})}
    columns |= {"size": certs.size, **{change: certs.sizes(change) for change in certs.about.sides}}
    columns |= {column.name: column.values for column in certs.evidence()}
    lists = {name: values.tolist() for name, values in columns.items()}
    return [
        {"target": certs.about.target_name(place), **{name: values[place] for name, values in lists.items()}}
        for place in range(len(certs))
    ]


def page(certs: "Certified") -> str:
    """What a notebook shows."""
    shown = frame(certs[:ROWS]).to_html(index=False, border=0)
    rest = f"<p>… and {len(certs) - ROWS:,} more</p>" if len(certs) > ROWS else ""
    return f"<p>{escape(line(certs))}</p>{shown}{rest}"
