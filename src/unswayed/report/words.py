"""The sentences of a report: what the certificates mean, for somebody who has never heard of one."""

import numpy as np
import numpy.typing as npt

from unswayed.certificates import confidence_in_words
from unswayed.report.summary import WORDS, Summary, noise_in_words


def plural(number: int, noun: str) -> str:
    """A number and its noun.

    >>> plural(1, "node"), plural(3, "node")
    ('1 node', '3 nodes')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def percent(share: float) -> str:
    """A share as people say it.

    >>> percent(0.731), percent(0.9995)
    ('73%', '99.9%')
    """
    return f"{int(share * 1000) / 10:.1f}%" if 0.99 < share < 1 else f"{round(100 * share)}%"


def attack(summary: Summary, size: int | str) -> str:
    """An attack of up to `size` changes, in words."""
    _, one, many = WORDS[summary.threat]
    return one if size == 1 else many.format(k=size)


def aim(summary: Summary) -> tuple[npt.NDArray[np.int64], int, str]:
    """What a headline speaks of: each target's size, the size that half of the good ones withstand (at least 1), the attack.

    The size is K; but where asymmetric noise proves K = 0 everywhere, it is of deletions or additions alone.
    """
    options = [(summary.certs.size, "adds or deletes")]
    if summary.adds is not None and summary.deletes is not None and summary.threat in ("row", "all-pairs"):
        options += [(summary.deletes, "only deletes"), (summary.adds, "only adds")]
    sizes, verb = next((each for each in options if (each[0][summary.right] > 0).any()), options[0])
    good = np.sort(sizes[summary.right])
    size = max(int(good[len(good) // 2]) if good.size else 1, 1)
    return sizes, size, attack(summary, size).replace("adds or deletes", verb)


def headline(summary: Summary) -> str:
    """The one sentence a manager takes away: how many decisions are proven (and, where known, right), against what."""
    total, (sizes, size, who) = len(summary.certs), aim(summary)
    proven = round(float(summary.share(size, sizes)) * total)
    answer = "answer" if summary.truth is None else "right answer"
    if proven:
        keep = f"keeps its {answer}" if proven == 1 else f"keep their {answer}"
        return (
            f"{proven:,} of {plural(total, summary.unit)} provably {keep}: "
            f"no attacker who {who} can change it."
        )
    if summary.certs.abstained.all():
        return (
            f"Nothing can be promised: the votes prove no label for any of the {plural(total, summary.unit)}."
        )
    return f"Nothing can be promised yet: for none of the {plural(total, summary.unit)} is a {answer} proven against a single change."


def verdict(summary: Summary) -> str:
    """What a headline leaves out: wrong answers, silence, a model that says the same to all, and the floor."""
    return " ".join(part for part in (_others(summary), _monotony(summary), _floor(summary)) if part)


def _others(summary: Summary) -> str:
    certs, (sizes, size, _) = summary.certs, aim(summary)
    if summary.truth is None:
        return (
            "The true labels were not given, so this says nothing about how many of these answers are right."
        )
    strong = sizes >= size
    rest = len(certs) - int((strong & summary.right).sum())
    parts = [
        (int((strong & ~summary.right).sum()), "as well proven but wrong"),
        (int((~strong & ~certs.abstained).sum()), "proven against smaller attacks only"),
        (int(certs.abstained.sum()), "without an answer"),
    ]
    told = ", ".join(f"{count:,} {words}" for count, words in parts if count)
    return f"The other {rest:,}: {told}." if told else ""


def _monotony(summary: Summary) -> str:
    """A warning where the smoothed model has stopped telling targets apart, so that its robustness is worth little."""
    given = summary.certs.label[~summary.certs.abstained]
    if len(given) < 10:
        return ""
    label = int(np.bincount(given).argmax())
    share = float((given == label).mean())
    expected = 0.0 if summary.truth is None else float((summary.truth == label).mean())
    if share < 0.95 or expected > 0.8:
        return ""
    who = "every" if share == 1 else "nearly every"
    return (
        f"Beware: under this noise the model gives {who} {summary.unit} the label {summary.label_name(label)}: it is steady, but "
        "tells nothing apart. Less noise, or a model trained under noise, may help."
    )


def _floor(summary: Summary) -> str:
    reach = summary.beats_floor_to
    if reach is None or summary.floor is None:
        return ""
    named = "" if summary.floor_name == "structure-free model" else f" ({summary.floor_name})"
    floor = f"A model that never looks at the structure{named} is right on {percent(summary.floor)}, whatever the attacker does"
    if reach < 0:
        return f"{floor}: more than is proven here at any size, so under this attack the structure costs more than it brings."
    upto = (
        "only against no change at all" if reach == 0 else f"for attacks of up to {plural(reach, 'change')}"
    )
    return f"{floor}; the certified model is better {upto}."


def confidence(summary: Summary) -> str:
    """How sure one may be of the whole curve, not of one certificate."""
    certs, total = summary.certs, len(summary.certs)
    level = confidence_in_words(certs.alpha)
    if certs.family:
        return f"With confidence {level}, all {total:,} certificates hold at once."
    each = f"Each certificate holds with confidence {level} by itself; with 95% confidence"
    wrong = summary.doubtful
    if wrong == 0:
        return f"{each} all {total:,} of them hold at once."
    return f"{each} at most {wrong:,} of the {total:,} {'is' if wrong == 1 else 'are'} wrong."


def reading(summary: Summary) -> list[tuple[str, str]]:
    """Terms of the report and what they mean, in the order in which a reader meets them."""
    certs, unit = summary.certs, summary.unit
    items = [
        (
            "What was asked",
            f"Each {unit} was shown to the model many times with random noise on its structure "
            f"({noise_in_words(certs.noise)}). The label that wins this vote is the smoothed model's answer.",
        ),
        (
            "K, the certified size",
            f"No attacker who {attack(summary, 'K')} can change the winning label. This is a proof from "
            "the votes, not the outcome of attacks that were tried; attacks nobody has thought of are covered.",
        ),
        (
            "Abstains",
            "The votes were too close to prove any winner. No label is given and nothing is promised.",
        ),
        (
            "p top and p rest",
            "The winner's true share of the vote is at least p top, any other label's at most p rest. "
            "The further apart, the larger K.",
        ),
        (
            "Certified accuracy at k",
            f"The share of {unit}s whose label is right and whose K is at least k.",
        ),
        (
            "Floor",
            "The accuracy of the best model that ignores the structure. No structural attack can touch it, so a curve "
            "below the floor means that ignoring the structure would have been safer.",
        ),
        (
            "Ceiling",
            f"Even if every vote agreed, this many samples at this confidence and noise could prove no more than "
            f"K = {summary.ceiling}. More samples, or more noise, raise it.",
        ),
        ("Confidence", confidence(summary)),
        (
            "What is not promised",
            "The weights and everything but the attackable entries are taken as fixed: changes of features, of the "
            "training data or of other parts of the graph are not covered. The promise is about the smoothed model, so "
            "the smoothed model must be the one that is deployed.",
        ),
    ]
    if summary.grid is not None:
        items.insert(
            2,
            (
                "Adds and deletes",
                "This noise treats additions and deletions differently. K counts both kinds together; these columns say how "
                "many additions alone, or deletions alone, are proven harmless.",
            ),
        )
    if summary.attacked is not None:
        items.insert(
            6,
            (
                "Attack found",
                "The smallest attack that was found to change the answer. The truth lies between K and it: sizes up to K "
                "are proven safe, sizes from this one on are proven unsafe.",
            ),
        )
    return items
