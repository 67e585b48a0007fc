"""What is refused before a classifier is asked, and what its classes are called."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules import module

from unswayed.errors import DoubtfulSetting, InputError, WorldError
from unswayed.naming import check_distinct, check_places, plain
from unswayed.sampling.threats.base import Threat


def check_instance(model: Any) -> None:
    """Refuse a class, a name, weights or a threat where a model is meant."""
    if isinstance(model, type):
        raise InputError(
            f"The model is the class {model.__name__}, not a model of it; make one: {model.__name__}(…)."
        )
    if isinstance(model, Threat):
        raise InputError(
            f"The model comes first and the threat second, not the other way round: {model} is a threat."
        )
    if isinstance(model, str):
        raise InputError(
            f"The model is a name, {model!r}, not a model; make one, or load yours, and hand it over."
        )
    if isinstance(model, Mapping):
        raise InputError(
            "The model is a dict, such as weights alone; load them into a model: model.load_state_dict(…)."
        )


def check_surroundings() -> None:
    """Refuse what would make another function of every module, which no hash of it tells, and no worker knows of."""
    if any(torch.is_autocast_enabled(kind) for kind in ("cpu", "cuda")):
        raise InputError(
            "torch.autocast is on here, under which a model is another function than without it; leave it, or put it into the model's forward."
        )
    if module._global_forward_hooks or module._global_forward_pre_hooks:
        raise InputError(
            "A forward hook on all modules is registered, which may change what any of them is asked or answers; remove it first."
        )


def check_device(device: str) -> None:
    """Refuse a device that torch cannot use here."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        if "out of memory" in str(error).lower():
            raise WorldError(
                f"The memory of device {device!r} is full; try again when other programs have ended, or device='cpu'."
            ) from error
        raise InputError(
            f"This machine has no device {device!r} that torch can use; try device='cpu'."
        ) from error


def check_features(threat: Threat) -> None:
    """Warn of features that are no numbers: most networks answer nothing where these reach, and abstain there for ever."""
    for graph in getattr(threat, "graphs", None) or [getattr(threat, "graph", None)]:
        x = getattr(graph, "x", None)
        if isinstance(x, Tensor) and x.is_floating_point() and bool(x.isnan().any()):
            lost = x.isnan().flatten(1).any(dim=1).nonzero().flatten() if x.ndim > 1 else x.isnan().nonzero()
            warnings.warn(
                f"Node {int(lost[0])} has features that are no numbers (NaN), as {len(lost) - 1:,} others have; a network whose answers they reach "
                "says nothing there, and no vote is counted. Fill them in first.",
                DoubtfulSetting,
                stacklevel=4,
            )
            return


def check_columns(model: Any, threat: Threat) -> None:
    """Refuse a table whose columns are not those that the classifier was fitted on, in the same order."""
    wanted = getattr(model, "n_features_in_", None)
    if threat.style == "bits" and isinstance(wanted, int) and (threat.entries != wanted).any():
        raise InputError(
            f"The rows have {int(threat.entries[0])} columns, but the classifier was fitted on {wanted}."
        )
    fitted, given = getattr(model, "feature_names_in_", None), getattr(threat, "columns", ())
    if fitted is None or isinstance(model, nn.Module):
        return
    known = tuple(map(str, fitted))
    if given and given != known:
        pairs = zip(given, known, strict=False)
        place, (mine, theirs) = next(((i, p) for i, p in enumerate(pairs) if p[0] != p[1]), (0, ("", "")))
        how = (
            f"column {place} is {mine!r} here and {theirs!r} there"
            if mine != theirs
            else "their numbers differ"
        )
        raise InputError(
            f"The columns are not those that the classifier was fitted on: {how}; use x[model.feature_names_in_]."
        )
    if not given and threat.style == "bits":
        warnings.warn(
            "The classifier was fitted on a DataFrame and the rows have no column names; they are taken in the order of the fitted "
            "columns. A DataFrame in Bits would be checked.",
            DoubtfulSetting,
            stacklevel=2,
        )


def as_fitted(model: Any, rows: Any) -> Any:
    """The rows as the classifier was fitted on them: under the names of its columns, where it knows some."""
    names = getattr(model, "feature_names_in_", None)
    if names is None or len(names) != rows.shape[1]:
        return rows
    import pandas as pd  # costs half a second, and only such classifiers need it

    return pd.DataFrame(rows, columns=names)


def named_classes(model: Any, classes: Any) -> tuple[Any, list[Any]]:
    """(How many labels there are, what they are called): by the names given, or by scikit-learn's `classes_`; [] where nobody says."""
    own = None if isinstance(model, nn.Module | type) else getattr(model, "classes_", None)
    known = [] if own is None else list(plain(own))
    if isinstance(classes, Sequence | np.ndarray) and not isinstance(classes, str):
        names = list(plain(classes))
        check_distinct(names)
        check_places(names, known)
        return len(names), names
    return classes, known
