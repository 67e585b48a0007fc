"""Linear classifiers of binary rows as whole-number scores, exact but for a guard against the rounding of `predict`.

Everything is read from the fitted attributes; scikit-learn itself is never imported. A column holds 0 or 1, so whatever a
pipeline does to that column alone gives one of two floating numbers, and the decision is linear in the entries.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unswayed.ballots.pipelines import FittedColumns, is_known, owner, through_steps
from unswayed.certificates.proofs import Proofs
from unswayed.certificates.protocol import About
from unswayed.errors import InputError, UnsoundModel, Unsupported
from unswayed.naming import Name, plain
from unswayed.sampling.beforehand import as_fitted
from unswayed.sampling.threats import Threat
from unswayed.theory.ballots import Linear
from unswayed.theory.records import Several

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

# where scikit-learn's `predict` is known: the sign (one row of coefficients) or the first largest of the decision
KNOWN_PREDICTS = ("LinearClassifierMixin", "_RidgeClassifierMixin", "RidgeClassifier", "RidgeClassifierCV")
EXACT = "The fitted coefficients are taken as fixed."
FIXED = f"{EXACT} Margins within the rounding of `predict` are not counted."
BITS = 60  # of the whole numbers; sums of them stay within 64
FINEST = 1000  # binary places at most: one unit must be a floating number
LARGER = 1 + 1e-9  # sums of absolute values round too: by less than this, up to four million terms
HOPELESS = 0.1  # a guard of a larger share of all that is added would leave hardly anything to prove


@dataclass(frozen=True, eq=False)
class Decision:
    """Scores of 0/1 rows in units of 2^−`scale`: base int64[C] plus effects int64[n, C] of the columns that are 1.

    `guard` int64[C] bounds how far rounding, `predict`'s and ours, can move each class's score: a margin above the guards
    of both its classes is one that `predict` finds.
    """

    base: IntArray
    effects: IntArray
    guard: IntArray
    scale: int
    class_names: tuple[Name, ...]

    def scores(self, x: BoolArray) -> IntArray:
        """int64[t, C]: the score of every row."""
        total: IntArray = self.base + x.astype(np.int64) @ self.effects
        return total

    def labels(self, x: BoolArray) -> IntArray:
        """int64[t]: the class with the highest score, the lowest of those that tie."""
        return np.asarray(self.scores(x).argmax(axis=1), dtype=np.int64)

    def margins(self, x: BoolArray, guards: int = 1) -> Iterator[tuple[IntArray, Linear]]:
        """Some rows at a time, those with one label together: (their positions, their exact margins less the guards).

        With `guards` −1 the guards are added instead: who uses up so much surely moves what `predict` says.
        """
        scores = self.scores(x)
        label = scores.argmax(axis=1)
        for own in np.unique(label):
            rows = np.flatnonzero(label == own)
            below = np.arange(len(self.base)) < own
            spare = scores[rows, own, None] - scores[rows] - below - guards * (self.guard + self.guard[own])
            spare[:, own] = 0
            gains = self.effects[:, [own]] - self.effects
            yield rows, Linear(label[rows], spare, gains[None], x[rows])

    def is_exact(self, x: BoolArray) -> bool:
        """Whether one change more than its size surely moves every row, to any rival that could be so near."""
        if not self.guard.any():
            return True
        both = zip(self.margins(x), self.margins(x, guards=-1), strict=True)
        return all(_meet(least.against(), most.against()) for (_, least), (_, most) in both)


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A fitted linear classifier, or a pipeline that ends in one, as something that can be proved."""

    model: Any

    def prove_under(self, threat: Threat) -> Proofs:
        """Exact proofs for rows of bits, for `predict` itself."""
        if threat.kind != "bits":
            raise Unsupported(
                f"{type(self.model).__name__} is read as a classifier of binary rows: prove it under us.Bits(x)."
            )
        x = threat.x.numpy()  # type: ignore[attr-defined]
        decision = read_linear(self.model, x)
        rows, parts = zip(*decision.margins(x), strict=True)
        names, count = decision.class_names, len(decision.class_names)
        return Proofs.of(
            Several.of(parts, rows),
            About(threat.targets, threat.entries, count, threat.ones, threat.describe(), class_names=names),
            exact=decision.is_exact(x),
            told=FIXED if decision.guard.any() else EXACT,
            model={"name": type(self.model).__name__},
            reads="separate",
            unit_scale=2.0**decision.scale,
        )


def _meet(least: IntArray, most: IntArray) -> bool:
    """Whether the two sizes against every rival [rows, C] are one, for rivals that decide the row's own."""
    size = least.min(axis=1, keepdims=True)
    return bool((least == most)[(least == size) & (size >= 0)].all())


def linear_model(model: Any) -> LinearModel | None:
    """The model as a linear one, where it predicts like a scikit-learn estimator; whether it truly is one, its proof finds out."""
    return LinearModel(model) if hasattr(model, "predict") and not isinstance(model, type) else None


def read_linear(model: Any, x: BoolArray) -> Decision:
    """The decision of a fitted linear classifier, or of a pipeline that ends in one, on rows like these; or the reason why not."""
    columns = through_steps(model, x.shape[1])
    decision = _decision(columns, *_weights(columns))
    said = _positions(model, x)
    sure = np.concatenate([rows[part.spare.min(axis=1) >= 0] for rows, part in decision.margins(x)])
    if np.any(said[sure] != decision.labels(x)[sure]):
        raise UnsoundModel(
            f"{type(columns.final).__name__} does not predict what its coefficients say, so they prove nothing about it."
        )
    return decision


def _positions(model: Any, x: BoolArray) -> IntArray:
    """What the model itself predicts, as positions in its classes."""
    said = np.asarray(model.predict(as_fitted(model, x)))
    if said.ndim != 1:
        raise InputError(
            f"{type(model).__name__} gives several labels at a time, of which none is the answer; prove one classifier for each."
        )
    return np.searchsorted(np.asarray(model.classes_), said).astype(np.int64)


def _weights(columns: FittedColumns) -> tuple[FloatArray, FloatArray, FittedColumns]:
    """(weights [rows, m], intercepts [rows], what the columns hold when the final estimator sees them)."""
    final = columns.final
    name = type(final).__name__
    if not isinstance(getattr(final, "classes_", None), np.ndarray):
        raise InputError(
            f"{name} is no fitted classifier of one label; fit it first, or use poll for other models."
        )
    if name == "BernoulliNB" and is_known(final, "predict", "_joint_log_likelihood"):
        return _naive_bayes(columns)
    _check_known(final, name)
    weights, intercept = np.atleast_2d(final.coef_), np.atleast_1d(final.intercept_)
    rows = 1 if len(final.classes_) == 2 else len(final.classes_)
    if weights.shape != (rows, len(columns.low)) or intercept.size not in (1, rows):
        raise InputError(
            f"{name} has coefficients of shape {weights.shape} for {len(final.classes_)} classes, so it does not compare one "
            "score a class; use poll for it."
        )
    return weights, np.broadcast_to(intercept.reshape(-1), (rows,)), columns


def _check_known(final: Any, name: str) -> None:
    """Refuse an estimator whose `predict` is not known to compare linear scores."""
    if hasattr(final, "dual_coef_") or not (hasattr(final, "coef_") and hasattr(final, "intercept_")):
        raise InputError(
            f"{name} has no plain coefficients, so it is not known to be linear; prove takes logistic regression, LinearSVC, "
            "SGD, ridge, perceptron and Bernoulli naive Bayes, and poll takes any model."
        )
    owners = [owner(type(final), method) for method in ("predict", "decision_function")]
    if any(one not in KNOWN_PREDICTS and not _is_discriminant(one, name) for one in owners):
        raise InputError(
            f"{name} predicts in a way of its own, which its coefficients may not tell; use poll for it."
        )


def _is_discriminant(one: str, name: str) -> bool:
    """Linear discriminant analysis documents its decision anew and computes it as all others do."""
    return one == name == "LinearDiscriminantAnalysis"


def _naive_bayes(columns: FittedColumns) -> tuple[FloatArray, FloatArray, FittedColumns]:
    """log Pr(class) + Σ log Pr(column | class), which is linear: a column that is 1 adds log p − log(1 − p)."""
    final = columns.final
    present = np.asarray(final.feature_log_prob_)
    absent = np.log(1 - np.exp(present))
    seen = columns if final.binarize is None else columns.map(lambda v: (v > final.binarize).astype(float))
    return present - absent, np.asarray(final.class_log_prior_) + absent.sum(axis=1), seen


def _decision(
    columns: FittedColumns, weights: FloatArray, intercept: FloatArray, seen: FittedColumns
) -> Decision:
    """The scores as whole numbers, and how far they and `predict` can be from each other."""
    unit = max(_unit(np.result_type(weights, values)) for values in (seen.low, seen.single))
    given = weights, intercept
    weights, intercept = weights.astype(np.float64), intercept.astype(np.float64)
    low, high = weights * seen.low, weights * seen.high
    if not (np.isfinite(low).all() and np.isfinite(high).all() and np.isfinite(intercept).all()):
        raise InputError("The classifier has coefficients that are not finite.")
    if any((own.astype(of.dtype) != of).any() for own, of in zip((weights, intercept), given, strict=True)):
        raise InputError("The classifier has coefficients that no double holds; use poll for it.")
    total = (np.maximum(abs(low), abs(high)).sum(axis=1) + abs(intercept)) * LARGER
    apart = (abs(weights) * seen.apart).sum(axis=1) * LARGER
    scale, guard = _precision(total, apart, columns.width, unit, _finest(weights, seen, intercept))
    effect = _whole(high, scale) - _whole(low, scale)
    base = _whole(intercept, scale) + _whole(low, scale).sum(axis=1)
    if len(base) == 1:  # the sign of one score: 0 for the first class, so that a tie is its
        base, guard = np.append(0, base), np.append(0, guard)
        effect = np.concatenate([np.zeros_like(effect), effect])
    spread = np.zeros((columns.width, len(base)), dtype=np.int64)
    spread[seen.source] = effect.T
    return Decision(base, spread, guard, scale, plain(columns.final.classes_))


def _unit(computed: Any) -> float:
    """The unit roundoff of the type in which `predict` adds."""
    return float(np.finfo(computed if computed.kind == "f" else np.float64).eps) / 2


def _precision(
    total: FloatArray, apart: FloatArray, terms: int, unit: float, finest: int
) -> tuple[int, IntArray]:
    """(binary places kept, guard of each class); no guard where every partial sum is a floating number in any order.

    `total` bounds what the absolute values of each class's terms add up to. Adding k terms in any order, products rounded,
    errs by at most ku/(1 − ku) of that; our own whole numbers by half a unit a term; and columns in single precision may
    be `apart` from those in double.
    """
    largest = float(total.max(initial=0))
    most = min(BITS - int(np.ceil(np.log2((4 * largest * (terms + 2)) or 1))), FINEST)
    if finest <= most and largest * 2.0**finest < 0.5 / unit and not apart.any():
        return finest, np.zeros(len(total), dtype=np.int64)
    share = (terms + 4) * unit
    if share > HOPELESS:
        raise InputError(f"Sums of {terms} numbers of this precision round too much to prove anything.")
    rounded = (total + apart) * (share / (1 - share)) + apart
    return most, np.ceil(np.ldexp(rounded, most)).astype(np.int64) + terms + 2


def _whole(values: FloatArray, scale: int) -> IntArray:
    """The nearest whole numbers of units 2^−scale; scaling by a power of two is exact."""
    return np.rint(np.ldexp(values, scale)).astype(np.int64)


def _finest(weights: FloatArray, seen: FittedColumns, intercept: FloatArray) -> int:
    """The least s ≥ 0 such that every product and intercept is surely a multiple of 2^−s."""
    return max(
        0,
        _places(weights) + max(_places(seen.low.astype(np.float64)), _places(seen.high.astype(np.float64))),
        _places(intercept),
    )


def _places(values: FloatArray) -> int:
    """How many binary places the numbers have after the point; negative where all are multiples of a power of two."""
    values = values[values != 0]
    if not values.size:
        return 0
    mantissa, exponent = np.frexp(values)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = np.log2((whole & -whole).astype(np.float64)).astype(np.int64)
    return int((53 - exponent - lowest).max())
