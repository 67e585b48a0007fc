"""Stopping when a size is settled: the votes are those of the same sample numbers, and the guarantee survives."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unswayed import Bits, Flip, Votes, certify, poll
from unswayed.errors import InputError, StoreError
from unswayed.runners import SerialRunner
from unswayed.sampling import until as module
from unswayed.sampling.until import Budget, UntilSize, gaps, join, looks
from unswayed.theory import bound_votes, certified_size

NOISE = Flip(beta=0.9)
ROWS = np.zeros((3, 9), bool)
ROWS[1, :5] = True  # the middle one is a close call, the others are sure


def majority(bits: np.ndarray) -> np.ndarray:
    """1 where most of the bits are 1."""
    return (bits.sum(axis=1) > 4).astype(int)


def asked(**options: Any) -> Votes:
    return poll(majority, Bits(ROWS), NOISE, classes=2, **{"samples": 4000, **options})


def test_looks_are_fixed_and_cover_every_sample_once() -> None:
    long, short = looks(50_000), looks(7_777)
    assert [start for start, _ in long[1:]] == [stop for _, stop in long[:-1]]
    assert long[0][0] == 0
    assert long[-1][1] == 50_000
    assert short[:-1] == long[: len(short) - 1]
    assert short[-1][1] == 7_777
    assert len(long) < 50


def test_a_target_stops_when_its_size_is_reached_or_out_of_reach() -> None:
    votes = asked(until=UntilSize(size=2), samples=20_000)
    certs = certify(votes, bounds="anytime")
    assert certs.size[[0, 2]].tolist() == [2, 2]
    assert certs.size[1] < 2
    assert np.all(votes.samples < 5000)
    assert votes.samples[1] < votes.samples[0]  # a hopeless one is dropped first
    assert votes.adaptive
    for target, drawn in enumerate(votes.samples):
        plain = asked(samples=int(drawn))
        assert np.array_equal(votes.counts[target], plain.counts[target])


def test_the_runner_changes_nothing() -> None:
    class Backwards:
        """Counts in the opposite order, as a cluster might."""

        def run(self, question: Any, blocks: Any) -> Any:
            yield from list(SerialRunner().run(question, blocks[::-1]))

    options = {"until": UntilSize(size=2), "samples": 20_000}
    assert asked(**options, runner=Backwards()) == asked(**options)


def test_fixed_sample_bounds_are_refused() -> None:
    votes = asked(until=UntilSize(size=1))
    for bounds in ("strict", "paper", "tight"):
        with pytest.raises(InputError, match="anytime"):
            certify(votes, bounds=bounds)


def test_an_unreachable_size_is_given_up_by_counting_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the statistical test, the remaining samples must still be seen not to suffice."""
    huge = np.full(3, 10**6)
    monkeypatch.setattr(UntilSize, "_possible", lambda self, votes: huge)
    votes = asked(until=UntilSize(size=9), samples=600)
    assert np.all(votes.samples == 100)


def test_possible_size_is_rarely_below_the_true_one() -> None:
    rng = np.random.default_rng(0)
    shares = np.array([0.95, 0.03, 0.02])
    truth = certified_size(shares[0], shares[1], Flip(beta=0.7), 100)
    counts = rng.multinomial(3000, shares, size=500)
    votes = Votes.from_counts(counts, Flip(beta=0.7), 100)
    possible = UntilSize(size=5, alpha=0.1)._possible(votes)
    assert (possible < truth).mean() <= 0.1
    assert np.median(possible) <= truth + 2  # and it is no empty promise


def test_budget_stops_and_a_later_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(np.arange(0, 1000, 1.0))
    monkeypatch.setattr(module.time, "monotonic", lambda: float(next(clock)))
    part = asked(until=Budget(seconds=1000) | UntilSize(size=2), store=tmp_path / "run", samples=300)
    assert part.samples.max() <= 300
    monkeypatch.undo()
    whole = asked(until=UntilSize(size=2), store=tmp_path / "run")
    assert whole == asked(until=UntilSize(size=2))
    assert np.all(part.samples <= whole.samples)


def test_budget_ends_sampling_for_all() -> None:
    votes = asked(until=Budget(seconds=1e-9) | Budget(seconds=5), samples=100_000)
    assert np.all(votes.samples == votes.samples[0])
    assert votes.samples[0] < 100_000
    assert votes.adaptive


def test_a_larger_goal_fills_in_what_earlier_looks_left_out(tmp_path: Path) -> None:
    first = asked(until=UntilSize(size=1), store=tmp_path / "run")
    second = asked(until=UntilSize(size=2), store=tmp_path / "run")
    assert np.all(second.samples >= first.samples)
    assert second.samples[0] > first.samples[0]
    for target, drawn in enumerate(second.samples):
        covered = np.zeros(4000, bool)
        for start, stop, polled in zip(second.starts, second.stops, second.polled[:, target], strict=True):
            covered[start:stop] |= polled
        assert covered[:drawn].all()
        assert np.array_equal(second.counts[target], asked(samples=int(drawn)).counts[target])


@pytest.mark.parametrize("shared", [True, False])
def test_a_target_that_others_left_behind_stays_so_where_they_share_noise(
    tmp_path: Path, shared: bool
) -> None:
    """Its skipped samples have been seen through the others: taking it up again would be choosing by what it will say."""
    first = asked(until=UntilSize(size=2), store=tmp_path / "run", shared=shared)
    assert first.samples[1] < first.samples[0]
    second = asked(until=UntilSize(size=0, alpha=1e-12), store=tmp_path / "run", shared=shared)
    taken_up = second.samples[1] > first.samples[1]
    assert taken_up == (not shared)
    assert second.samples[0] >= first.samples[0]
    gaps_of_it = np.flatnonzero(~second.polled[:, 1])
    assert np.array_equal(
        gaps_of_it, np.arange(gaps_of_it.min(initial=len(second.starts)), len(second.starts))
    )


def test_a_store_of_fixed_samples_is_not_continued_adaptively(tmp_path: Path) -> None:
    asked(samples=200, store=tmp_path / "run")
    with pytest.raises(StoreError, match="adaptive"):
        asked(until=UntilSize(size=2), store=tmp_path / "run")


def test_nothing_counts_twice() -> None:
    votes = asked(until=UntilSize(size=1))
    with pytest.raises(InputError, match="twice"):
        join(votes, votes.first(100) if votes.stops[0] == 100 else votes)
    assert gaps(votes, 0, 100, np.arange(3)) == []
    assert [hole[:2] for hole in gaps(None, 0, 100, np.arange(3))] == [(0, 100)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: UntilSize(size=-1), "size must be"),
        (lambda: UntilSize(size=True), "size must be"),
        (lambda: UntilSize(size=3, alpha=1.0), "alpha must"),
        (lambda: Budget(seconds=0), "seconds must"),
        (lambda: Budget(seconds=float("nan")), "seconds must"),
        (lambda: asked(until=10), "until must be"),
    ],
)
def test_refusals(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_rules_join_with_rules_only() -> None:
    with pytest.raises(TypeError):
        UntilSize(size=1) | 3  # type: ignore[operator]


def test_coverage_with_fifty_looks() -> None:
    """Stopping at whichever of 50 looks shows the best bound: anytime bounds hold, fixed-sample ones do not."""
    rng = np.random.default_rng(7)
    runs, share, alpha = 1500, 0.9, 0.05
    every = np.array([stop for _, stop in looks(40_000)])
    edges = np.unique(np.geomspace(every[0], 5_000, 50).astype(int))
    steps = np.diff(edges, prepend=0)
    counts = np.cumsum(rng.binomial(steps, share, size=(runs, len(steps))), axis=1)
    assert len(edges) >= 48
    failed = {}
    for method in ("anytime", "strict"):
        worst = np.zeros(runs)
        for look, drawn in enumerate(edges):
            top = counts[:, look]
            found = bound_votes(np.stack([top, drawn - top], axis=1), int(drawn), alpha, method=method)
            worst = np.maximum(worst, found.p_top)
        failed[method] = (worst > share).mean()
    assert failed["anytime"] <= alpha
    assert failed["strict"] > 1.5 * alpha
