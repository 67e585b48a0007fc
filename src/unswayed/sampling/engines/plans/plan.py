"""A plan: what a module computes, as a list of steps whose meaning is known exactly.

Every step is one of five kinds. `input` is the nodes' features. `rowwise` acts on each node alone. `conv` sums, averages or
attends over neighbours and does nothing else: the linear maps, biases and networks of a layer are steps of their own, so
that rewriting is done once for all layers. `whole` reads all nodes of a graph and answers every node (a norm over the
graph). `pool` reads them and answers the graph. A step of depth k sees k hops of structure.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from unswayed.sampling.engines.plans.layers import Layer


@dataclass(frozen=True)
class Step:
    """One operation on node states, and the steps whose results it takes."""

    name: str
    kind: str
    inputs: tuple[int, ...] = ()
    run: Callable[..., Tensor] | None = None
    layer: "Layer | None" = None
    pool: str = ""
    depth: int = 0


@dataclass(frozen=True)
class Steps:
    """What a module computes, step by step; `steps[-1]` is its output."""

    steps: tuple[Step, ...]

    @property
    def depth(self) -> int:
        """How many hops of structure the output sees."""
        return self.steps[-1].depth

    @cached_property
    def rounds(self) -> dict[int, "Layer"]:
        """The message-passing steps by their positions."""
        return {i: step.layer for i, step in enumerate(self.steps) if step.layer is not None}

    @cached_property
    def last_use(self) -> dict[int, int]:
        """Where each step's result is taken last."""
        return {j: i for i, step in enumerate(self.steps) for j in step.inputs}

    @property
    def local(self) -> bool:
        """Whether no step reads all nodes of a graph."""
        return all(step.kind not in ("whole", "pool") for step in self.steps)

    def needed(self, pulled: Mapping[int, Set[int]]) -> tuple[frozenset[int], frozenset[int]]:
        """The steps whose results are needed at classified nodes, and those at all nodes; some read what is `pulled` instead of
        their inputs."""
        here, everywhere = {len(self.steps) - 1}, set[int]()
        for i in reversed(range(len(self.steps))):
            step = self.steps[i]
            if i in here and i in pulled:
                everywhere |= pulled[i]
            elif i in here and step.kind == "rowwise":
                here.update(step.inputs)
            elif i in here:
                everywhere.update(step.inputs)
            if i in everywhere:
                everywhere.update(step.inputs)
        return frozenset(here), frozenset(everywhere)

    @cached_property
    def everywhere(self) -> frozenset[int]:
        """The steps whose results are needed at other nodes than those that are classified."""
        return self.needed({})[1]

    @cached_property
    def used(self) -> frozenset[int]:
        """The steps that the output depends on."""
        return frozenset.union(*self.needed({}))

    def begun(self, x: Tensor) -> tuple[dict[int, Tensor], dict[int, tuple[Tensor, ...]]]:
        """The states before any message passing, and what goes into the first rounds: the same whatever the structure."""
        rest: dict[int, Tensor] = {}
        sent: dict[int, tuple[Tensor, ...]] = {}
        for i, step in enumerate(self.steps):
            if step.depth == 0 and step.kind in ("input", "rowwise"):
                rest[i] = step.run(*(rest[k] for k in step.inputs)) if step.run else x
            elif step.depth == 1 and step.layer is not None:
                sent[i] = step.layer.send(rest[step.inputs[0]])
        return rest, sent

    def evaluate(
        self,
        x: Tensor,
        conv: Callable[["Layer", Tensor], Tensor],
        pool: Callable[..., Tensor],
        average: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor:
        """The output where `conv`, `pool` and the `average` over nodes say what structure means in this arrangement."""
        values: dict[int, Tensor] = {}
        for i, step in enumerate(self.steps):
            inputs = [values[j] for j in step.inputs]
            if step.layer is not None:
                values[i] = conv(step.layer, inputs[0])
            elif step.kind == "pool":
                values[i] = pool(step.pool, *inputs)
            elif step.kind == "whole":
                assert step.run is not None
                values[i] = step.run(*inputs, average)
            else:
                values[i] = step.run(*inputs) if step.run else x
            for j in step.inputs:
                if self.last_use[j] == i:
                    values.pop(j, None)
        return values[len(self.steps) - 1]


def uses_of(steps: Sequence[Step]) -> Counter[int]:
    """How many inputs take each step's result."""
    return Counter(j for step in steps for j in step.inputs)


class Builder:
    """Writes steps one after the other; a state is named by its position."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.name = ""  # of the operation that is being written down

    def add(self, kind: str, *inputs: int, **more: object) -> int:
        """One more step; message passing sees one hop further than what it reads."""
        depth = max((self.steps[i].depth for i in inputs), default=0) + (kind == "conv")
        self.steps.append(Step(self.name, kind, inputs, depth=depth, **more))  # type: ignore[arg-type]
        return len(self.steps) - 1

    def rowwise(self, run: Callable[..., Tensor], *inputs: int) -> int:
        """A step on each node alone."""
        return self.add("rowwise", *inputs, run=run)

    def conv(self, layer: "Layer", h: int) -> int:
        """One round of message passing."""
        return self.add("conv", h, layer=layer)

    def inline(self, plan: Steps, h: int) -> int:
        """The steps of a row-wise plan, which take the state h as their input."""
        place = [h]
        for step in plan.steps[1:]:
            assert step.run is not None
            place.append(self.rowwise(step.run, *(place[i] for i in step.inputs)))
        return place[-1]


def bypassed(steps: Sequence[Step], idle: Callable[[Step], bool]) -> list[Step]:
    """The steps without the idle ones (but the last)."""
    out: list[Step] = []
    place: list[int] = []
    for i, step in enumerate(steps):
        if idle(step) and i < len(steps) - 1:
            place.append(place[step.inputs[0]])
        else:
            out.append(replace(step, inputs=tuple(place[j] for j in step.inputs)))
            place.append(len(out) - 1)
    return out
