"""Graph neural networks with published hyper-parameters, the structure-free floors, and ways to train them."""

from unswayed.models.building import NAMES, build

__all__ = ["NAMES", "build"]
