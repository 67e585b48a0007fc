"""What linear classifiers round: sizes that it cuts short are not called exact, and rows may come in any precision."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import unswayed as us
from unswayed.errors import InputError


def with_weights(weights, intercept, kind=np.float64):
    """A fitted classifier with these coefficients."""
    weights = np.array(weights, kind)
    classes = max(len(weights), 2)
    model = LogisticRegression().fit(np.eye(classes, weights.shape[1]) > 0, np.arange(classes))
    model.coef_, model.intercept_ = weights, np.array(intercept, kind)
    return model


def test_a_size_that_rounding_cuts_short_is_no_exact_one():
    """0.1 + 0.1 − 0.2 is no more than 0, so that no change moves the label; how it rounds is not known beforehand."""
    x, model = np.zeros((1, 2), dtype=bool), with_weights([[0.1, 0.1]], [-0.2])
    assert (model.predict([[0, 0], [0, 1], [1, 0], [1, 1]]) == 0).all()
    proofs = us.prove(model, us.Bits(x))
    assert proofs.size[0] == 1
    assert not proofs.exact
    assert proofs.known_attack(0) is None
    assert "does move it" not in proofs.grounds(0)
    assert us.prove(with_weights([[0.1, 0.1]], [-0.15]), us.Bits(x)).exact


def test_an_attack_that_rounding_may_stop_is_not_shown_where_another_rival_is_as_near():
    """The second class would tie with the first, which keeps the label; the third beats it with as many changes."""
    x, weights = np.zeros((1, 4), dtype=bool), [[0, 0, 0, 0], [0.1, 0.1, 0, 0], [0, 0, 0.15, 0.15]]
    model = with_weights(weights, [0.2, 0, 0])
    proofs = us.prove(model, us.Bits(x))
    assert proofs.size[0] == 1
    assert model.predict([[1, 1, 0, 0], [0, 0, 1, 1]]).tolist() == [0, 2]
    assert proofs.known_attack(0) is None


def test_rows_in_single_precision_are_covered_where_steps_keep_it():
    """2^24 + 1 is 2^24 in single precision; rows of booleans leave a scaler in double, rows of floats in their own."""
    x = np.ones((1, 2), dtype=bool)
    final = with_weights([[2.0**24, 1]], [-(2.0**24)], np.float32)
    model = make_pipeline(MaxAbsScaler().fit(np.eye(2)), final)
    assert model.predict(x)[0] != model.predict(x.astype(np.float32))[0]
    assert us.prove(model, us.Bits(x)).size[0] < 0


@pytest.mark.parametrize("weight", [np.longdouble(1) + np.finfo(np.longdouble).eps, np.int64(2**53 + 1)])
def test_coefficients_that_no_double_holds_are_refused(weight):
    if np.float64(weight).astype(weight.dtype) == weight:
        pytest.skip("no longer doubles here")
    model = with_weights([[1.0, 1.0]], [-1.0])
    model.coef_ = np.array([[weight, weight]])
    with pytest.raises(InputError, match="no double holds"):
        us.prove(model, us.Bits(np.zeros((1, 2), dtype=bool)))


@pytest.mark.parametrize("kind", [bool, np.float32, np.float64])
def test_what_a_scaler_makes_of_a_column_in_either_precision_is_within_the_guard(kind):
    """Scaled to a third and to minus two thirds, a row of one of three equal columns is as near to nothing as rounding lets it be."""
    seen = np.repeat([[1, 0, 0], [0, 1, 0], [0, 0, 1]], 4, axis=0) > 0
    scaler = StandardScaler(with_std=False).fit(seen.astype(np.float64))
    model = make_pipeline(scaler, with_weights([[0.7, 0.7, 0.7]], [0.0]))
    proofs = us.prove(model, us.Bits(seen))
    said = model.predict(seen.astype(kind))
    assert (proofs.abstained | (proofs.answer == said)).all()
