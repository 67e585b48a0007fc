"""What is proven: noise, likelihood-ratio regions, confidence bounds and the certified size. Pure functions, no torch."""

from unswayed.theory.bounds import Bounds, bound_votes, ceiling
from unswayed.theory.hide import Hide
from unswayed.theory.interception import intercepted_size, reach
from unswayed.theory.keep import Keep
from unswayed.theory.mask import Mask
from unswayed.theory.noise import AddDelete, Flip, Noise, noise_from_dict
from unswayed.theory.shared import flipped_anywhere, flipped_apart, flipped_rows, flipped_within
from unswayed.theory.size import certified_size, grid, is_certified, worst_case
from unswayed.theory.topk import certified_topk_size

__all__ = [
    "AddDelete",
    "Bounds",
    "Flip",
    "Hide",
    "Keep",
    "Mask",
    "Noise",
    "bound_votes",
    "ceiling",
    "certified_size",
    "certified_topk_size",
    "flipped_anywhere",
    "flipped_apart",
    "flipped_rows",
    "flipped_within",
    "grid",
    "intercepted_size",
    "is_certified",
    "noise_from_dict",
    "reach",
    "worst_case",
]
