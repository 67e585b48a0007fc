"""All rewritings of plans, each an identity of real numbers: only rounding may move.

Live ones keep the module's own parameters, so that gradients reach them: norms with stored statistics go into the linear map
before them (`folded`); a linear map moves before the sum over neighbours where it is computed once for all samples or makes
the sum narrower (`lifted`), and behind it where only the classified nodes are summed at (`sunk`). A `frozen` plan copies its
weights, centres layer norms in the linear map before them, and writes into states that nothing else will read.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from unswayed.sampling.engines.plans import rowwise
from unswayed.sampling.engines.plans.layers import Layer, Sums, Symmetric, plus
from unswayed.sampling.engines.plans.plan import Builder, Step, Steps, bypassed, uses_of
from unswayed.sampling.engines.plans.steps import Linear, Plus, Weight

AT_ONCE = 64  # features: a product this wide costs no more than a narrower one with a linear map after it
ADDING = (torch.add, operator.add, plus)  # of two states: into new memory, or into that of the first
Worth = Callable[[int, int, int], bool]  # of a depth, and of how many numbers a map gives and takes


class Affine(Linear):
    """A linear map with constants of its own."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight = weight.detach().clone()
        self.bias = None if bias is None else bias.detach().clone()

    def centred(self) -> "Affine":
        """This map less its mean over the features."""
        return Affine(_centred(self.weight), None if self.bias is None else _centred(self.bias))


def _centred(numbers: Tensor) -> Tensor:
    """Less their mean over the first dimension, found in double precision."""
    return (numbers.double() - numbers.double().mean(0)).to(numbers.dtype)


LINEAR = (*rowwise.LINEARS, Linear)


def folded(steps: Sequence[Step]) -> Steps:
    """The plan of these steps, with norms folded into the linear layers before them."""
    out = bypassed(steps, _idle)
    uses = uses_of(out)
    for i, step in enumerate(out):
        linear = out[step.inputs[0]].run if step.inputs else None
        if isinstance(step.run, rowwise.StoredNorm) and isinstance(linear, rowwise.LINEARS):
            j = step.inputs[0]
            if uses[j] == 1:
                out[j] = replace(out[j], run=rowwise.NormedLinear(linear, step.run))
                out[i] = replace(step, run=rowwise.unchanged)
    return Steps(tuple(bypassed(out, _idle)))


def lifted(plan: Steps, worth: Worth = lambda depth, given, taken: depth == 1 or given <= taken) -> Steps:
    """Linear maps right after a sum over neighbours act before it, where that is worth it: by default where it is no wider or
    is done once for all."""
    uses = uses_of(plan.steps)
    moved = {s.inputs[0]: i for i, s in enumerate(plan.steps) if _may_lift(plan, i, uses, worth)}
    build, place = Builder(), [0] * len(plan.steps)
    for i, step in enumerate(plan.steps):
        build.name, inputs = step.name, tuple(place[j] for j in step.inputs)
        if i in moved:
            place[i] = build.rowwise(Weight(plan.steps[moved[i]].run), *inputs)
        elif step.inputs and moved.get(step.inputs[0]) == i:
            sums: Any = plan.steps[step.inputs[0]].layer
            place[i] = build.conv(sums, place[step.inputs[0]])
            if step.run.bias is not None:  # type: ignore[union-attr]
                place[i] = build.rowwise(Plus(step.run), place[i])
        else:
            place[i] = build.add(step.kind, *inputs, run=step.run, layer=step.layer, pool=step.pool)
    return Steps(tuple(build.steps))


def _may_lift(plan: Steps, i: int, uses: Mapping[int, int], worth: Worth) -> bool:
    linear: Any = plan.steps[i].run
    if not isinstance(linear, LINEAR):
        return False
    before = plan.steps[plan.steps[i].inputs[0]]
    sums = before.layer is not None and before.layer.linear and uses[plan.steps[i].inputs[0]] == 1
    return sums and worth(before.depth, *linear.weight.shape)


def sunk(plan: Steps) -> Steps:
    """Linear maps without bias right before a last sum act after it: on the classified nodes instead of on all."""
    uses, steps = uses_of(plan.steps), list(plan.steps)
    for i, step in enumerate(steps):
        if step.layer is None or not step.layer.linear or i in plan.everywhere:
            continue
        j = step.inputs[0]
        linear: Any = steps[j].run
        if uses[j] == 1 and steps[j].depth and isinstance(linear, LINEAR) and linear.bias is None:
            steps[j] = replace(step, inputs=steps[j].inputs)
            steps[i] = Step(step.name, "rowwise", (j,), linear, depth=step.depth)
    return Steps(tuple(steps))


def settled(plan: Steps) -> Steps:
    """The plan in evaluation mode: no dropout, and biases, rectifiers and sums write into states that nothing else reads."""
    steps = bypassed(plan.steps, lambda step: _idle(step) or type(step.run) in rowwise.DROPOUTS)
    uses = uses_of(steps)
    for i, step in enumerate(steps):
        before = steps[step.inputs[0]] if step.inputs else step
        fresh = before.layer is not None or isinstance(before.run, (*LINEAR, Plus, Scaled))
        fresh = fresh or before.run in (*ADDING, torch.relu_)
        if fresh and uses[step.inputs[0]] == 1:
            if type(step.layer) is Symmetric and before.depth:
                steps[i] = replace(step, layer=Symmetric(step.layer.loops, into=True))
            elif isinstance(step.run, Plus):
                steps[i] = replace(step, run=Plus(step.run.owner, into=True))
            elif step.run is torch.relu:
                steps[i] = replace(step, run=torch.relu_)
            elif step.run in ADDING and len(step.inputs) == 2 and before.depth == step.depth:
                steps[i] = replace(step, run=plus)
    return Steps(tuple(steps))


def _idle(step: Step) -> bool:
    return step.run is rowwise.unchanged


class Scaled:
    """The rest of a layer norm whose input is centred already; writes into its input.

    torch's own is several times slower on rows as short as these, and one more state of a chunk would leave the cache.
    """

    def __init__(self, norm: nn.LayerNorm) -> None:
        self.width, self.eps = norm.normalized_shape[0], norm.eps
        self.weight, self.bias = norm.weight.detach() * self.width**0.5, norm.bias.detach().clone()

    def __call__(self, z: Tensor) -> Tensor:
        """Divide each row by its standard deviation, then scale and shift the features."""
        squares = torch.linalg.vector_norm(z, dim=-1, keepdim=True).square_()
        z.mul_(squares.add_(self.width * self.eps).rsqrt_())
        return torch.addcmul(self.bias, z, self.weight, out=z)


class Sum(Layer):
    """The sum over neighbours, `weight` times the node itself, and a bias: one product with an adjacency matrix that has
    `diagonal`, and one for each self-loop of the graph, on its diagonal."""

    linear = True

    def __init__(self, weight: float, diagonal: float, bias: Tensor | None = None) -> None:
        self.weight, self.diagonal, self.bias = weight, diagonal, bias

    def over(self, sent: tuple[Tensor, ...], around: Any) -> Tensor:
        """States [1, N, F] that are the same in all samples need one product only."""
        h = sent[0]
        adjacency: Tensor = around.adjacency
        if len(h) == 1:
            flat = adjacency.flatten(0, 1)
            if h.shape[-1] == 1 and self.bias is None:  # degrees: products with thin matrices are slow
                total = flat @ h[0, :, 0]
            else:
                total = flat @ h[0] if self.bias is None else torch.addmm(self.bias, flat, h[0])
            total = total.view(*adjacency.shape[:2], -1)
        elif self.bias is None:
            total = torch.bmm(adjacency, h)
        else:
            total = torch.baddbmm(self.bias, adjacency, h)
        return total if self.weight == self.diagonal else total.add_(h, alpha=self.weight - self.diagonal)


def frozen(plan: Steps) -> Steps:
    """The plan for evaluation only; `diagonal` says what its layers expect on the adjacency's diagonal."""
    steps = _rewritten([_constant(step) for step in _plain_sums(plan.steps)], _norm)
    steps = _rewritten(list(lifted(Steps(tuple(steps)), _narrows).steps), _with_bias)
    return settled(Steps(tuple(steps)))


def _narrows(depth: int, given: int, taken: int) -> bool:
    """Of matrices: a map gives fewer numbers than it takes, or is applied once for all."""
    return given < taken or (depth == 1 and given <= AT_ONCE)


def diagonal(plan: Steps) -> float | None:
    """What the layers of a frozen plan expect on the diagonal, apart from loops; None if neither that nor loops."""
    return next((s.layer.diagonal for s in plan.steps if isinstance(s.layer, Sum)), None)


def _plain_sums(steps: tuple[Step, ...]) -> list[Step]:
    """The steps with one diagonal for all layers, where all of them are plain sums."""
    layers: list[Any] = [step.layer for step in steps if step.layer is not None]
    if not layers or any(type(layer) is not Sums or layer.mean for layer in layers):
        return list(steps)
    common = float(layers[-1].loop)
    changed = [None if s.layer is None else Sum(float(s.layer.loop), common) for s in steps]  # type: ignore[attr-defined]
    return [s if new is None else replace(s, layer=new) for s, new in zip(steps, changed, strict=True)]


def _constant(step: Step) -> Step:
    linear: Any = step.run
    known = isinstance(linear, LINEAR)
    return replace(step, run=Affine(linear.weight, linear.bias)) if known else step


Pair = tuple[Step, Step]


def _rewritten(steps: list[Step], rule: Callable[[Step, Step], Pair | None]) -> list[Step]:
    """The steps after `rule` has seen each step together with the one before it, where nothing else uses that one."""
    steps = bypassed(steps, _idle)
    uses = uses_of(steps)
    for i, step in enumerate(steps):
        if len(step.inputs) == 1 and uses[step.inputs[0]] == 1:
            pair = rule(steps[step.inputs[0]], step)
            if pair is not None:
                steps[step.inputs[0]], steps[i] = pair
    return bypassed(steps, _idle)


def _norm(before: Step, step: Step) -> Pair | None:
    """A layer norm after a linear map; norms with stored statistics were folded before."""
    linear, norm = before.run, step.run
    if not isinstance(linear, Affine):
        return None
    if type(norm) is nn.LayerNorm and norm.weight is not None and norm.bias is not None:
        return replace(before, run=linear.centred()), replace(step, run=Scaled(norm))
    return None


def _with_bias(before: Step, step: Step) -> Pair | None:
    """A bias after a sum over neighbours is added by the same product."""
    layer, bias = before.layer, step.run
    if not isinstance(layer, Sum) or not isinstance(bias, Plus):
        return None
    idle = replace(before, kind="rowwise", layer=None, run=rowwise.unchanged)
    summed = Sum(layer.weight, layer.diagonal, bias.owner.bias)
    return idle, replace(step, kind="conv", run=None, layer=summed)
