"""What a classifier is: something that labels noisy structures, called the way its own signature asks for.

Accepted forms, told apart by the names of the parameters:

- `forward(x, edge_index)`, with `batch` given by keyword where it is a parameter;
- `forward(data)`, one torch_geometric `Data` or `Batch` (the only required parameter);
- `forward(x, adj)` on dense adjacencies, batched `[B, n, F]`, `[B, n, n]` where the module takes that, else one at a time;
- for `Bits`, a torch module on float rows, an object with `predict`, or any callable on numpy bool rows.

Answers are logits (floating, one column a class) or labels (whole numbers, -1 for no answer; `classes=` is needed then).
"""

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unswayed.errors import InputError, UnsoundModel
from unswayed.sampling.absent import Absent, refusal
from unswayed.sampling.beforehand import as_fitted, check_device, check_instance
from unswayed.sampling.flagged import SEVERAL_COLUMNS, Flagged
from unswayed.sampling.inputs import Graph
from unswayed.sampling.memory import is_out_of_memory
from unswayed.sampling.modes import evaluating
from unswayed.sampling.signatures import EDGE_NAMES, parameter_names, style_of
from unswayed.sampling.threads import Threads
from unswayed.sampling.threats.base import Threat

NO_FEATURES = (
    "The graph has no node features (x is None), and the classifier failed without them ({error}); set data.x, give every node of a "
    "networkx graph an attribute 'x', or hand over (adjacency, features)."
)


ONE_COLUMN = (
    "The classifier answers one number instead of one a class; say above which it flags, with threshold=0 for a logit or threshold=0.5 "
    "after a sigmoid (or unswayed.flagged(model, 0))."
)


class Classifier:
    """A classifier in evaluation mode on its device, whose answers are checked labels; -1 is "no answer"."""

    def __init__(
        self,
        model: Any,
        threat: Threat,
        classes: int | None,
        device: str = "cpu",
        dtype: torch.dtype | None = None,
    ) -> None:
        check_instance(model)
        check_device(device)
        self.model = _placed(model, device, dtype)
        self.threat = threat
        self.device = torch.device(device)
        self.dtype, self.threads = dtype, Threads(device)
        self.labels = getattr(model, "classes_", None) if not isinstance(model, nn.Module) else None
        self.classes = len(self.labels) if self.labels is not None else classes
        if classes is not None and self.classes != classes:
            raise InputError(f"The classifier knows {self.classes} classes, but classes={classes} was given.")
        self.names = parameter_names(model)[0]
        self.style = style_of(model, threat)
        self.per_node = getattr(threat, "nodes", None) is not None
        self.batched = True  # whether several noisy graphs may go into one call; the soundness probe decides
        self.one_by_one_form = "flat"

    @property
    def takes_batch(self) -> bool:
        """Whether the module is told which node belongs to which graph."""
        return self.style == "data" or "batch" in self.names

    @property
    def can_batch(self) -> bool:
        """Whether several noisy graphs can go into one call at all."""
        return self.style in ("dense", "bits") or self.per_node or self.takes_batch

    def logits(self, graph: Graph, x: Tensor | None, edge_index: Tensor, count: int) -> Tensor:
        """The raw answer for `count` noisy versions of `graph`, block-diagonal in `edge_index`: one row an answer."""
        if count > 1 and self.batched:
            try:
                return self._answer(graph, x, edge_index, count)
            except (RuntimeError, IndexError, ValueError, AssertionError, TypeError) as error:
                if is_out_of_memory(error):
                    raise
                self.ask_alone("graph", f"it failed on a batch: {error}")
        if count > 1:
            return torch.cat([self._answer(graph, *one, 1) for one in _apart(graph, x, edge_index, count)])
        return self._answer(graph, x, edge_index, count)

    def ask_alone(self, what: str, reason: str) -> None:
        """Ask one graph (or row) at a time from now on, and say why."""
        self.batched = False
        warnings.warn(
            f"The classifier is asked one noisy {what} at a time, which is slow: {reason.rstrip('.')}.",
            UserWarning,
            stacklevel=2,
        )

    def _answer(self, graph: Graph, x: Tensor | None, edge_index: Tensor, count: int) -> Tensor:
        try:
            size = edge_index.shape[1] + count * graph.num_nodes
            out = self.threads.run(size, lambda: self._ask(graph, x, edge_index, count))
        except (TypeError, AttributeError, RuntimeError) as error:
            if x is not None or isinstance(error, InputError):
                raise
            raise InputError(NO_FEATURES.format(error=" ".join(str(error).split()))) from error
        return self.shaped(out, count * graph.num_nodes if self.per_node else count)

    def _ask(self, graph: Graph, x: Tensor | None, edge_index: Tensor, count: int) -> Any:
        if self.style == "dense":
            return self._ask_dense(graph, x, edge_index, count)
        if self.style == "data":
            return self._ask_data(graph, x, edge_index, count)
        named = {"batch": batch_of(graph, count, edge_index.device)} if "batch" in self.names else {}
        return self.model(x, edge_index, **named, **self._attributes(graph, x, edge_index))

    def _attributes(self, graph: Graph, x: Tensor | None, edge_index: Tensor) -> dict[str, Tensor]:
        """The attributes of these edges under the name by which the module takes them; {} where edges have none."""
        if graph.edge_attr is None:
            return {}
        values = graph.edge_attr(edge_index, graph.num_nodes)
        if values.is_floating_point() and x is not None and x.is_floating_point():
            values = values.to(x.dtype)
        return {self._edge_name(graph.edge_attr.name): values}

    def _edge_name(self, told: str) -> str:
        taken = [name for name in EDGE_NAMES if name in self.names]
        if self.style == "data" or told in taken:
            return told
        if self.style != "edges" or not taken:
            raise InputError(
                "The threat makes edge attributes, and the classifier takes none: its forward has neither edge_attr nor edge_weight."
            )
        return taken[0]

    def _ask_data(self, graph: Graph, x: Tensor | None, edge_index: Tensor, count: int) -> Any:
        """The answer to `forward(data)`; refused if it used anything that a noisy graph does not have."""
        used: list[str] = []
        missing = {name: Absent(name, used) for name in (*graph.edge_data, *graph.left_out)}
        try:
            return self.model(self._data(graph, x, edge_index, count, missing))
        finally:
            if used:
                raise refusal(used[0])

    def _data(
        self, graph: Graph, x: Tensor | None, edge_index: Tensor, count: int, missing: dict[str, Absent]
    ) -> Any:
        from torch_geometric.data import Batch, Data

        extras: dict[str, Any] = missing | self._attributes(graph, x, edge_index)
        extras |= {
            name: value.to(edge_index.device).repeat(count, *[1] * (value.ndim - 1))
            for name, value in graph.extras.items()
        }
        n = graph.num_nodes
        if self.per_node:
            return Data(x=x, edge_index=edge_index, num_nodes=n * count, **extras)
        ptr = torch.arange(count + 1, device=edge_index.device) * n
        batch = batch_of(graph, count, edge_index.device)
        return Batch(x=x, edge_index=edge_index, batch=batch, ptr=ptr, num_nodes=n * count, **extras)

    def _ask_dense(self, graph: Graph, x: Tensor | None, edge_index: Tensor, count: int) -> Any:
        n = graph.num_nodes
        # refused: an adjacency of zeros and ones has no room for them
        _ = self._attributes(graph, x, edge_index)
        kind = x.dtype if x is not None and x.is_floating_point() else self.dtype or torch.get_default_dtype()
        adjacency = torch.zeros((count, n, n), dtype=kind, device=edge_index.device)
        adjacency[edge_index[0] // n, edge_index[0] % n, edge_index[1] % n] = 1
        if count == 1 and self.one_by_one_form == "flat":
            return self.model(x, adjacency[0])
        out = self.model(None if x is None else x.view(count, n, *x.shape[1:]), adjacency)
        return (
            out.reshape(count * n, -1) if self.per_node and isinstance(out, Tensor) and out.ndim == 3 else out
        )

    def bits(self, rows: Tensor) -> Tensor:
        """The raw answer for bool rows: one row an answer."""
        if isinstance(self.model, nn.Module):
            given = rows.to(self.dtype or _dtype_of(self.model))
            return self.shaped(self.threads.run(len(rows), lambda: self.model(given)), len(rows))
        ask = getattr(self.model, "predict", None) or self.model
        return self.shaped(ask(as_fitted(self.model, rows.cpu().numpy())), len(rows))

    def shaped(self, out: Any, rows: int) -> Tensor:
        """The answer as floating [rows, classes] or whole-number [rows], or a refusal that says what came instead."""
        if isinstance(out, list | np.ndarray | np.generic | int | float):
            out = self._named(np.asarray(out))
        if not isinstance(out, Tensor):
            raise UnsoundModel(
                f"The classifier must return one tensor of logits or labels, not {type(out).__name__}; have its forward return that tensor alone."
            )
        floating = out.is_floating_point()
        if out.ndim == 3 and out.shape[0] == 1:
            out = out[0]
        if rows == 1 and out.ndim == (1 if floating else 0):
            out = out[None]
        if out.ndim == 2 and not floating and out.shape == (rows, 1):
            out = out[:, 0]
        if floating and out.ndim == 1 and out.shape[0] == rows > 1:
            raise UnsoundModel(ONE_COLUMN)
        if out.ndim == 3 and isinstance(self.model, Flagged):
            raise UnsoundModel(SEVERAL_COLUMNS)
        if out.ndim != (2 if floating else 1) or out.shape[0] != rows or out.is_complex():
            wanted = (
                "[nodes, classes] logits" if self.per_node else f"[{rows}, classes] logits, one row a graph"
            )
            raise UnsoundModel(
                f"The classifier returned shape {tuple(out.shape)} of {out.dtype} where {wanted} (or as many whole-number labels) were expected."
            )
        answer: Tensor = out
        self._check_classes(answer)
        return answer

    def _named(self, out: Any) -> Tensor:
        """Labels of a scikit-learn classifier as positions in its `classes_`."""
        if self.labels is not None and out.ndim == 1:
            known = np.asarray(self.labels)
            order = np.argsort(known, kind="stable")
            place = order[np.minimum(np.searchsorted(known, out, sorter=order), len(known) - 1)]
            return torch.as_tensor(np.where(known[place] == out, place, -1))
        if out.dtype.kind not in "biuf":
            raise UnsoundModel(
                f"The classifier returned {out.dtype} values; whole-number labels or logits are needed."
            )
        return torch.as_tensor(out)

    def _check_classes(self, out: Tensor) -> None:
        if out.is_floating_point():
            if self.classes is None:
                self.classes = int(out.shape[1])
            if out.shape[1] == 1:
                raise UnsoundModel(ONE_COLUMN)
            if out.shape[1] != self.classes or self.classes < 2:
                raise UnsoundModel(
                    f"The classifier returned {out.shape[1]} columns; {max(self.classes, 2)} classes are needed."
                )
        elif self.classes is None:
            raise InputError(
                "The classifier answers labels, so say how many classes there are with classes=."
            )
        elif out.numel() and (int(out.min()) < -1 or int(out.max()) >= self.classes):
            raise UnsoundModel(f"The classifier answered a label outside -1 .. {self.classes - 1}.")

    def votes(self, out: Tensor) -> Tensor:
        """int64 labels from checked answers of any leading shape; rows with a NaN logit become -1."""
        if not out.is_floating_point():
            return out.long()
        labels: Tensor = out.argmax(dim=-1).masked_fill(out.isnan().any(dim=-1), -1)
        return labels

    @contextmanager
    def evaluation(self) -> Iterator[None]:
        """Evaluation mode without gradients; every module's own mode is restored afterwards."""
        with evaluating(self.model), torch.no_grad():
            yield


def _apart(
    graph: Graph, x: Tensor | None, edge_index: Tensor, count: int
) -> Iterator[tuple[Tensor | None, Tensor]]:
    """The features and edges of each of `count` graphs that stand beside each other."""
    n = graph.num_nodes
    for i in range(count):
        own = edge_index[:, edge_index[0] // n == i] - i * n
        yield None if x is None else x[i * n : (i + 1) * n], own


def batch_of(graph: Graph, count: int, device: torch.device) -> Tensor:
    """int64[count * n]: which noisy graph each node belongs to."""
    return torch.arange(count, device=device).repeat_interleave(graph.num_nodes)


def _placed(model: Any, device: str, dtype: torch.dtype | None) -> Any:
    """The model on its device and type: itself where it is already there, otherwise a copy, so that the caller's stays."""
    if not isinstance(model, nn.Module):
        return model
    tensors = [*model.parameters(), *model.buffers()]
    wanted = torch.device(device)
    moved = any(_elsewhere(tensor.device, wanted) for tensor in tensors)
    cast = dtype is not None and any(t.is_floating_point() and t.dtype != dtype for t in tensors)
    return copy.deepcopy(model).to(device=wanted, dtype=dtype) if moved or cast else model


def _elsewhere(device: torch.device, wanted: torch.device) -> bool:
    """Whether these are two devices; a card without a number is whichever one the model lies on."""
    return device.type != wanted.type or (wanted.index is not None and (device.index or 0) != wanted.index)


def _dtype_of(model: nn.Module) -> torch.dtype:
    floats = (p.dtype for p in model.parameters() if p.is_floating_point())
    return next(floats, torch.get_default_dtype())
