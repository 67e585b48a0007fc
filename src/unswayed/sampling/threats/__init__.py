"""Threat models: which entries of the input an attacker may change, for which targets. One file each."""

from unswayed.sampling.threats.base import RowView, Threat
from unswayed.sampling.threats.bits import Bits
from unswayed.sampling.threats.directed import Directed
from unswayed.sampling.threats.inject import Inject
from unswayed.sampling.threats.intercept import Intercept
from unswayed.sampling.threats.pairs import AllPairs, Pairs
from unswayed.sampling.threats.relation import Relation
from unswayed.sampling.threats.row import Row

__all__ = [
    "AllPairs",
    "Bits",
    "Directed",
    "Inject",
    "Intercept",
    "Pairs",
    "Relation",
    "Row",
    "RowView",
    "Threat",
]
