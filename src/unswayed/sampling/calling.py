"""How a module wants to be called, told by the names of its parameters."""

from typing import Any

from unswayed.errors import InputError, UnsoundModel
from unswayed.sampling.signatures import parameter_names
from unswayed.sampling.threats.base import Threat

DENSE_NAMES = ("adj", "adjacency", "adj_matrix", "adj_t")
EDGE_NAMES = ("edge_attr", "edge_weight")
GIVEN = ("x", "edge_index", "batch", *DENSE_NAMES)


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
        raise UnsoundModel(
            f"The classifier's forward needs {', '.join(missing)}, which a noisy graph does not have."
        )
    return "edges"
