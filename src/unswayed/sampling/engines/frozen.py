"""A plan as fixed arithmetic: what a dense engine asks a hundred thousand times is simplified once.

Every rewriting is an identity of real numbers, so only rounding may move: norms with stored statistics and the centring of
layer norms go into the linear map before them, the network inside a GIN becomes steps of the plan, and a linear map moves
before the sum over neighbours where it is computed once for all samples or makes the sum narrower. Weights are copied: a
frozen plan is for evaluation only.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as fn
from torch import Tensor, nn

from unswayed.sampling.engines import rowwise
from unswayed.sampling.engines.layers import Layer
from unswayed.sampling.engines.recognise import Step, Steps, plan_of

AT_ONCE = 64  # features: a product this wide costs no more than a narrower one with a linear map after it


class Affine:
    """A linear map with constants of its own."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight = weight.detach().clone()
        self.bias = None if bias is None else bias.detach().clone()

    def __call__(self, x: Tensor) -> Tensor:
        """The map of each node's state, in new memory."""
        return fn.linear(x, self.weight, self.bias)

    def then(self, scale: Tensor, shift: Tensor) -> "Affine":
        """This map, with its outputs scaled and shifted; double precision is rounded once."""
        bias = shift if self.bias is None else self.bias * scale + shift
        return Affine((self.weight * scale[:, None]).to(self.weight.dtype), bias.to(self.weight.dtype))

    def centred(self) -> "Affine":
        """This map less its mean over the features."""
        weight = self.weight.double()
        bias = (
            None
            if self.bias is None
            else (self.bias.double() - self.bias.double().mean()).to(self.bias.dtype)
        )
        return Affine((weight - weight.mean(0)).to(self.weight.dtype), bias)


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

    def __init__(self, weight: float, diagonal: float, bias: Tensor | None = None) -> None:
        super().__init__(None)
        self.weight, self.diagonal, self.bias = weight, diagonal, bias

    def dense(self, h: Tensor, adjacency: Tensor, loops: Tensor) -> Tensor:
        """States [1, N, F] that are the same in all samples need one product only."""
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
    steps = [_constant(step) for step in _spliced(plan.steps)]
    for rule in (_norm, _lift, _rectify):
        steps = _rewritten(steps, rule)
    return plan_of(steps)


def diagonal(plan: Steps) -> float | None:
    """What the layers of a frozen plan expect on the diagonal, apart from loops; None if neither that nor loops."""
    return next((s.layer.diagonal for s in plan.steps if isinstance(s.layer, Sum)), None)


def _spliced(steps: tuple[Step, ...]) -> list[Step]:
    """The steps with the networks of layers in line, where all layers are plain sums and so agree on the diagonal."""
    layers: list[Any] = [step.layer for step in steps if step.layer is not None]
    if not layers or any(layer.network is None for layer in layers):
        return list(steps)
    common = float(layers[-1].loop)
    out: list[Step] = []
    place: list[int] = []
    for step in steps:
        inputs = tuple(place[i] for i in step.inputs)
        if step.layer is None:
            out.append(replace(step, inputs=inputs))
        else:
            layer: Any = step.layer
            out.append(replace(step, inputs=inputs, layer=Sum(float(layer.loop), common)))
            first = len(out) - 1
            out += [
                replace(s, inputs=tuple(first + i for i in s.inputs), depth=step.depth)
                for s in layer.network.steps[1:]
            ]
        place.append(len(out) - 1)
    return out


def _constant(step: Step) -> Step:
    linear: Any = step.run
    known = isinstance(linear, (*rowwise.LINEARS, rowwise.NormedLinear))
    return replace(step, run=Affine(linear.weight, linear.bias)) if known else step


Pair = tuple[Step, Step]


def _rewritten(steps: list[Step], rule: Callable[[Step, Step], Pair | None]) -> list[Step]:
    """The steps after `rule` has seen each step together with the one before it, where nothing else uses that one."""
    steps, users = _bypassed(steps)
    for i, step in enumerate(steps):
        if len(step.inputs) == 1 and users[step.inputs[0]] == 1:
            pair = rule(steps[step.inputs[0]], step)
            if pair is not None:
                steps[step.inputs[0]], steps[i] = pair
    return _bypassed(steps)[0]


def _bypassed(steps: list[Step]) -> tuple[list[Step], list[int]]:
    """The steps without those that change nothing (but the last), and how many inputs take each one's result."""
    out: list[Step] = []
    place: list[int] = []
    for i, step in enumerate(steps):
        if step.run is rowwise.unchanged and i < len(steps) - 1:
            place.append(place[step.inputs[0]])
        else:
            out.append(replace(step, inputs=tuple(place[j] for j in step.inputs)))
            place.append(len(out) - 1)
    users = [0] * len(out)
    for step in out:
        for j in step.inputs:
            users[j] += 1
    return out, users


def _norm(before: Step, step: Step) -> Pair | None:
    """A norm after a linear map."""
    linear, norm = before.run, step.run
    if not isinstance(linear, Affine):
        return None
    if isinstance(norm, rowwise.StoredNorm):
        scale, shift = norm.scale_and_shift()
        return replace(before, run=linear.then(scale, shift)), replace(step, run=rowwise.unchanged)
    if type(norm) is nn.LayerNorm and norm.weight is not None and norm.bias is not None:
        return replace(before, run=linear.centred()), replace(step, run=Scaled(norm))
    return None


def _lift(before: Step, step: Step) -> Pair | None:
    """A sum over neighbours before a linear map that takes more numbers than it gives, or can be applied once for all."""
    layer, linear = before.layer, step.run
    if not isinstance(layer, Sum) or not isinstance(linear, Affine):
        return None
    wide, taken = linear.weight.shape
    if wide >= taken and not (before.depth == 1 and wide <= AT_ONCE):
        return None
    lift = Step(before.name, "rowwise", before.inputs, Affine(linear.weight, None), depth=before.depth - 1)
    # the sum has a bias where it comes after a map that was lifted before
    bias = linear.bias if layer.bias is None else linear(layer.bias)
    lifted = Sum(layer.weight, layer.diagonal, bias)
    return lift, replace(step, kind="conv", run=None, layer=lifted)


def _rectify(before: Step, step: Step) -> Pair | None:
    """A rectifier writes into a state that nothing else will read."""
    fresh = isinstance(before.run, Affine | Scaled) or isinstance(before.layer, Sum)
    return (before, replace(step, run=torch.relu_)) if step.run is torch.relu and fresh else None
