"""Operations that act on each node's features alone, so that they may run on any stack of node states.

A name that is not listed here is not known to be row-wise, and the recogniser refuses it: a softmax over nodes or a
batch norm in training mode would let one node's state leak into another's.
"""

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import torch
import torch.nn.functional as fn
from torch import Tensor, nn
from torch_geometric import nn as gnn

from unswayed.errors import Unsupported
from unswayed.sampling.engines.plans.steps import Linear

POINTWISE_MODULES: tuple[type[nn.Module], ...] = (
    *(nn.ReLU, nn.ELU, nn.LeakyReLU, nn.GELU, nn.SiLU, nn.SELU, nn.Tanh, nn.Sigmoid, nn.Softplus),
    *(nn.Hardtanh, nn.PReLU, nn.Identity),
)
DROPOUTS = (nn.Dropout, nn.AlphaDropout)
LINEARS = (nn.Linear, gnn.Linear)
Program = Callable[..., Tensor]

# Each maps the operation a model may call to the one that is run, which never writes into its input.
IN_PLACE: dict[Any, Program] = {
    torch.relu_: torch.relu,
    fn.relu_: torch.relu,
    fn.elu_: fn.elu,
    fn.leaky_relu_: fn.leaky_relu,
    operator.iadd: operator.add,
    operator.isub: operator.sub,
    operator.imul: operator.mul,
    operator.itruediv: operator.truediv,
    "relu_": torch.relu,
}
AS_THEY_ARE: tuple[Program, ...] = (
    *(fn.elu, fn.leaky_relu, fn.gelu, fn.silu, fn.selu, fn.softplus, fn.hardtanh),
    *(torch.relu, torch.tanh, torch.sigmoid, torch.exp, torch.neg, torch.abs, torch.ones_like),
    *(torch.add, torch.sub, torch.mul, torch.div, torch.maximum, torch.clamp),
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.neg),
)
POINTWISE: dict[Any, Program] = {
    **{function: function for function in AS_THEY_ARE},
    fn.relu: torch.relu,
    fn.tanh: torch.tanh,
    fn.sigmoid: torch.sigmoid,
    **IN_PLACE,
}
NAMED = ("relu", "tanh", "sigmoid", "exp", "neg", "abs", "add", "sub", "mul", "div", "clamp")
METHODS: dict[str, Program] = {
    **{name: getattr(torch, name) for name in NAMED},
    "relu_": torch.relu,
    "contiguous": lambda x: x,
    "float": lambda x: x,  # the engine's own precision decides
}
# modules, functions and methods that may give back the very tensor that they were given
HANDING_ON = (nn.Identity, *DROPOUTS, fn.dropout, torch.dropout, "contiguous", "float", gnn.APPNP)
ALONG_FEATURES: dict[Any, Program] = {
    **dict.fromkeys((fn.log_softmax, torch.log_softmax, "log_softmax"), fn.log_softmax),
    **dict.fromkeys((fn.softmax, torch.softmax, "softmax"), fn.softmax),
    fn.normalize: fn.normalize,
}


def unchanged(x: Tensor) -> Tensor:
    """Dropout in evaluation mode."""
    return x


def _flat(module: nn.Module) -> Program:
    """`module` applied to the features of every node of a stack, whatever the stack's leading dimensions."""
    return lambda x: module(x.reshape(-1, x.shape[-1])).reshape(*x.shape[:-1], -1)


class StoredNorm:
    """Batch normalisation with the stored statistics: in training mode, too, since batches of stacks mean nothing."""

    def __init__(self, norm: nn.BatchNorm1d) -> None:
        self.norm = norm

    def __call__(self, x: Tensor) -> Tensor:
        """Normalise each feature."""
        norm, flat = self.norm, x.reshape(-1, x.shape[-1])
        mean, variance = norm.running_mean, norm.running_var
        done = fn.batch_norm(flat, mean, variance, norm.weight, norm.bias, False, 0.0, norm.eps)
        return done.reshape(x.shape)


class NormedLinear(Linear):
    """A linear layer and the stored norm after it, as one linear map; the gradient reaches both."""

    def __init__(self, linear: Any, after: StoredNorm) -> None:
        self.linear, self.norm = linear, after.norm

    @property
    def _scale(self) -> Tensor:
        assert self.norm.running_var is not None
        scale = (self.norm.running_var + self.norm.eps).rsqrt()
        return scale if self.norm.weight is None else scale * self.norm.weight

    @property
    def weight(self) -> Tensor:
        """The linear map's rows, scaled."""
        weight: Tensor = self.linear.weight * self._scale[:, None]
        return weight

    @property
    def bias(self) -> Tensor:
        """The linear map's bias less the mean, scaled, and the norm's own bias."""
        mean = self.norm.running_mean
        assert mean is not None
        shift = -mean if self.linear.bias is None else self.linear.bias - mean
        bias: Tensor = shift * self._scale
        return bias if self.norm.bias is None else bias + self.norm.bias


def _functional(module: nn.Module) -> Program:
    """An activation without its `inplace` flag, because a stack of states may be shared."""
    if type(module) is nn.ReLU:
        return torch.relu
    if type(module) is nn.Identity:
        return unchanged
    if type(module) is nn.ELU:
        return lambda x: fn.elu(x, module.alpha)
    if type(module) is nn.LeakyReLU:
        return lambda x: fn.leaky_relu(x, module.negative_slope)
    if getattr(module, "inplace", False):
        raise Unsupported(f"{type(module).__name__}(inplace=True) is not recognised; use inplace=False.")
    return module if type(module) is not nn.PReLU else _flat(module)


def known_module(module: nn.Module) -> bool:
    """Whether `module_program` may know this class (its settings are checked there)."""
    norms = (nn.LayerNorm, nn.BatchNorm1d, gnn.BatchNorm, gnn.LayerNorm, gnn.GraphNorm)
    return type(module) in (*POINTWISE_MODULES, *DROPOUTS, *LINEARS, *norms, nn.LogSoftmax, nn.Softmax)


def module_program(module: Any, name: str) -> Program:
    """What the module does to a stack of node states; Unsupported if that is not a function of each node alone."""
    if type(module) is gnn.BatchNorm:
        module = module.module
    if type(module) in POINTWISE_MODULES:
        return _functional(module)
    program: Program = module
    if type(module) in (*DROPOUTS, *LINEARS):
        return program
    if type(module) is nn.BatchNorm1d and module.running_mean is not None:
        return StoredNorm(module)
    if type(module) is nn.LayerNorm and len(module.normalized_shape) == 1:
        return program
    if type(module) is gnn.LayerNorm and module.mode == "node":
        return lambda x: fn.layer_norm(x, (x.shape[-1],), module.weight, module.bias, module.eps)
    if type(module) in (nn.LogSoftmax, nn.Softmax) and module.dim in (1, -1):
        along = fn.log_softmax if type(module) is nn.LogSoftmax else fn.softmax
        return lambda x: along(x, dim=-1)
    raise Unsupported(f"The layer '{name}' ({module}) is not known to act on each node alone.")


def jumping(module: Any) -> Program:
    """What JumpingKnowledge makes of the states of several layers, for each node alone."""
    if module.mode == "cat":
        return lambda *tensors: concatenate(list(tensors))
    if module.mode == "max":
        return lambda *tensors: reduce(torch.maximum, tensors)

    def remembered(*tensors: Tensor) -> Tensor:
        alike = _alike(tensors)
        out: Tensor = module([t.reshape(-1, t.shape[-1]) for t in alike]).reshape(*alike[0].shape[:-1], -1)
        return out

    return remembered


def concatenate(tensors: list[Tensor]) -> Tensor:
    """Concatenation of features, after broadcasting what is the same for all samples or targets."""
    return torch.cat(_alike(tensors), dim=-1)


def _alike(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The same, with all leading dimensions broadcast."""
    lead = np.broadcast_shapes(*(t.shape[:-1] for t in tensors))
    return [t.expand(*lead, t.shape[-1]) for t in tensors]
