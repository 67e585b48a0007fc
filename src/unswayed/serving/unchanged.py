"""A model that stays as it was when its service was made, or is found out."""

from typing import Any

from unswayed.errors import UnsoundModel
from unswayed.sampling.digest import bindings, describe_model


class Watched:
    """A model and what it was like when its service was made.

    `own` says that nobody else holds it. Even then its classes, and the names that its code reads among globals, may be bound to
    something else by anybody: these are looked at in every request, which costs next to nothing.
    """

    def __init__(self, model: Any, own: bool) -> None:
        self.model, self.own = model, own
        self.described = describe_model(model)
        self.bound = bindings(model)

    def check(self) -> None:
        """Refuse a model that has changed: it is no longer the one that was checked and named."""
        if self.own and all(bound.holds() for bound in self.bound):
            return
        if describe_model(self.model) != self.described:
            raise UnsoundModel(
                "The model has changed since this service was made, all or part of it or what its code reads; make a new service. (A "
                "torch module that copy.deepcopy takes, and that holds no function with a network of its own, is copied whole.)"
            )
