"""Threads are chosen by timing: never many where one is faster, and again when work gets slow."""

from types import SimpleNamespace

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import unswayed as us
from unswayed.sampling import stream, threads
from unswayed.sampling.threads import PATIENCE, PROBE, TRIES, Threads, few


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """A clock that moves only when it is told to: a busy machine must not decide a test."""
    told = SimpleNamespace(now=0.0)
    monkeypatch.setattr(threads, "time", SimpleNamespace(perf_counter=lambda: told.now))
    return told


@pytest.fixture(autouse=True)
def trials(monkeypatch):
    """What short trials of one and of two threads find."""
    cost = {1: 1.0, 2: 1.0}
    monkeypatch.setattr(threads, "trial", cost.__getitem__)
    return cost


@pytest.fixture
def worker(clock):
    """Work whose time depends on the number of threads alone."""

    def working(cost):
        def work():
            clock.now += cost[torch.get_num_threads()]
            return torch.get_num_threads()

        return work

    return working


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize(
    ("cost", "best"), [({1: 0.002, 2: 0.004}, 1), ({1: 0.02, 2: 0.002}, 2), ({1: 0.01, 2: 0.01}, 1)]
)
def test_the_fastest_number_is_found_and_said(worker, cost, best):
    chosen, work = Threads(), worker(cost)
    tried = [chosen.run(1, work) for _ in range(2 * TRIES)]
    assert sorted(tried) == [1] * TRIES + [2] * TRIES
    assert [chosen.run(1, work) for _ in range(3)] == [best] * 3
    assert chosen.words == f"{best} of 2"
    assert torch.get_num_threads() == 2  # as it was before


@pytest.mark.usefixtures("two")
def test_what_is_hopeless_is_tried_once(worker):
    chosen, work = Threads(), worker({1: 0.01, 2: 0.3})
    assert [chosen.run(1, work) for _ in range(5)] == [1, 2, 1, 1, 1]


@pytest.mark.usefixtures("two")
def test_it_looks_again_when_work_gets_slow(worker):
    cost = {1: 0.01, 2: 0.003}
    chosen, work = Threads(), worker(cost)
    for _ in range(2 * TRIES):
        chosen.run(1, work)
    assert chosen.number == 2
    cost[2] = 0.05  # somebody else keeps the cores busy
    for _ in range(PATIENCE + 2 * TRIES):
        chosen.run(1, work)
    assert chosen.number == 1


@pytest.mark.usefixtures("two")
def test_many_threads_that_were_lucky_in_a_busy_moment_are_found_out_soon(worker):
    cost = {1: 0.05, 2: 0.03}
    chosen, work = Threads(), worker(cost)
    for _ in range(2 * TRIES):
        chosen.run(1, work)
    assert chosen.number == 2
    cost |= {1: 0.025, 2: 0.035}  # not slow enough to be noticed without a look at one thread
    for _ in range(PROBE + 1 + 2 * TRIES):
        chosen.run(1, work)
    assert chosen.number == 1


@pytest.mark.usefixtures("two")
def test_many_threads_that_help_are_doubted_ever_more_seldom(worker):
    chosen, work = Threads(), worker({1: 0.02, 2: 0.01})
    taken = [chosen.run(1, work) for _ in range(2 * TRIES + 100)][2 * TRIES :]
    assert [place for place, number in enumerate(taken) if number == 1] == [4, 8, 16, 32, 64]
    assert chosen.words == "2 of 2"


@pytest.mark.usefixtures("two")
def test_a_number_that_was_asked_for_or_decided_otherwise_is_not_timed(worker):
    fixed, work = Threads(fixed=3), worker({1: 0.01, 3: 1.0})
    assert [fixed.run(1, work) for _ in range(9)] == [3] * 9
    assert fixed.words == "3 of 3"
    fixed.stay("as more change its bits")
    assert [fixed.run(1, work) for _ in range(9)] == [1] * 9
    assert fixed.words == "1 of 3, as more change its bits"


def test_one_thread_is_never_timed():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        chosen = Threads()
        assert chosen.run(1, torch.get_num_threads) == 1
        assert chosen.seen == {}
        assert Threads("cuda").most == 1
    finally:
        torch.set_num_threads(before)


@pytest.mark.usefixtures("two")
def test_long_work_is_not_tried_on_many_threads_where_a_short_trial_is_hopeless(worker, trials):
    trials[2] = 20.0
    chosen, work = Threads(), worker({1: 0.5, 2: 10.0})
    assert [chosen.run(1, work) for _ in range(3)] == [1, 1, 1]
    assert chosen.words == "1 of 2"


@pytest.mark.usefixtures("two")
def test_looking_again_starts_from_one_thread_once_more(worker, trials):
    trials[2], cost = 20.0, {1: 0.5, 2: 10.0}
    chosen, work = Threads(), worker(cost)
    chosen.run(1, work)
    cost[1] = 5.0
    assert [chosen.run(1, work) for _ in range(2 * PATIENCE)] == [1] * 2 * PATIENCE


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize(("cost", "best"), [(0.5, 2), (1.0, 1), (20.0, 1)])
def test_untimed_work_takes_many_threads_only_where_a_trial_says_that_they_help(trials, cost, best):
    trials[2] = cost
    assert few("cpu") == best
    assert few("cuda") == 1


@pytest.mark.usefixtures("two")
def test_what_is_made_while_one_thread_works_may_still_choose_all():
    with threads.threads(1):
        assert torch.get_num_threads() == 1
        assert Threads().most == 2
        with threads.threads(2):
            assert Threads().most == 2
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == threads.given() == 2


@pytest.mark.usefixtures("two")
def test_an_engine_is_chosen_and_answers_are_asked_again_as_a_trial_says(monkeypatch, trials):
    seen, trials[2] = [], 20.0
    monkeypatch.setattr(stream.Stream, "flips", _noticing(stream.Stream.flips, seen))
    data = Data(x=torch.eye(6), edge_index=torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]]))
    us.poll(GCN(6, 4, 3, 2).eval(), us.Row(data, [0]), us.Flip(0.7), samples=20, engine="generic")
    assert set(seen) == {1}
    assert torch.get_num_threads() == 2


def _noticing(method, seen):
    def told(*given, **named):
        seen.append(torch.get_num_threads())
        return method(*given, **named)

    return told
