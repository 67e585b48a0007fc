"""Labels that are flagged: which one, and what a model of one number means by it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from unswayed.certificates.presenting import plural
from unswayed.cli.common import note
from unswayed.cli.targets import Targets
from unswayed.datasets import Dataset
from unswayed.errors import InputError
from unswayed.sampling.flagged import flagged

if TYPE_CHECKING:
    from unswayed.certificates import Certified
    from unswayed.cli.plan import Plan

FEW = (1, 5)  # changes of which it is told who withstands them, where truth is unknown


def read_positive(word: str | None, dataset: Dataset) -> int | None:
    """The number of the label that should stay flagged, given by name or number."""
    if word is None:
        return None
    names = dataset.class_names or tuple(map(str, range(dataset.num_classes)))
    if word not in names:
        raise InputError(
            f"There is no label {word!r} in this dataset; its labels are {', '.join(names[:10])}."
        )
    return names.index(word)


def label_name(label: int, dataset: Dataset) -> str:
    """What people call the label."""
    return dataset.class_names[label] if dataset.class_names else str(label)


def stays(positive: int | None, dataset: Dataset, targets: Targets) -> int | None:
    """The label of which it is said how many stay flagged: the positive one, if some target truly has it."""
    if positive is None or bool((targets.truth == positive).any()):
        return positive
    note(
        f"None of the targets is known to be {label_name(positive, dataset)}, so nothing can be said of how many of these stay flagged."
    )
    return None


def tell_flagged(certs: "Certified", positive: int) -> None:
    """Say how many are flagged, and how many stay as they are, where nobody knows how many rightly."""
    flagged, name = certs.label == positive, certs.about.label_name(positive)
    one, more = ([int((certs.size[who] >= k).sum()) for k in FEW] for who in (flagged, ~flagged))
    note(
        f"{int(flagged.sum()):,} of {plural(len(certs), certs.unit)} {'is' if flagged.sum() == 1 else 'are'} flagged {name}: {one[0]:,} stay so against "
        f"any {FEW[0]} change, {one[1]:,} against any {FEW[1]}. Of the {int((~flagged).sum()):,} others {more[0]:,} stay unflagged against any {FEW[0]} "
        f"change, {more[1]:,} against any {FEW[1]}."
    )


def flag_in_words(positive: int | None, precision: float, dataset: Dataset) -> dict[str, Any]:
    """What was asked of a flag, for what is remembered of a run: validation nodes alone say whether it is had."""
    named = None if positive is None else label_name(positive, dataset)
    return {"flagged label": named, "precision asked of validation nodes": precision}


FLAGGED, RIGHT, PRECISE = "validation nodes flagged", "of these rightly", "precision on validation nodes"


def judged_in_words(model: Any) -> dict[str, Any]:
    """How a network that was chosen to flag did on the validation nodes, for what is remembered of a run."""
    from unswayed.models.training.flags import judgement

    if (found := judgement(model)) is None:
        return {}
    return {PRECISE: found.precision, FLAGGED: found.flagged, RIGHT: found.right}


def tell_judged(training: Mapping[str, Any]) -> None:
    """Say how precise the chosen network was on the validation nodes, and on how many of them that rests."""
    if FLAGGED not in training:
        return
    flagged, share = training[FLAGGED], training[PRECISE]
    if share is None:
        note("The network that was chosen flags none of the validation nodes.")
        return
    note(
        f"The network that was chosen has a precision of {share:.3f} on validation nodes: of {flagged:,} that it flags, "
        f"{training[RIGHT]:,} {'bears' if training[RIGHT] == 1 else 'bear'} the label. On others expect a little less."
    )


def read_flag(threshold: float | None, positive: int | None, dataset: Dataset, model: str) -> int:
    """The number of the label that an answer above the threshold means: the positive one; of labels that are numbers, the larger."""
    if threshold is None:
        return 1
    if not model.endswith(".py") and ":" not in model:
        raise InputError(
            f"--threshold is for a model of yours that answers one number; {model} answers one for each label, so leave it out."
        )
    names = dataset.class_names or tuple(map(str, range(dataset.num_classes)))
    if len(names) != 2:
        raise InputError(
            f"A threshold tells two labels apart, but this dataset has {len(names)}: {', '.join(names[:10])}."
        )
    if positive is not None:
        return positive
    try:
        return int(float(names[1]) > float(names[0]))
    except ValueError:
        raise InputError(
            f"Which label does an answer above the threshold mean? Say it with --positive: {names[0]} or {names[1]}."
        ) from None


def asked(plan: "Plan", model: Any) -> Any:
    """What is polled: the model, or its one number as two classes."""
    return model if plan.threshold is None else flagged(model, plan.threshold, label=plan.flag)
