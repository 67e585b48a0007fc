"""Models that answer as their class says: a proof knows the tables and the vote, not what somebody does to the answers afterwards."""

import inspect

from torch import nn

from unswayed.errors import UnsoundModel

ASKED = ("__call__", "_call_impl", "eval", "train")  # what every answer goes through, whatever the model


def check_unaltered(model: nn.Module, *methods: str) -> None:
    """Refuse a model whose answers, by these methods of the package, a hook, an instance or a subclass has changed."""
    kind = type(model).__name__
    if model._forward_hooks or model._forward_pre_hooks:
        raise UnsoundModel(
            f"This {kind} has a forward hook, which may change what it is asked or answers; remove the hook, or use poll."
        )
    if model._compiled_call_impl is not None:
        raise UnsoundModel(
            f"This {kind} was compiled, and what its backend made of it answers in its place; prove it before it is compiled, or use poll."
        )
    for name in (*ASKED, *methods):
        found = inspect.getattr_static(type(model), name)
        if name in vars(model) or getattr(found, "__module__", "").partition(".")[0] not in (
            "unswayed",
            "torch",
        ):
            raise UnsoundModel(
                f"This {kind} has a {name} of its own, so the proof would be about another model; use poll, which asks it as it is."
            )
