"""Training recipes: `clean`, `noise` (fresh noise at every step) and `distill` (a clean teacher, a noisy student)."""

from unswayed.models.training.fitting import RECIPES, fit, untrained
from unswayed.models.training.keeping import Progress

__all__ = ["RECIPES", "Progress", "fit", "untrained"]
