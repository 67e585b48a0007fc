"""A model that stays as it was when its service was made, or is found out."""

from collections.abc import Mapping
from typing import Any

from unswayed.errors import UnsoundModel
from unswayed.sampling.digest import describe_model


def check_unchanged(model: Any, described: Mapping[str, str]) -> None:
    """Refuse a model that others hold, all or part of it, and have changed: it is no longer the one that was checked and named."""
    if describe_model(model) != described:
        raise UnsoundModel(
            "The model has changed since this service was made, and it is none that a service can copy whole; make a new service, or give a "
            "torch module that copy.deepcopy takes and that holds no function with a network of its own."
        )
