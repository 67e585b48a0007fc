"""Still: a graph that nobody else holds, so that what was computed of it once stays true."""

from dataclasses import fields
from functools import cached_property
from typing import Any

from torch import Tensor

from unswayed.sampling.inputs import Graph, read_graph


class Still(Graph):
    """A private copy of a graph; its hash, degrees and edges are computed once."""

    @classmethod
    def of(cls, data: Any) -> "Still":
        """A copy of whatever holds a graph; what was given may change afterwards."""
        graph = read_graph(data)
        return cls(**{part.name: _copied(getattr(graph, part.name)) for part in fields(Graph)})

    def digest(self) -> str:
        """sha256 of structure and features."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        return super().digest()

    def constants(self) -> str:
        """sha256 of the extras."""
        return self._constants

    @cached_property
    def _constants(self) -> str:
        return super().constants()

    @property
    def edge_index(self) -> Tensor:
        """int64[2, 2m + loops]: a copy, since a model may write to what it is handed."""
        return self._edges.clone()

    @cached_property
    def _edges(self) -> Tensor:
        return super().edge_index

    def degrees(self) -> Tensor:
        """int64[n]: neighbours of each node other than itself."""
        return self._degrees

    @cached_property
    def _degrees(self) -> Tensor:
        return super().degrees()


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copied(item) for name, item in value.items()}
    return value.clone() if isinstance(value, Tensor) else value
