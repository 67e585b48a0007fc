"""The random split of files that have none, and saying so."""

from pathlib import Path

from unswayed.cli.common import note
from unswayed.datasets import Dataset, Split, split
from unswayed.errors import InputError


def own_split(dataset: Dataset, seed: int) -> Split:
    """A random split for files without one, scaled down on small graphs so that every part has a node."""
    labelled = int((dataset.labels >= 0).sum())
    if labelled < 3 * dataset.num_classes:
        raise InputError(
            f"Only {labelled} nodes have labels, too few to split at random; add a split column with train, val and test."
        )
    per_class = max(1, min(20, labelled // (3 * dataset.num_classes)))
    rest = labelled - per_class * dataset.num_classes
    validation = min(500, rest // 3)
    return split(dataset, seed, test=min(100, rest - validation), per_class=per_class)


def tell_split(labels: Path, dataset: Dataset, parts: Split, seed: int) -> None:
    """Say who was drawn for what, and how to decide otherwise."""
    known = int((dataset.labels >= 0).sum())
    unused = known - len(parts.train) - len(parts.val) - len(parts.test)
    note(
        f"{labels.name} has no split column: of its {known:,} nodes {len(parts.train):,} are drawn to learn from, {len(parts.val):,} to "
        f"choose with and {len(parts.test):,} to test (--seed {seed}){f', and {unused:,} are not used' if unused else ''}. "
        "A split column of train, val and test decides otherwise."
    )
