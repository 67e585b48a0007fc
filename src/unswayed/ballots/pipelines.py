"""What a pipeline's steps make of a column that holds 0 or 1, where every step treats each column by itself or selects some."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unswayed.errors import InputError

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# scikit-learn's transformers that map each column by itself, whatever the others hold
BY_COLUMN = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "Binarizer")
WHY_NOT = {
    "Normalizer": "divides each row by its own length",
    "TfidfTransformer": "divides each row by its own length",
    "PolynomialFeatures": "multiplies columns with each other",
    "PCA": "mixes columns",
    "TruncatedSVD": "mixes columns",
}


@dataclass(frozen=True, eq=False)
class FittedColumns:
    """The columns that reach the final estimator: `source` says which of the `width` entries each one is, `low` and `high`
    what it holds where that entry is 0 and 1, in the type in which `predict` computes; `single` both, of rows in single precision."""

    final: Any
    width: int
    source: IntArray
    low: FloatArray
    high: FloatArray
    single: FloatArray

    def map(self, function: Callable[[FloatArray], FloatArray]) -> "FittedColumns":
        """The columns after a function of each value alone."""
        return replace(self, low=function(self.low), high=function(self.high), single=function(self.single))

    @property
    def apart(self) -> FloatArray:
        """How far what a column holds can be from itself, by the precision of the rows."""
        both = np.stack([self.low, self.high]).astype(np.float64)
        return np.asarray(abs(both - self.single.astype(np.float64)).max(axis=0))


def through_steps(model: Any, width: int) -> FittedColumns:
    """Both values of every entry, carried through the pipeline by its own steps; a bare estimator has none."""
    steps = list(model.steps) if hasattr(model, "steps") else [("", model)]
    _check_predicts(model, steps[-1][1])
    source = np.arange(width)
    both: Any = np.array([[False] * width, [True] * width])
    single = both.astype(np.float32)
    for name, step in steps[:-1]:
        if step is None or step == "passthrough":
            continue
        source = source[_kept(name, step, len(source))]
        both, single = _carried(name, step, both), _carried(name, step, single)
        if not both.shape == single.shape == (2, len(source)):
            raise InputError(f"The step '{name}' does not give one column for each it keeps.")
    return FittedColumns(steps[-1][1], width, source, both[0], both[1], single)


def _check_predicts(model: Any, final: Any) -> None:
    """Refuse a pipeline, or an estimator, that somebody has taught to predict otherwise."""
    own = [part for part in (model, final) if {"predict", "decision_function"} & set(vars(part))]
    if model is not final and owner(type(model), "predict") != "Pipeline":
        own.append(model)
    if own:
        raise InputError(
            f"This {type(own[0]).__name__} predicts in a way of its own, which its coefficients may not tell; use poll for it."
        )


def owner(kind: type, method: str) -> str:
    """The class of scikit-learn's that defines a method; '' where it is somebody else's."""
    for base in kind.__mro__:
        if method in vars(base):
            return base.__name__ if base.__module__.startswith("sklearn.") else ""
    return ""


def is_known(part: Any, *methods: str) -> bool:
    """Whether this is an object of scikit-learn's own class, and nobody has given it one of these methods anew."""
    return type(part).__module__.startswith("sklearn.") and not set(methods) & set(vars(part))


def _kept(name: str, step: Any, columns: int) -> Any:
    """Which columns a step lets through; refused where it is not known to treat each by itself."""
    kind, ours = type(step).__name__, is_known(step, "transform")
    if ours and callable(getattr(step, "get_support", None)):
        return np.asarray(step.get_support())
    if ours and kind in BY_COLUMN:
        return np.ones(columns, dtype=bool)
    reason = WHY_NOT.get(kind, "is not known to treat each column by itself")
    raise InputError(
        f"The pipeline's step '{name}' ({kind}) {reason}, so the decision is not linear in the entries; "
        "leave it out, or use poll."
    )


def _carried(name: str, step: Any, both: Any) -> Any:
    try:
        carried = step.transform(both)
    except Exception as error:  # a step that was fitted on something else
        raise InputError(
            f"The pipeline's step '{name}' failed on rows of zeros and ones: {error}."
        ) from error
    dense = np.asarray(carried.todense() if hasattr(carried, "todense") else carried)
    if _otherwise_where_sparse(step, both, dense):
        raise InputError(
            f"The pipeline's step '{name}' ({type(step).__name__}) gives other values for sparse rows than for dense ones, so there is "
            "no one function to prove; for a RobustScaler use with_centering=False."
        )
    return dense


def _otherwise_where_sparse(step: Any, both: Any, dense: Any) -> bool:
    """Whether the step takes sparse rows and silently makes something else of them."""
    from scipy.sparse import csr_array

    try:
        carried = step.transform(csr_array(np.asarray(both, dtype=np.float64)))
    except Exception:  # it says so, which is well
        return False
    values = np.asarray(carried.todense() if hasattr(carried, "todense") else carried)
    return values.shape != dense.shape or not np.allclose(values, dense)
