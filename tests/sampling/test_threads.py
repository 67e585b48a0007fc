"""Threads are chosen by timing: never many where one is faster, and again when work gets slow."""

from types import SimpleNamespace

import pytest
import torch

from unswayed.sampling import threads
from unswayed.sampling.threads import PATIENCE, TRIES, Threads, steps


@pytest.fixture
def two():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """A clock that moves only when it is told to: a busy machine must not decide a test."""
    told = SimpleNamespace(now=0.0)
    monkeypatch.setattr(threads, "time", SimpleNamespace(perf_counter=lambda: told.now))
    return told


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
def test_training_steps_use_what_a_timing_chose_and_give_it_back(monkeypatch):
    monkeypatch.setattr(threads, "_training", threads._Training())
    monkeypatch.setattr(threads, "_trial", lambda number: {1: 1.0, 2: 5.0}[number])
    assert [torch.get_num_threads() for _ in steps(range(3))] == [1, 1, 1]
    assert torch.get_num_threads() == 2
    for step in steps(range(10)):
        if step == 5:
            break
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two")
def test_training_is_timed_again_when_it_gets_slow(monkeypatch, clock):
    timed = []
    monkeypatch.setattr(threads, "_training", threads._Training())
    monkeypatch.setattr(threads, "_trial", lambda number: timed.append(number) or 1.0)
    for step in steps(range(10)):
        clock.now += 0.002 if step < 5 else 0.05
    assert len(timed) == 4  # two numbers, twice
