"""Meanings: what a neighbour's label says of a node's own, where like does not go with like.

Label ballots take a neighbour's label for the node's. Where links go mostly to other classes (buyers and sellers, frauds and
whom they defraud) a label speaks for other labels than itself: for those whose bearers it is met beside more often than elsewhere.
"""

from typing import Any

import torch
from torch import Tensor

from unswayed.ballots.labels import as_labels, hearsay, own_labels, read_known, unlike
from unswayed.ballots.links import Links
from unswayed.ballots.networks import SHARPNESS, LabelBallots
from unswayed.errors import InputError

UNSURE = 10.0  # as many links as if labels told nothing, beside those that were counted


def meaning_of(data: Any, known: Any, classes: int | None = None) -> Tensor:
    """float64[2, C, C]: how loudly a neighbour known to be of class a, or said to be by its own neighbours, speaks for class c.

    It is log Pr(a | c) / Pr(a) over the links of nodes whose label is known, and no node's own label is part of what it is
    told. What neighbours say of a voter is read off voters of known label, too, as though theirs were not: often no others are
    there. Each row is brought to a range of one: an attacker would add links to whoever is loudest. Like
    weights it is made once, before any attack; `known` int[n], −1 where unknown.
    """
    links, labels = Links.of(data), as_labels(known)
    count = max(int(labels.max()) + 1, 2) if classes is None and labels.numel() else classes or 2
    labels = read_known(labels, links.nodes, count).to(links.voter.device)
    if not bool((labels[links.target] >= 0).any()):
        raise InputError("What labels mean is read off links of nodes whose label is known; there is none.")
    own = labels[links.target]
    told, sure = own >= 0, labels[links.voter] >= 0
    said = own_labels(labels, count)[links.voter], hearsay(links, labels, count, SHARPNESS)
    tables = [_told(rows[where], own[where]) for rows, where in zip(said, (told & sure, told), strict=True)]
    return torch.stack([_range_one(table) for table in tables])


def suited(data: Any, known: Any, classes: int) -> LabelBallots:
    """Label ballots, not frozen yet, that take a label for what it means here: itself, unless like does not go with like."""
    links = Links.of(data)
    labels = read_known(known, links.nodes, classes)
    return LabelBallots(
        classes, meaning=meaning_of(links, labels, classes) if unlike(links, labels) else None
    )


def _told(rows: Tensor, own: Tensor) -> Tensor:
    """[C, C]: log Pr(a | c) / Pr(a) for what these rows say, by shares, to nodes of these classes; 0 for labels hardly ever said."""
    count = rows.shape[1]
    together = torch.zeros(count, count, dtype=rows.dtype, device=rows.device).index_add(0, own, rows).T
    often = together.sum(dim=1, keepdim=True)
    said = often >= 1
    usual = torch.where(said, often / often.sum(), 1.0)
    given = (together + UNSURE * usual) / (together.sum(dim=0) + UNSURE)
    return torch.where(said, (given / usual).log(), 0.0)


def _range_one(told: Tensor) -> Tensor:
    """The same with rows around 0, each from its least to its most one apart; rows that say nothing stay silent."""
    spread = told.amax(dim=1, keepdim=True) - told.amin(dim=1, keepdim=True)
    centred = told - told.mean(dim=1, keepdim=True)
    return torch.where(spread > 0, centred / torch.where(spread > 0, spread, 1.0), 0.0)
