"""Linear classifiers against `predict` itself, asked about every row within reach."""

from itertools import product

import numpy as np
import pytest
import torch
import torch_geometric
from sklearn import naive_bayes
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectKBest, VarianceThreshold, chi2
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    Perceptron,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.naive_bayes import BernoulliNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC

import unswayed as us
from unswayed.ballots.linear import read_linear
from unswayed.errors import InputError, UnsoundModel

COLUMNS = 7
EVERY = np.array(list(product([False, True], repeat=COLUMNS)))


def rows(seed, classes):
    chance = np.random.default_rng(seed)
    x = chance.random((60, COLUMNS)) < 0.5
    y = (x[:, :3].sum(axis=1) + (chance.random(60) < 0.2)) % classes
    return x, y


def check_against_predict(model, x):
    """No size too large, none too small, every cell of the grid right, every witness an attack: `predict` decides."""
    decision = read_linear(model, x)
    said = {row.tobytes(): answer for row, answer in zip(EVERY, model.predict(EVERY), strict=True)}
    for places, part in decision.margins(x):
        sizes, grid = part.sizes(), part.grid(2, 2)
        for i, place in enumerate(places):
            row, own = x[place], said[x[place].tobytes()]
            other = EVERY[[said[each.tobytes()] != own for each in EVERY]]
            reach = (other != row).sum(axis=1)
            assert sizes[i] == (reach.min() - 1 if len(reach) else COLUMNS)
            added, gone = (other & ~row).sum(axis=1), (row & ~other).sum(axis=1)
            for a, r in product(range(3), repeat=2):
                assert grid[i, a, r] == (not np.any((added <= a) & (gone <= r)))
            attack = part.witness(i)
            if attack is not None:
                changed = row.copy()
                changed[attack] ^= True
                assert said[changed.tobytes()] != own


MODELS = [
    LogisticRegression(), LinearSVC(random_state=0), SGDClassifier(random_state=0), RidgeClassifier(),
    Perceptron(random_state=0), BernoulliNB(), BernoulliNB(binarize=None), LinearDiscriminantAnalysis(),
    make_pipeline(StandardScaler(), LogisticRegression()),
    make_pipeline(SelectKBest(chi2, k=4), MinMaxScaler((-1, 2)), RidgeClassifier()),
    make_pipeline(MaxAbsScaler(), "passthrough", VarianceThreshold(), RobustScaler(with_centering=False), LinearSVC(random_state=0)),
    make_pipeline(StandardScaler(), BernoulliNB(binarize=0.3)),
    make_pipeline(Binarizer(threshold=0.5), Perceptron(random_state=0)),
]  # fmt: skip


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("model", MODELS, ids=lambda m: "-".join(type(s).__name__ for _, s in getattr(m, "steps", [("", m)])))  # fmt: skip
def test_sizes_are_exact_for_predict_itself(model, classes):
    x, y = rows(1, classes)
    check_against_predict(model.fit(x, y), x[:12])


@pytest.mark.parametrize("classes", [2, 3])
def test_ties_are_broken_as_predict_breaks_them(classes):
    x, y = rows(2, classes)
    chance = np.random.default_rng(0)
    for _ in range(12):
        model = Perceptron(random_state=0).fit(x, y)
        model.coef_ = chance.integers(-2, 3, model.coef_.shape).astype(float) / 4
        model.intercept_ = chance.integers(-2, 3, model.intercept_.shape).astype(float) / 4
        assert not read_linear(model, x).guard.any()  # sums of quarters are exact in any order
        check_against_predict(model, x[:8])


def test_single_precision_gets_the_guard_of_single_precision():
    x, y = rows(3, 3)
    model = LogisticRegression().fit(x, y)
    fine = read_linear(model, x)
    model.coef_, model.intercept_ = model.coef_.astype(np.float32), model.intercept_.astype(np.float32)
    coarse = read_linear(model, x)
    assert (coarse.guard / 2.0**coarse.scale > 1e6 * fine.guard / 2.0**fine.scale).all()


def test_half_precision_gets_the_guard_of_half_precision():
    """3168 + 1 is 3168 in half precision: the label falls with the first column that is lost, where real numbers would keep it."""
    x = np.ones((1, 101), dtype=bool)
    model = LogisticRegression().fit(np.eye(101) > 0, np.arange(101) % 2)
    model.coef_, model.intercept_ = np.full((1, 101), 32, np.float16), np.array([-3168.0])
    model.coef_[0, 100] = 1
    lost = x.copy()
    lost[0, 0] = False
    assert model.predict(x) != model.predict(lost)
    assert us.prove(model, us.Bits(x)).size[0] < 1


@pytest.mark.parametrize("size", [1e-300, 1e-310, 1e300])
def test_very_small_and_very_large_coefficients_promise_no_more_than_they_keep(size):
    x, y = rows(3, 2)
    model = LogisticRegression().fit(x, y)
    usual = us.prove(model, us.Bits(x)).size
    model.coef_, model.intercept_ = model.coef_ * size, model.intercept_ * size
    assert (us.prove(model, us.Bits(x)).size <= usual).all()


def test_the_guard_covers_what_predict_rounds():
    """One tenth ten times is not one: the sum decides by its rounding, so nothing may be promised there."""
    x = np.ones((1, 10), dtype=bool)
    model = LogisticRegression().fit(np.eye(10) > 0, np.arange(10) % 2)
    model.coef_, model.intercept_ = np.full((1, 10), 0.1), np.array([-1.0])
    decision = read_linear(model, x)
    (_, part), = decision.margins(x)  # fmt: skip
    assert part.sizes()[0] == -1
    assert abs(decision.scores(x)[0, 1]) <= decision.guard[1] < 2.0**decision.scale * 1e-12


def test_several_labels_at_a_time_are_refused():
    """Of one row that bears none of three labels, "the first of them" seemed to be what `predict` says."""
    x, y = rows(5, 2)
    model = RidgeClassifier().fit(x, np.stack([y, 1 - y, y], axis=1))
    model.coef_, model.intercept_ = np.zeros((3, COLUMNS)), np.array([-1.0, -2.0, -3.0])
    assert not model.predict(x[:1]).any()
    with pytest.raises(InputError, match="several labels at a time"):
        us.prove(model, us.Bits(x[:1]))


@pytest.mark.parametrize(("model", "words"), [
    (SVC(kernel="linear"), "no plain coefficients"),
    (CalibratedClassifierCV(LinearSVC(), cv=2), "no plain coefficients"),
    (RandomForestClassifier(5), "no plain coefficients"),
    (LinearRegression(), "no fitted classifier"),
    (make_pipeline(Normalizer(), LogisticRegression()), "divides each row by its own length"),
    (make_pipeline(PolynomialFeatures(2), LogisticRegression()), "multiplies columns"),
])  # fmt: skip
def test_what_is_not_linear_in_the_entries_is_refused_with_the_reason(model, words):
    x, y = rows(4, 3)
    with pytest.raises(InputError, match=words):
        read_linear(model.fit(x, y), x)


def test_an_unfitted_model_is_refused():
    with pytest.raises(InputError, match="fit it first"):
        read_linear(LogisticRegression(), EVERY)


def test_a_predict_of_ones_own_is_refused():
    class Contrary(LogisticRegression):
        def predict(self, x):
            return 1 - super().predict(x)

    x, y = rows(5, 2)
    with pytest.raises(InputError, match="in a way of its own"):
        read_linear(Contrary().fit(x, y), x)


def test_coefficients_that_predict_does_not_use_are_noticed():
    x, y = rows(6, 2)
    model = LogisticRegression().fit(x, y)
    model.classes_ = model.classes_[::-1].copy()
    with pytest.raises(UnsoundModel, match="does not predict what its coefficients say"):
        read_linear(model, x)


class Shy(Pipeline):
    """Answers like any pipeline, but for rows that nobody has shown it yet."""

    def predict(self, rows):
        return super().predict(rows) if len(rows) > 1 else self.classes_[:1]


def of_the_same_name():
    class BernoulliNB(naive_bayes.BernoulliNB):
        def predict(self, rows):
            return super().predict(rows) if len(rows) > 1 else self.classes_[:1]

    return BernoulliNB()


def test_a_naive_bayes_of_ones_own_is_no_known_one_by_its_name():
    x, y = rows(6, 2)
    with pytest.raises(InputError, match="not known to be linear"):
        us.prove(of_the_same_name().fit(x, y), us.Bits(x))


def test_a_step_that_somebody_has_taught_to_transform_otherwise_is_refused():
    x, y = rows(6, 2)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(x, y)
    usual = model[0].transform
    model[0].transform = lambda rows: usual(rows) * (1 if len(rows) > 1 else -1)
    with pytest.raises(InputError, match="not known to treat each column by itself"):
        us.prove(model, us.Bits(x))


@pytest.mark.parametrize("method", ["predict", "decision_function", "pipeline", "pipeline's instance"])
def test_a_way_of_its_own_to_predict_is_refused_even_if_it_agrees_on_the_rows(method):
    x, y = rows(6, 2)
    model = LogisticRegression().fit(x, y)
    if method == "pipeline":
        model = Shy([("scale", StandardScaler()), ("last", model)]).fit(x, y)
    elif method == "pipeline's instance":
        model = Pipeline([("scale", StandardScaler()), ("last", model)]).fit(x, y)
        model.predict = model.predict
    else:
        setattr(model, method, getattr(model, method))
    with pytest.raises(InputError, match="in a way of its own"):
        us.prove(model, us.Bits(x))


def test_coefficients_that_are_not_finite_are_refused():
    x, y = rows(7, 2)
    model = LogisticRegression().fit(x, y)
    model.coef_[0, 0] = np.nan
    with pytest.raises(InputError, match="not finite"):
        read_linear(model, x)


def test_many_columns_stay_within_the_whole_numbers():
    chance = np.random.default_rng(1)
    x = chance.random((20, 5000)) < 0.1
    model = LogisticRegression().fit(x, np.arange(20) % 2)
    decision = read_linear(model, x)
    for places, part in decision.margins(x):
        for i, place in enumerate(places[:3]):
            attack = part.witness(i)
            changed = x[place].copy()
            changed[attack] ^= True
            assert model.predict(changed[None])[0] != model.predict(x[place][None])[0]
            changed[attack[-1]] ^= True
            assert len(attack) == part.sizes()[i] + 1
            assert model.predict(changed[None])[0] == model.predict(x[place][None])[0]


def test_a_proof_is_about_predict_and_names_its_classes():
    x, y = rows(8, 3)
    model = LogisticRegression().fit(x, np.array(["no", "perhaps", "yes"])[y])
    proofs = us.prove(model, us.Bits(x))
    assert [proofs.about.label_name(label) for label in proofs.label] == model.predict(x).tolist()
    assert np.array_equal(proofs.size, us.prove(model, us.Bits(x))[:].size)
    assert proofs.statement(0).count("rounding") == 1
    for i in range(5):
        turned = x[i].copy()
        turned[proofs.witness(i)] ^= True
        assert model.predict([turned])[0] != model.predict(x[i : i + 1])[0]


def test_a_linear_model_is_proved_on_bits_only():
    x, y = rows(9, 2)
    graph = torch_geometric.data.Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    with pytest.raises(InputError, match="binary rows"):
        us.prove(LogisticRegression().fit(x, y), us.Row(graph, [0]))


def test_a_step_that_treats_sparse_rows_otherwise_is_refused():
    x, y = rows(0, 2)
    scaled = make_pipeline(RobustScaler(), LogisticRegression()).fit(x | (x[:, :1] & ~x), y)
    scaled.steps[0][1].center_ = np.full(COLUMNS, 0.5)
    with pytest.raises(InputError, match="sparse"):
        us.prove(scaled, us.Bits(x[:2]))
    us.prove(
        make_pipeline(RobustScaler(with_centering=False), LogisticRegression()).fit(x, y), us.Bits(x[:2])
    )


def test_few_of_very_many_columns_are_no_obstacle():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (60, 2_000)).astype(bool)
    y = x[:, 0] ^ (rng.random(60) < 0.1)
    model = make_pipeline(SelectKBest(k=2), LogisticRegression()).fit(x, y)
    assert (us.prove(model, us.Bits(x[:5])).label == model.predict(x[:5])).all()
