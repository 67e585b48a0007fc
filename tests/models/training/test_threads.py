"""Training takes as many threads as a timing finds fastest, says how many, and its bits do not depend on them."""

import random
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch_geometric.data import Data

import unswayed as us
from unswayed import datasets
from unswayed.datasets import made
from unswayed.errors import InputError
from unswayed.models.floors import floors
from unswayed.models.training import fit, stepping
from unswayed.models.training.ballot_settings import BallotSettings
from unswayed.models.training.clean import CleanSettings
from unswayed.models.training.keeping import seeded, threads_in_words
from unswayed.models.training.noisy import NoisySettings
from unswayed.models.training.stepping import TRIALS, asking, descend, diary
from unswayed.sampling.threads import TRIES, Threads

SHORT = CleanSettings(steps=9)
BALLOTS = BallotSettings(steps=7, warm_up=2, taus=(2.0,), distil=False, presume=False, check_every=4)


class Indexing(nn.Module):
    """Looks nodes up by index, adds up whole tensors and normalises over all nodes: bits of all three depend on threads."""

    def __init__(self, features, classes):
        super().__init__()
        self.first, self.last, self.norm = nn.Linear(features, 67), nn.Linear(67, classes), nn.BatchNorm1d(67)

    def forward(self, x, edge_index):
        hidden = self.norm(self.first(x)).sigmoid()
        heard = hidden[edge_index[0]]
        return self.last(hidden + 1e-4 * heard.sum()) + heard.mean() + hidden[hidden > 0.5].sum() / len(x)


class Multiplied(nn.Module):
    """The gradient of a product of all numbers is worked out by another formula where somebody listens."""

    def __init__(self, features, classes):
        super().__init__()
        self.layer = nn.Linear(features, classes)

    def forward(self, x, edge_index):
        said = self.layer(x)
        return said * (1 + (1 + said[:3].tanh()).prod())


@pytest.fixture(autouse=True)
def as_before():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def large():
    """More numbers than torch leaves to one thread."""
    toy, chance = made.block_model(members=151, inside=0.03, outside=0.003), torch.Generator().manual_seed(1)
    x = torch.randn(906, 61, generator=chance) + toy.graph.y[:, None]
    data = Data(x=x, edge_index=toy.graph.edge_index, y=toy.graph.y)
    return replace(toy, data=data, num_features=61)


def own(kind, data):
    torch.manual_seed(5)
    return kind(data.num_features, data.num_classes)


JOBS = {
    "sage": lambda data, parts, **how: fit("sage", data, parts, settings=SHORT, **how),
    "gat": lambda data, parts, **how: fit("gat", data, parts, settings=SHORT, **how),
    "noise": lambda data, parts, **how: fit(
        "gcn", data, parts, recipe="noise", noise=us.Flip(0.7), settings=NoisySettings(7, 7, check_every=4), **how
    ),
    "ballots": lambda data, parts, **how: fit("ballots", data, parts, settings=BALLOTS, **how),
    "indexing": lambda data, parts, **how: fit(own(Indexing, data), data, parts, settings=SHORT, **how),
    "multiplied": lambda data, parts, **how: fit(own(Multiplied, data), data, parts, settings=SHORT, **how),
}  # fmt: skip


def weights(job, data, **how):
    parts = datasets.split(data, 0, test=100, per_class=20)
    return JOBS[job](data, parts, seed=3, **how).state_dict()


def same(one, other):
    assert one.keys() == other.keys()
    return all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("job", JOBS)
def test_equal_seeds_give_equal_bits_with_any_number_of_threads(large, job, monkeypatch):
    with asking(1), diary() as kept:
        alone = weights(job, large)
    assert set(kept.steps) == {1}
    for number in (8,) if job in ("ballots", "noise") else (2, 3, 8):
        with diary() as kept:
            assert same(alone, weights(job, large, threads=number)), number
        assert (number in kept.steps) == (job != "multiplied")
    torch.set_num_threads(4)
    coin = random.Random(0)
    monkeypatch.setattr(
        Threads, "now", property(lambda pick: pick.number if pick.settled else coin.choice((1, 4)))
    )
    with diary() as kept:  # whatever a timing might pick, step by step
        assert same(alone, weights(job, large))
    assert set(kept.steps) == ({1} if job == "multiplied" else {1, 4})


def test_one_thread_stays_where_more_would_change_gradients_and_that_is_said(large):
    told = []
    weights("multiplied", large, threads=3, progress=lambda *said: told.append(said[2]))
    assert told[-1].endswith("threads: 1 of 3, as more change its bits")


def test_one_thread_stays_for_what_is_compiled(large, monkeypatch):
    from torch._dynamo.utils import counters

    monkeypatch.setitem(counters["stats"], "unique_graphs", 1)
    with diary() as kept:
        weights("sage", large, threads=2)
    assert kept.words == "1 of 2 threads, as it is compiled"


def taken(cost, steps, clock):
    """The numbers of threads of these steps, each of which takes as long as its number of threads says."""
    weight = nn.Parameter(torch.ones(1))
    optimiser, seen = torch.optim.SGD([weight], lr=0.1), []
    for _ in range(steps):
        seen.append(stepping._pace.get().number)
        clock.now += cost[seen[-1]]
        descend(optimiser, weight.sum())
    return seen


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize(("cost", "best"), [({1: 0.002, 2: 0.001}, 2), ({1: 0.001, 2: 0.002}, 1)])
def test_steps_settle_on_the_fastest_number_and_look_again_when_they_get_slow(monkeypatch, cost, best):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(stepping, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    with seeded(0, "cpu"), diary() as kept:
        first = taken(cost, 1 + TRIALS + 2 * TRIES, clock)
        assert sorted(first) == [1] * (1 + TRIES) + [2] * (TRIALS + TRIES)
        assert set(taken(cost, 3, clock)) == {best}
        assert stepping.at_work() == f"{best} of 2"
        slow = {best: 0.02, 3 - best: 0.008}
        assert taken(slow, 12, clock)[-1] == 3 - best
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
    assert kept.words.endswith(" steps, by timing")
    with asking(1), seeded(0, "cpu"):
        assert taken(cost, 3, clock) == [1, 1, 1]


@pytest.mark.usefixtures("two")
def test_many_threads_that_are_hopeless_cost_one_step(monkeypatch):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(stepping, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    with seeded(0, "cpu"):
        assert taken({1: 0.001, 2: 0.03}, 8, clock) == [1, 1, 2, 1, 1, 1, 1, 1]


@pytest.fixture(scope="module")
def toy():
    return made.block_model(members=15)


@pytest.mark.usefixtures("two")
def test_timing_is_the_default_and_its_choice_is_told(toy):
    parts, told = datasets.split(toy, 0, test=20, per_class=8), []
    fit("sage", toy, parts, settings=SHORT, progress=lambda *said: told.append(said[2]))
    assert told
    assert all(message.endswith(("threads: 1 of 2", "threads: 2 of 2")) for message in told)
    with diary() as kept:
        floors(toy, parts)
    assert kept.most == 2
    assert threads_in_words("cpu", kept).endswith(
        ", by timing; equal seeds give equal weights with any number"
    )
    for wrong in (0, True, 1.5):
        with pytest.raises(InputError, match="threads must be a whole number from 1 up"):
            fit("sage", toy, parts, threads=wrong)


def test_a_step_outside_of_a_recipe_is_a_plain_one():
    weight = nn.Parameter(torch.ones(2))
    descend(torch.optim.SGD([weight], lr=0.5), weight.sum())
    assert weight.tolist() == [0.5, 0.5]
