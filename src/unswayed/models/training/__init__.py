"""Training recipes: `clean`, `noise` (fresh noise at every step) and `distill` (a clean teacher, a noisy student)."""

from unswayed.models.training.ballot_settings import BallotSettings
from unswayed.models.training.fitting import RECIPES, fit, untrained
from unswayed.models.training.keeping import Progress

__all__ = ["RECIPES", "BallotSettings", "Progress", "fit", "untrained"]
