"""The first layer's linear transform of the constant features, computed once instead of once a noisy graph.

A linear layer works row by row, so `lin(x repeated B times)` is `lin(x)` repeated. While a batch is asked, every plain
linear layer of the module answers from a table if, and only if, it is handed the very tensor of constant features,
unmodified. The product has n rows instead of B*n, which may round differently in the last place; it is the same for every
batch size.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from unswayed.sampling.engines.plans.rowwise import LINEARS


class FirstLayer:
    """Linear layers that remember their product with the features of one graph."""

    def __init__(self, model: Any) -> None:
        self.layers = _plain_linears(model) if isinstance(model, nn.Module) else []
        self.products: dict[int, Tensor] = {}
        self.features: Tensor | None = None

    @contextmanager
    def known(self, features: Tensor | None, repeated: Tensor | None, count: int) -> Iterator[None]:
        """While this lasts, `layer(repeated)` is the remembered `layer(features)`, repeated `count` times."""
        if features is None or repeated is None or not features.is_floating_point():
            yield
            return
        if self.features is not features:
            self.products, self.features = {}, features
        try:
            for layer in self.layers:
                layer.forward = self._shortcut(layer, repeated, count)
            yield
        finally:
            for layer in self.layers:
                layer.__dict__.pop("forward", None)

    def _shortcut(self, layer: nn.Module, repeated: Tensor, count: int) -> Callable[..., Tensor]:
        original, version = type(layer).forward, repeated._version

        def forward(x: Tensor) -> Tensor:
            if x is not repeated or x._version != version:
                out: Tensor = original(layer, x)
                return out
            if id(layer) not in self.products:
                self.products[id(layer)] = original(layer, self.features)
            product = self.products[id(layer)]
            return product.repeat(count, *[1] * (product.ndim - 1))  # a copy: what follows may change it

        return forward


def _plain_linears(model: nn.Module) -> list[nn.Module]:
    found = [module for module in model.modules() if type(module) in LINEARS]
    return [module for module in found if "forward" not in module.__dict__]
