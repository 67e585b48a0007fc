"""What next: one sentence, from what holds the result back most."""

import shlex

from unswayed.report.beside_floor import FEW, floor_named, whole
from unswayed.report.summary import Summary
from unswayed.rounding import percent

COST = 0.1  # of accuracy that smoothing takes, from which on it is worth a word
SILENT = 0.1  # share of targets that abstain
AT_CEILING = 0.5  # share of targets whose K is all that these samples can prove


def advice(summary: Summary) -> str:
    """The one thing to try next."""
    certs, total = summary.certs, len(summary.certs)
    silent = int(certs.abstained.sum()) / total
    proven = float(summary.share(0))
    if summary.floor is not None and total < FEW:
        return f"What next: more {summary.unit}s; {total} {'is' if total == 1 else 'are'} too few to compare models by."
    noisy = certs.confidence is not None
    if summary.positive is not None and float(summary.recall(0)) == 0:
        name = summary.label_name(summary.positive)
        return (
            f"What next: a model that flags some; no {summary.unit} that is truly {name} is flagged here, so nothing is proved of these. "
            f"unswayed prove --model ballots --positive {name} --precision P trains one that is asked to."
        )
    if not noisy and whole(summary).all():
        told = "What next: no change moves any of these answers, because none of them reads the structure; "
        if summary.unit == "node":
            told += "label ballots (--model label-ballots) or a smaller --attack-size may hear it, and "
        return f"{told}unswayed frontier tells whether it is worth reading."
    if summary.beats_floor_to == -1 and summary.positive is None:
        other = "models that are proved without noise (unswayed prove)" if noisy else "another model"
        return (
            f"What next: use a model that ignores the structure{floor_named(summary)}, which no change of it can move; or, where structure says more than features, "
            f"{other}."
        )
    if summary.base is not None and summary.base - proven > COST and noisy:
        return (
            f"What next: smoothing itself costs {percent(summary.base - proven)} of accuracy; noise closer to none (unswayed frontier shows which) or a "
            "model trained under it (--recipe distill) wins some of it back."
        )
    if silent > SILENT and noisy:
        return f"What next: more samples; {percent(silent)} have no proven label yet."
    if noisy and int((certs.size >= certs.about.entries).sum()) > AT_CEILING * total:
        return "What next: noise closer to none; most withstand all that could be changed, so more answers may be right under less of it."
    if summary.ceiling is not None and int((certs.size >= summary.ceiling).sum()) > AT_CEILING * total:
        more = "samples" if noisy else "groups"  # of edges: no other proof has a ceiling
        return f"What next: more {more}; most reach K = {summary.ceiling}, the most that these settings can prove."
    if not noisy:
        return f"What next: look at the weakest {summary.unit}s{_how(summary)}."
    return "What next: another noise (unswayed frontier compares them before anything is sampled), or a model trained under this one."


def _how(summary: Summary) -> str:
    """How to look at one of them, where a command proved it; nobody else has a store."""
    if not (summary.command or "").startswith("unswayed prove "):
        return ""
    weakest = shlex.quote(summary.target_name(int(summary.order[0])))
    return f"; proved with --store FOLDER, unswayed explain {weakest} --store FOLDER shows the cheapest attack on one"
