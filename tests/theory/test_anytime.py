"""Limits that hold at every look, against ball arithmetic, exact enumeration and simulation."""

from math import comb

import flint
import numpy as np
import pytest

from unswayed.theory import anytime, bound_votes
from unswayed.theory.anytime import limits


def log_martingale(x: int, t: int, p):
    """The definition, in balls: Beta-binomial evidence over likelihood."""
    a = flint.arb(anytime.PRIOR)

    def log_beta(u, v):
        return u.lgamma() + v.lgamma() - (u + v).lgamma()

    likelihood = (x * p.log() if x else 0) + ((t - x) * (1 - p).log() if t > x else 0)
    return log_beta(a + x, a + (t - x)) - log_beta(a, a) - likelihood


def test_stated_error_covers_the_truth():
    rng = np.random.default_rng(0)
    for t in (3, 17, 50, 4000, 10**7):
        x = np.unique(np.r_[np.arange(min(t, 20)), t - np.arange(min(t, 20)), rng.integers(0, t + 1, 10)])
        p = rng.uniform(0.001, 0.999, x.size)
        value, error = anytime.log_martingale(x.astype(float), (t - x).astype(float), p, 1 - p)
        with flint.ctx.workprec(256):
            for i in range(x.size):
                truth = log_martingale(int(x[i]), t, flint.arb(p[i]))
                assert abs(truth - flint.arb(float(value[i]))) <= flint.arb(float(error[i]))


def test_evidence_from_beyond_the_share_proves_nothing(monkeypatch):
    """The martingale is large on both sides of the share; a search that begins on the wrong one ends with nothing."""
    monkeypatch.setattr(anytime.special, "logit", lambda share: np.full_like(share, 9.0))
    hits, samples = np.array([0, 30, 50]), np.full(3, 100)
    assert limits(hits, samples, 0.01, 1, upper=False).tolist() == [0, 0, 0]
    assert limits(samples - hits, samples, 0.01, 1, upper=True).tolist() == [1, 1, 1]


def test_every_term_is_granted_its_roundings():
    x = np.array([0.0, 1, 16, 900, 1000])
    y, p = 1000 - x, np.array([0.3, 0.001, 0.9, 0.5, 0.999])
    _, error = anytime.log_martingale(x, y, p, 1 - p)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = [np.nan_to_num(np.abs(n * np.log(n / (1000 * at)))) for n, at in ((x, p), (y, 1 - p))]
    sizes = sum(logs) + np.abs(x - 1000 * p) + np.abs(y - 1000 * (1 - p))
    assert (error >= 0.999 * 64 * 2.0**-53 * (sizes + 64)).all()


def test_no_path_of_any_length_leaves_the_interval_too_often():
    """Exactly, by dynamic programming over all paths of 200 samples: the truth is ever excluded with probability ≤ level."""
    level, horizon, truths = 0.05, 200, np.array([[0.5], [0.9], [0.02]])
    alive, lost = np.ones((3, 1)), np.zeros(3)
    for t in range(1, horizon + 1):
        alive = np.pad(alive * (1 - truths), ((0, 0), (0, 1))) + np.pad(alive * truths, ((0, 0), (1, 0)))
        hits, samples = np.arange(t + 1), np.full(t + 1, t)
        low, high = (limits(hits, samples, level, 1, upper) for upper in (False, True))
        out = (truths < low) | (truths > high)
        lost += (alive * out).sum(axis=1)
        alive *= ~out
    assert ((lost > 0.001) & (lost <= level)).all()
    np.testing.assert_allclose(lost + alive.sum(axis=1), 1)


def test_the_martingale_keeps_its_mean():
    """Σ_x C(t, x) pˣ(1−p)ᵗ⁻ˣ M_t(p) = 1 for every t and p."""
    for t, p in ((1, 0.3), (7, 0.5), (30, 0.99)):
        x = np.arange(t + 1.0)
        value, _ = anytime.log_martingale(x, t - x, np.full(t + 1, p), np.full(t + 1, 1 - p))
        mean = sum(comb(t, i) * p**i * (1 - p) ** (t - i) * np.exp(value[i]) for i in range(t + 1))
        assert mean == pytest.approx(1, abs=1e-12)


def test_anytime_bounds_are_wider_than_those_of_one_look():
    votes, d = [[950, 30, 20], [600, 300, 100], [1000, 0, 0]], 1000
    once, always = bound_votes(votes, d, 0.001), bound_votes(votes, d, 0.001, "anytime")
    assert (always.p_top < once.p_top).all()
    assert (always.p_rest > once.p_rest).all()


def test_two_classes_leave_the_rest():
    got = bound_votes([[95, 5]], 100, 0.05, "anytime")
    assert got.p_rest[0] == 1 - got.p_top[0]


def test_anytime_spends_alpha_as_documented():
    got = bound_votes([[900, 60, 30]], 1000, 0.01, "anytime")
    top, rest, d = (np.array([n]) for n in (900, 60, 1000))
    assert got.p_top == limits(top, d, 0.01, 4, upper=False)
    assert got.p_rest == limits(rest, d, 0.01, 4, upper=True)
    assert bound_votes([[900, 100]], 1000, 0.01, "anytime").p_top == limits(top, d, 0.01, 2, upper=False)


@pytest.mark.parametrize("t", [1, 2, 10, 997, 50_000, 100_000_000])
@pytest.mark.parametrize("level", [0.05, 1e-4, 1e-16, 1e-40])
def test_limits_are_safe_and_nearly_exact(t, level):
    hits = np.unique(np.clip(np.r_[0:4, t // 3, t // 2, 9 * t // 10, t - 3 : t + 1], 0, t))
    samples = np.full(hits.shape, t)
    low, high = (limits(hits, samples, level, 1, upper) for upper in (False, True))
    with flint.ctx.workprec(256):
        target = -flint.arb(level).log()
        for x, below, above in zip(hits.tolist(), low, high, strict=True):
            assert 0 <= below <= x / t <= above <= 1
            assert (x == 0) == (below == 0)
            if below > 0:
                assert log_martingale(x, t, flint.arb(below)) >= target
                nearer = flint.arb(below + min(below, 1 - below) * 1e-8 + (2.0**-52 if below > 0.5 else 0))
                assert nearer >= 1 or log_martingale(x, t, nearer) < target
            if above < 1:
                assert log_martingale(x, t, flint.arb(above)) >= target
                nearer = flint.arb(above - min(above, 1 - above) * 1e-8 - (2.0**-52 if above > 0.5 else 0))
                assert log_martingale(x, t, nearer) < target
