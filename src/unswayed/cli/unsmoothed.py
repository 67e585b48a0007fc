"""How good the model itself is on the targets of a run, neither smoothed nor attacked."""

from typing import TYPE_CHECKING, Any

import numpy as np

from unswayed.cli.flags import asked
from unswayed.sampling.beforehand import named_classes
from unswayed.sampling.clean import clean_labels
from unswayed.sampling.question import Question
from unswayed.sampling.threats import Threat

if TYPE_CHECKING:
    from unswayed.cli.plan import Plan


def base_accuracy(plan: "Plan", threat: Threat, model: Any) -> float | None:
    """The share of targets of known label that the unsmoothed model has right; None where there are none."""
    truth = np.asarray(plan.targets.truth)
    if not len(truth) or (truth < 0).all():
        return None
    wrapped = asked(plan, model)
    count, _ = named_classes(wrapped, plan.dataset.class_names or plan.dataset.num_classes)
    question = Question(wrapped, threat, plan.noise, classes=count, device=plan.device)
    return float(np.mean((clean_labels(question) == truth)[truth >= 0]))
