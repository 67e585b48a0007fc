"""How a classifier wants to be called, told by the names of the parameters of its call or forward."""

import inspect
from collections.abc import Callable
from typing import Any

from torch import nn

from unswayed.errors import InputError, UnsoundModel
from unswayed.sampling.threats.base import Threat

DENSE_NAMES = ("adj", "adjacency", "adj_matrix", "adj_t")
EDGE_NAMES = ("edge_attr", "edge_weight")
GIVEN = ("x", "edge_index", "batch", *DENSE_NAMES)
VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def style_of(model: Any, threat: Threat) -> str:
    """How the classifier wants to be asked: "bits", "edges", "data" or "dense"; refused where it needs anything else."""
    if threat is not None and threat.style is not None:
        return threat.style
    if not callable(model):
        raise InputError(f"The classifier must be callable, not {type(model).__name__}.")
    names, required, open_ended = parameter_names(model)
    if "x_dict" in names:
        raise InputError(
            "The classifier reads a HeteroData: name the attacked relation, threat = Relation(data, relation, nodes), "
            "and ask threat.asking(model)."
        )
    if "edge_index" not in names:
        if len(names) > 1 and names[1] in DENSE_NAMES:
            return "dense"
        if len(required) == 1 and names[0] != "x" and not open_ended:
            return "data"
    made = EDGE_NAMES if threat is not None and threat.edge_function is not None else ()
    missing = [name for name in required[2:] if name not in (*GIVEN, *made)]
    if missing:
        rule = "give the threat a rule that makes it for any two nodes, with edge_attr="
        mend = rule if set(missing) <= set(EDGE_NAMES) else "give it a default that the answer can do without"
        raise UnsoundModel(
            f"The classifier's forward needs {', '.join(missing)}, which a noisy graph does not have; {mend}."
        )
    return "edges"


def parameter_names(model: Any) -> tuple[list[str], list[str], bool]:
    """(names of all parameters that can be given, the required ones, whether it takes any positional ones)."""
    if isinstance(listed := getattr(model, "signature", None), list):  # torch_geometric.nn.Sequential
        return [str(name) for name in listed], [str(name) for name in listed], False
    parameters = parameters_of(model)
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    required = [p.name for p in named if p.default is p.empty]
    return [p.name for p in named], required, any(p.kind is p.VAR_POSITIONAL for p in parameters)


def forward_names(model: Any) -> list[str]:
    """The names of all parameters that the classifier can be given."""
    return parameter_names(model)[0]


def parameters_of(model: Any) -> list[inspect.Parameter]:
    """The parameters of a call: of the module's forward, or of its own `__call__` where that names them."""
    function: Callable[..., Any] = getattr(model, "_orig_mod", model)
    function = getattr(function, "called_like", function)  # a wrapper of ours, asked as what it wraps
    try:
        called = list(inspect.signature(function).parameters.values())
        if isinstance(function, nn.Module) and all(p.kind in VARIABLE for p in called):
            called = list(inspect.signature(function.forward).parameters.values())
    except (TypeError, ValueError):
        return [inspect.Parameter("arguments", inspect.Parameter.VAR_POSITIONAL)]
    return called
