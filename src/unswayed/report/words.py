"""The sentences of a report: what the certificates mean, for somebody who has never heard of one."""

import numpy as np

from unswayed.certificates.about import withstood
from unswayed.certificates.presenting import plural, with_article
from unswayed.report.aiming import aim, attack
from unswayed.report.alone import median_of
from unswayed.report.beside_floor import floor_flags_none, floor_told, whole
from unswayed.report.summary import Summary
from unswayed.rounding import percent, percent_at_least

MANY = 10  # targets of which it is odd that all have one label
ALL_ALIKE = 0.95  # share of one label from which a model is warned of: it hardly tells targets apart
EXPECTED = 0.8  # unless the truth is nearly as one-sided itself


def headline(summary: Summary) -> str:
    """The one sentence a manager takes away: who stays flagged, if that was asked, or how many decisions are proven, against what."""
    return _flagged(summary) or _proven(summary)


def _flagged(summary: Summary) -> str:
    """How many of the class that matters stay flagged; empty where no class was named."""
    if summary.positive is None or summary.truth is None:
        return ""
    size, truly = aim(summary)[1], int((summary.truth == summary.positive).sum())
    flagged, stay = (round(float(share) * truly) for share in summary.recall([0, size]))
    who = f"{plural(truly, summary.unit)} that {'is' if truly == 1 else 'are'} truly {summary.label_name(summary.positive)}"
    if not flagged:  # so that no size of an attack says anything
        none = f"None of the {who}" if truly > 1 else f"The one {who.removeprefix('1 ')}"
        return f"{none} is {'' if truly > 1 else 'not '}provably flagged, even without an attack; --precision trains a model that is asked to flag some."
    stays = "stays" if stay == 1 else "stay"
    return f"{stay:,} of {who} provably {stays} flagged if an attacker {attack(summary, size)}."


def _proven(summary: Summary) -> str:
    """How many decisions are proven (and, where known, right), against what."""
    total, (change, size, who) = summary.total, aim(summary)
    proven = round(float(summary.share(size, change)) * total)
    answer = "answer" if summary.truth is None else "right answer"
    if proven:
        keep = f"keeps its {answer}" if proven == 1 else f"keep their {answer}"
        told = f"{proven:,} of {summary.everyone} provably {keep}"
        if summary.below_floor(size, change, ties=True):
            free = round((summary.floor or 0.0) * total)
            return f"{told} if an attacker {who}; a model that ignores the structure has {free:,} right, whatever anybody does."
        if (only := _only_label(summary)) is not None:  # which nobody should take for robustness
            return f"{told} if an attacker {who}; but every answer is the one label {only}."
        return f"{told}: no attacker who {who} {summary.certs.undone()}."
    if summary.certs.abstained.all():
        who = (
            f"any of the {plural(len(summary.certs), summary.unit)}"
            if len(summary.certs) > 1
            else f"the one {summary.unit}"
        )
        return f"Nothing can be promised: no label is proven for {who}."
    told = f"for none of the {summary.everyone} is {with_article(answer)}"
    if total == 1:
        told = f"for the one {summary.everyone.removeprefix('1 ')} no {answer} is"
    return f"Nothing can be promised yet: {told} proven against a single change."


def _only_label(summary: Summary) -> str | None:
    """The label that all of many targets are given, though they may differ."""
    given = summary.certs.label[~summary.certs.abstained]
    differ = summary.truth is None or len(np.unique(summary.truth[summary.known])) > 1
    alike = len(given) >= MANY and len(np.unique(given)) == 1
    return summary.label_name(int(given[0])) if alike and differ else None


def verdict(summary: Summary) -> str:
    """What a headline leaves out: wrong answers, silence, a model that says the same to all, and the floor."""
    parts = (
        _proven(summary) if _flagged(summary) else "",
        _others(summary),
        _unmoved(summary) or sides(summary),
        monotony(summary),
        _base(summary),
        floor_told(summary),
    )
    return " ".join(part for part in parts if part)


def sides(summary: Summary) -> str:
    """How many additions alone, and deletions alone, half of the good answers withstand; empty where it says nothing more."""
    if not summary.apart or not summary.right.any():
        return ""
    kinds = {"adds": "addition", "deletes": "deletion"}
    adds, deletes = (
        f"any number of {what}s"
        if (size := median_of(summary, change, summary.right)) is None
        else plural(size, what)
        for change, what in kinds.items()
    )
    who = "right answers" if summary.truth is not None else "answers"
    if int(summary.right.sum()) == 1:
        return f"The {who[:-1]} withstands {adds} alone, and {deletes} alone."
    return f"Half of the {who} withstand {adds} alone, half {deletes} alone."


def _others(summary: Summary) -> str:
    certs, (change, size, _) = summary.certs, aim(summary)
    if summary.truth is None:
        return (
            "The true labels were not given, so this says nothing about how many of these answers are right."
        )
    strong = withstood(certs.sizes(change), size, certs.about.limit(change))
    known = summary.known
    rest, more = summary.total - int((strong & summary.right).sum()), len(certs) - summary.total
    parts = [
        (int((strong & ~summary.right & known).sum()), "just as provably wrong"),
        (int((~strong & ~certs.abstained & known).sum()), "proven against smaller attacks only"),
        (int((certs.abstained & known).sum()), "without an answer"),
    ]
    unknown = ""
    if more:
        too = int((strong & ~known).sum())
        unknown = f" Of {more:,} more the true label is unknown; {too:,} of them {'keeps its' if too == 1 else 'keep their'} answer just as provably."
    told = [f"{count:,} {words}" for count, words in parts if count]
    if len(told) != 1:
        return (f"The other {rest:,}: {', '.join(told)}." if told else "") + unknown
    words = next(words for count, words in parts if count)
    return (f"The other one is {words}." if rest == 1 else f"The other {rest:,} are {words}.") + unknown


def _unmoved(summary: Summary) -> str:
    """That the structure does not matter at all, where nothing that can be changed changes anything."""
    if not whole(summary).all():
        return ""
    return "Nothing that the attacker can change moves any of these answers: as far as that goes, the model ignores the structure."


def monotony(summary: Summary) -> str:
    """A warning where the model has stopped telling targets apart, so that its robustness is worth little."""
    given = summary.certs.label[~summary.certs.abstained]
    if len(given) < MANY:
        return ""
    label = int(np.bincount(given).argmax())
    share = float((given == label).mean())
    expected = 0.0 if summary.truth is None else float((summary.truth[summary.known] == label).mean())
    if share < ALL_ALIKE or expected > EXPECTED:
        return ""
    who, noisy = "every" if share == 1 else "nearly every", summary.certs.confidence is not None
    if noisy and summary.settings.get("Recipe") in ("noise", "distill"):  # it was trained under noise
        help_ = "Less noise, or another model, may help"
    elif noisy:
        help_ = "Less noise, or a model trained under noise, may help"
    else:
        help_ = "Training it longer, or another model, may help"
    return (
        f"Beware: {'under this noise ' * noisy}the model gives {who} {summary.unit} the label {summary.label_name(label)}: it is steady, but "
        f"tells nothing apart. {help_}."
    )


def _base(summary: Summary) -> str:
    if summary.base is None or summary.truth is None:
        return ""
    proven = percent(float(summary.share(0)))
    return f"Without smoothing and without an attack the model is right on {percent(summary.base)}; {proven} are right and proven before any change."


def staying(summary: Summary) -> str:
    """How much of the class that matters stays flagged, and how right flags stay; empty where no class was named."""
    if summary.positive is None or summary.truth is None:
        return ""
    name, truly = summary.label_name(summary.positive), int((summary.truth == summary.positive).sum())
    size = aim(summary)[1]
    flagged, stays = summary.recall([0, size]).tolist()
    if not flagged:  # as the headline says
        return floor_flags_none(summary).strip()
    right = summary.precision([size]) if stays > 0 else None
    told = (
        ""
        if right is None
        else f" Each {summary.unit} attacked by itself, of all that is flagged then at least {percent_at_least(float(right[0]))} is {name}."
    )
    end = f"flagged whatever an attacker does who {attack(summary, size)}.{told}{floor_flags_none(summary)}"
    if truly == 1:
        then = "stays" if stays else "does not provably stay"
        return f"The one {summary.unit} that is truly {name} is flagged without an attack, and {then} {end}"
    return (
        f"Of the {plural(truly, summary.unit)} that are truly {name}, {percent(flagged)} are flagged without an attack, and "
        f"{percent(stays)} stay {end}"
    )


def confidence(summary: Summary) -> str:
    """How sure one may be of the whole curve, not of one certificate."""
    return summary.certs.overall()


FLOOR = (
    "The accuracy of the best model that ignores the structure. No structural attack can touch it, so a curve below the floor means "
    "that ignoring the structure would have been safer."
)


def _share_at_k(summary: Summary) -> tuple[str, str]:
    """What the curve shows; without true labels it knows nothing of what is right."""
    if summary.truth is None:
        return "Share certified at k", f"The share of {summary.unit}s whose K is at least k."
    return (
        "Certified accuracy at k",
        f"The share of {summary.unit}s whose label is right and whose K is at least k.",
    )


def reading(summary: Summary) -> list[tuple[str, str]]:
    """Terms of the report and what they mean: those of the kind of certificate, then those of every report."""
    alone = (
        "K counts additions and deletions together; these columns say how many additions alone, or deletions alone, "
        "are proven harmless; “all” where it is every one that there can be, so that there is none left to count."
    )
    items = [
        *summary.certs.reading(),
        *([("Adds and deletes", alone)] if summary.sides else []),
        _share_at_k(summary),
        *([("Floor", FLOOR)] if summary.floor is not None else []),
        ("Confidence", confidence(summary)),
    ]
    if summary.positive is not None:
        items.append((
            "Stays flagged, precision",
            f"Of the {summary.unit}s that are truly {summary.label_name(summary.positive)}, the share that keeps this label under every "
            "attack of k changes on it alone (recall). Precision is the least share of right flags then: whatever is not certified not to be flagged "
            "counts as a false alarm.",
        ))  # fmt: skip
    if summary.attacked is not None:
        items.append((
            "Attack found",
            "The smallest attack that was found to change the answer. The truth lies between K and it: sizes up to K "
            "are proven safe, sizes from this one on are proven unsafe.",
        ))  # fmt: skip
    return items
