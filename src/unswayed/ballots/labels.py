"""Label ballots: what a node says of its neighbour from known labels alone, without that neighbour's own.

A voter whose label is known says it. Any other says which labels its neighbours have, the one it speaks to left out:
shares (count + .1/C)/(number + .1), each to the power of the sharpness, scaled to sum one. Counts are whole numbers, so what
is left out is left out exactly.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unswayed.ballots.links import Links
from unswayed.errors import InputError

SMOOTHING = 0.1  # of one label, spread over all classes
CLEARLY = 3  # standard deviations


@dataclass(frozen=True, eq=False)
class Said:
    """Ballots without repetition: `rows` [R, C] by `speaker` int64[R], first what each node says to a newcomer, in order.

    `row` int64[2m] says by which row each stored link speaks.
    """

    rows: Tensor
    speaker: Tensor
    row: Tensor


def as_labels(known: Any) -> Tensor:
    """Known labels as a tensor, NaN as −1; names are refused, because nobody says here which number each of them has."""
    try:
        labels = known.detach().cpu() if isinstance(known, Tensor) else torch.from_numpy(np.array(known))
    except (TypeError, ValueError) as error:
        raise InputError(
            "`known` must be one whole number for each node, −1 where the label is unknown (labels.fillna(-1) of a pandas column); "
            "number the names first, as in [names.index(label) for label in labels]."
        ) from error
    if not labels.is_floating_point():
        return labels
    whole = labels.nan_to_num(-1.0)  # pandas makes numbers of a column with gaps, and the gaps NaN
    return whole.long() if bool((whole == whole.round()).all()) else labels


def read_known(known: Any, nodes: int, classes: int) -> Tensor:
    """int64[n] of known labels, −1 where unknown; None stands for no label at all."""
    if known is None:
        return torch.full((nodes,), -1, dtype=torch.int64)
    labels = as_labels(known)
    if labels.shape != (nodes,) or labels.is_floating_point() or labels.dtype == torch.bool:
        raise InputError(
            f"`known` must be one whole number for each of the {nodes} nodes, −1 where the label is unknown."
        )
    labels = labels.long()
    if labels.numel() and (int(labels.min()) < -1 or int(labels.max()) >= classes):
        raise InputError(f"`known` must lie between −1 (unknown) and {classes - 1}, the last class.")
    return labels


def read_meaning(meaning: Any, classes: int) -> Tensor:
    """float64[2, C, C] within ±1: how loudly each label, known or heard of, speaks for each class."""
    told = torch.as_tensor(meaning, dtype=torch.float64).detach().clone()
    if told.shape != (2, classes, classes) or not bool((told.abs() <= 1).all()):
        raise InputError(
            f"`meaning` holds numbers between −1 and 1 for each pair of the {classes} classes, twice (what a known label says, and what "
            "hearsay says), as meaning_of(data, known) makes them."
        )
    return told


def own_labels(known: Tensor, classes: int) -> Tensor:
    """float64[n, C]: one where a node's label is known to be that class."""
    said = torch.zeros(len(known), classes, dtype=torch.float64, device=known.device)
    sure = known >= 0
    said[sure, known[sure]] = 1.0
    return said


def one_hop(links: Links, known: Tensor, classes: int) -> Said:
    """Every node says its own known label, or nothing, to everybody."""
    return Said(own_labels(known, classes), torch.arange(links.nodes, device=known.device), links.voter)


def to_newcomers(links: Links, known: Tensor, classes: int, sharpness: float) -> Tensor:
    """float64[n, C]: what every node says of labels over a new link, or over one to a node whose own label is unknown."""
    said = sharpened(_counted(links, known, classes), sharpness)
    return torch.where((known >= 0)[:, None], own_labels(known, classes), said)


def two_hop(links: Links, known: Tensor, classes: int, sharpness: float) -> Said:
    """What every node says of labels to a newcomer and over each stored link, the label at the other end left out."""
    counts = _counted(links, known, classes)
    # the only links over which something is left out
    silent = (known[links.voter] < 0) & (known[links.target] >= 0)
    wide = classes + 1
    key = links.voter[silent] * wide + known[links.target[silent]]
    found, place = torch.unique(key, return_inverse=True)
    voter, left_out = found // wide, found % wide
    row = links.voter.clone()
    row[silent] = links.nodes + place
    less = counts[voter]
    less[torch.arange(len(voter), device=voter.device), left_out] -= 1
    rows = torch.cat([counts, less])
    speaker = torch.cat([torch.arange(links.nodes, device=voter.device), voter])
    sure = (known[speaker] >= 0)[:, None]
    labels = own_labels(known, classes)
    return Said(torch.where(sure, labels[speaker], sharpened(rows, sharpness)), speaker, row)


def hearsay(links: Links, known: Tensor, classes: int, sharpness: float) -> Tensor:
    """float64[2m, C]: what the voter of each link says by its neighbours' labels alone, its own and that at the other end left out."""
    counts = _counted(links, known, classes)[links.voter]
    return sharpened(counts - own_labels(known, classes)[links.target], sharpness)


def _counted(links: Links, known: Tensor, classes: int) -> Tensor:
    """float64[n, C]: how many neighbours of each node are known to have each label."""
    told = known[links.voter]
    sure = told >= 0
    place = links.target[sure] * classes + told[sure]
    return torch.bincount(place, minlength=links.nodes * classes).view(links.nodes, classes).double()


def sharpened(counts: Tensor, sharpness: float) -> Tensor:
    """The shares of each row's counts to the power of the sharpness, scaled to sum one; computed by logarithms."""
    share = (counts + SMOOTHING / counts.shape[1]) / (counts.sum(dim=1, keepdim=True) + SMOOTHING)
    return torch.softmax(sharpness * share.log(), dim=1)


def meant(said: Tensor, sure: Tensor, meaning: Tensor | None) -> Tensor:
    """What these words mean: those of voters whose own label is known by the first table of `meaning`, hearsay by the second."""
    if meaning is None:
        return said
    known, heard = meaning.to(said)
    return torch.where(sure[:, None], said @ known, said @ heard)


def unlike(links: Links, known: Tensor) -> bool:
    """Whether known labels are linked to their own kind clearly less often than chance would have it: like does not go with like."""
    one, other = known[links.voter], known[links.target]
    both = (one >= 0) & (other >= 0)
    if not bool(both.any()):
        return False
    pairs = float(both.sum()) / 2
    chance = float(((one[both].bincount() / both.sum()) ** 2).sum())
    spread = math.sqrt(chance * (1 - chance) / pairs)
    return float((one == other)[both].double().mean()) < chance - CLEARLY * spread
