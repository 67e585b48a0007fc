"""What the user's own files hold, said before anything slow, and a random split where they have none."""

from pathlib import Path

import torch

from unswayed.cli.common import note
from unswayed.datasets import Dataset, Split, split
from unswayed.errors import InputError

UNLABELLED = "unlabelled"
SHOWN = 10  # classes


def own_split(dataset: Dataset, seed: int, nodes: str = "test") -> Split:
    """A random split for files without one, scaled down on small graphs so that every part has a node.

    Where nodes without a label are asked about, nobody is tested: every label is learnt from or chosen with.
    """
    labelled = int((dataset.labels >= 0).sum())
    if labelled < 3 * dataset.num_classes:
        raise InputError(
            f"Only {labelled} nodes have labels, too few to split at random; add a split column with train, val and test."
        )
    per_class = max(1, min(20, labelled // (3 * dataset.num_classes)))
    rest = labelled - per_class * dataset.num_classes
    validation = min(500, rest // 3)
    silent = (dataset.labels < 0).nonzero()[:, 0]
    if nodes == UNLABELLED and len(silent):
        drawn = split(dataset, seed, test="rest", per_class=per_class)
        return Split(torch.cat([drawn.train, drawn.test]), drawn.val, silent)
    return split(dataset, seed, test=min(100, rest - validation), per_class=per_class)


def tell_classes(labels: Path, dataset: Dataset) -> None:
    """Say which classes there are and how many nodes each has: a slip of the pen makes one of its own."""
    known = dataset.labels[dataset.labels >= 0]
    counts, names = known.bincount(minlength=dataset.num_classes), dataset.class_names or ()
    order = counts.argsort(descending=True, stable=True).tolist()
    told = ", ".join(f"{names[place]} ({int(counts[place]):,})" for place in order[:SHOWN])
    more = f" and {len(order) - SHOWN:,} more" if len(order) > SHOWN else ""
    silent = len(dataset.labels) - len(known)
    note(f"{labels.name} has the labels {told}{more}" + (f"; {silent:,} without." if silent else "."))


def tell_split(labels: Path, dataset: Dataset, parts: Split, seed: int) -> None:
    """Say who was drawn for what, and how to decide otherwise."""
    known = int((dataset.labels >= 0).sum())
    tested = int((dataset.labels[parts.test] >= 0).sum())
    unused = known - len(parts.train) - len(parts.val) - tested
    note(
        f"{labels.name} has no split column: of its {known:,} labelled nodes {len(parts.train):,} are drawn to learn from, "
        f"{len(parts.val):,} to choose with and {tested or 'none'} to test (--seed {seed}){f', and {unused:,} are not used' if unused else ''}. "
        "A split column of train, val and test decides otherwise."
    )
