"""Structure-free floors: models that no edge can change, so that any perturbation size is certified for free.

A certificate says something about the graph only where it beats these. Each learns by the same protocol, from the same
split, and (distilled) from the same teacher as the networks it is held against; the best is chosen on validation targets.
"""

from unswayed.models.floors.choosing import floor, floors
from unswayed.models.floors.judging import Floor

__all__ = ["Floor", "floor", "floors"]
