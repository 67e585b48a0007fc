"""A model checked once and asked many times."""

from unswayed.serving.smoothed import Smoothed

__all__ = ["Smoothed"]
