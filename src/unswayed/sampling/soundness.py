"""Refuses classifiers whose votes would not be independent answers of one fixed function, and says why.

A certificate is about a function of the noisy structure alone. Anything else that an answer depends on (what was asked
before, random numbers of its own, the other graphs in the batch, a cached propagation) makes it worthless.
"""

import copy
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unswayed.errors import InputError, UnsoundModel
from unswayed.sampling.classifier import Classifier
from unswayed.sampling.digest import settings_of
from unswayed.sampling.inputs import Graph
from unswayed.sampling.memory import is_out_of_memory
from unswayed.sampling.signatures import GIVEN, parameters_of
from unswayed.sampling.threats.base import update_digest

HARMLESS = (*GIVEN, "ptr", "batch_size", "num_sampled_nodes_per_hop", "num_sampled_edges_per_hop")
TOLERANCE = (
    1e-4  # of a row's largest logit: rounding differs between batch shapes, real coupling is far larger
)


def check_modules(classifier: Classifier) -> None:
    """Refuse cached propagation and batch-norm or dropout that evaluation mode does not switch off."""
    if not isinstance(classifier.model, nn.Module):
        return
    with classifier.evaluation():
        for name, module in classifier.model.named_modules():
            if (obstacle := _obstacle(module)) is not None:
                raise UnsoundModel(f"{name or 'The model'} ({type(module).__name__}) {obstacle}")


def _obstacle(module: nn.Module) -> str | None:
    if getattr(module, "cached", False) is True:
        return "caches its propagation and would ignore the noise; build it with cached=False."
    normalises = isinstance(module, nn.modules.batchnorm._BatchNorm)
    if normalises and (module.training or module.running_mean is None):
        return "normalises by the statistics of the batch, which couples samples; use running statistics and evaluation mode."
    if isinstance(module, nn.modules.dropout._DropoutNd) and module.training and module.p > 0:
        return "stays in training mode after eval(), so its answers are random; do not override train() or eval()."
    return None


def check_edge_data(classifier: Classifier, graph: Graph) -> None:
    """Refuse edge attributes that the module could be given: a new edge has none. `forward(data)` is watched as it reads."""
    if classifier.style == "data":
        if graph.kind:
            raise UnsoundModel(
                f"The data is a {graph.kind}, and forward(data) may read what only that class has; give a plain Data whose "
                "tensors have one row a node."
            )
    elif graph.edge_data and (taken := _takes_more(classifier)) is not None:
        raise UnsoundModel(
            f"The data carries {graph.edge_data[0]} and the classifier's forward takes {taken}, but an edge that noise adds "
            "has no attributes; say how to make them, with edge_attr= a function of the two end nodes, or remove it from the data or from forward."
        )


def _takes_more(classifier: Classifier) -> str | None:
    """The first parameter, beyond the graph itself, by which edge attributes could reach the module."""
    for number, p in enumerate(parameters_of(classifier.model)):
        open_ended = p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ignored = getattr(classifier.model, f"supports_{p.name}", None) is False  # PyG's models say so
        if (open_ended or (number > 1 and p.default is None)) and p.name not in HARMLESS and not ignored:
            return p.name
    return None


def differs(one: Tensor, other: Tensor) -> bool:
    """Whether two answers differ by more than rounding: each row by its own largest logit, since one that is large must not hide
    another, and 1, or less where logits are usually smaller."""
    if not one.is_floating_point():
        return not bool((one == other).all())
    if bool((one.isnan() != other.isnan()).any()):
        return True
    if not one.numel():
        return False
    largest = one.nan_to_num(0, 0, 0).abs().amax(dim=-1, keepdim=True)
    scale = largest + largest.median().clamp(max=1)
    both = one.nan_to_num(0, 1e30, -1e30) - other.nan_to_num(0, 1e30, -1e30)
    return bool((both.abs() > TOLERANCE * scale).any())


def check_repeatable(classifier: Classifier, ask: Callable[[Classifier, int], Tensor]) -> Tensor:
    """The answer to noisy input 0, refused if it changes when asked again or with what was asked in between, and if random
    numbers are drawn for it."""
    fresh, before = _copy_of(classifier), _settings(classifier)
    first = _first(classifier, ask)
    if differs(first, ask(classifier, 0)):
        raise UnsoundModel(
            "The classifier answered differently to two identical calls; something random is still on "
            "(for example functional dropout without training=self.training)."
        )
    second = ask(classifier, 1)
    changed = [] if fresh is None else _unlike(classifier.model, fresh.model)
    if differs(first, _undrawn(lambda: ask(classifier, 0))) or (
        fresh is not None and differs(second, ask(fresh, 1))
    ):
        raise UnsoundModel(
            "The classifier's answer depends on what it was asked before (a cache or other state); remove it."
        )
    changed += [name for name, value in _settings(classifier).items() if before.get(name) != value]
    if changed:
        raise UnsoundModel(
            f"The classifier changes its own {changed[0]} when it is asked, so its answers may depend on how often, or what, it "
            "was asked before; remove that (a tensor kept to be looked at is allowed)."
        )
    return first


def _first(classifier: Classifier, ask: Callable[[Classifier, int], Tensor]) -> Tensor:
    """The first answer; where the classifier fails, in words that name what it was given."""
    try:
        return ask(classifier, 0)
    except (RuntimeError, TypeError, IndexError) as error:
        if is_out_of_memory(error):
            raise
        graph = getattr(classifier.threat, "graph", None)
        x = getattr(graph, "x", None)
        given = "" if x is None else f" ({x.shape[1]} features a node, {str(x.dtype).removeprefix('torch.')})"
        raise InputError(
            f"The classifier failed when it was first asked{given}: {' '.join(str(error).split())}. Try it by hand, on the data as they are."
        ) from error


def _undrawn(ask: Callable[[], Tensor]) -> Tensor:
    """The answer, refused if random numbers are drawn for it: the classifier is not one function of the structure then."""
    before = _random_states()
    said = ask()
    if not all(map(_equal, before, _random_states())):
        raise UnsoundModel(
            "The classifier draws random numbers while it answers, so it is not one function of the structure; "
            "switch off what is random (dropout, sampling) in evaluation mode."
        )
    return said


def _random_states() -> list[Any]:
    """Of every generator that a module may draw from."""
    cards = [torch.cuda.get_rng_state()] if torch.cuda.is_available() else []
    numbers: Any = np.random.get_state(legacy=False)["state"]  # noqa: NPY002 (modules may still draw from it)
    return [random.getstate(), *numbers.values(), torch.get_rng_state(), *cards]


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor):
        return torch.equal(one, other)
    return bool(np.array_equal(one, other)) if isinstance(one, np.ndarray) else bool(one == other)


def _settings(classifier: Classifier) -> dict[str, bytes]:
    return settings_of(classifier.model) if isinstance(classifier.model, nn.Module) else {}


def _unlike(model: nn.Module, other: nn.Module) -> list[str]:
    """The names of parameters and buffers that two modules do not have in common to the last bit."""
    mine, theirs = ({**dict(m.named_parameters()), **dict(m.named_buffers())} for m in (model, other))
    return [name for name, value in mine.items() if name not in theirs or not _alike(value, theirs[name])]


def _alike(one: Tensor, other: Tensor) -> bool:
    plain = one.layout == other.layout == torch.strided
    return (plain and torch.equal(one, other)) or update_digest("", one) == update_digest("", other)


def _copy_of(classifier: Classifier) -> Classifier | None:
    """The classifier with a deep copy of its module, which no call has touched; None where it cannot be copied."""
    if not isinstance(classifier.model, nn.Module):
        return None
    try:
        model: Any = copy.deepcopy(classifier.model)
    except Exception:  # anything a user's module does not let be copied
        return None
    twin = copy.copy(classifier)
    twin.model = model
    return twin


def check_batching(classifier: Classifier, alone: list[Tensor], together: Callable[[], Tensor]) -> None:
    """Ask one graph (or row) at a time from now on if its answer changes with its neighbours in the batch."""
    if not classifier.can_batch:
        classifier.batched = False
        return
    what = "row" if classifier.style == "bits" else "graph"
    try:
        coupled = differs(torch.cat(alone), together())
    except UnsoundModel as error:
        coupled, reason = True, str(error)
    except (RuntimeError, IndexError, ValueError, AssertionError, TypeError) as error:
        coupled, reason = True, f"it failed on a batch: {error}"
    else:
        reason = f"a {what}'s output changes with the other {what}s in its batch"
    if coupled:
        classifier.ask_alone(what, reason)
