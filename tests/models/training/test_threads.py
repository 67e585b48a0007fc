"""Training works with one thread, so that equal seeds give equal bits; who gives that up gets the fastest number, found by timing."""

from types import SimpleNamespace

import pytest
import torch

from unswayed import datasets
from unswayed.datasets import made
from unswayed.errors import InputError
from unswayed.models.training import fit, keeping
from unswayed.models.training.clean import CleanSettings
from unswayed.models.training.keeping import seeded, timing
from unswayed.sampling.threads import TRIES, Threads

SHORT = CleanSettings(steps=12)


def stepping(cost, steps, clock):
    """The numbers of threads of these steps, each of which takes as long as its number of threads says."""
    weight = torch.nn.Parameter(torch.ones(1))
    optimiser, seen = torch.optim.SGD([weight], lr=0.1), []
    for _ in range(steps):
        seen.append(torch.get_num_threads())
        clock.now += cost[seen[-1]]
        optimiser.step()
    return seen


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize(("cost", "best"), [({1: 0.002, 2: 0.001}, 2), ({1: 0.001, 2: 0.002}, 1)])
def test_steps_settle_on_the_fastest_number_and_look_again_when_they_get_slow(monkeypatch, cost, best):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(keeping, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    pick = Threads()
    with timing(pick), seeded(0, "cpu"):
        seen = stepping(cost, 2 * TRIES + 5, clock)
        assert sorted(seen[: 2 * TRIES]) == [1] * TRIES + [2] * TRIES
        assert set(seen[2 * TRIES :]) == {best}
        assert pick.words == f"{best} of 2"
        slow = {best: 0.02, 3 - best: 0.008}
        assert stepping(slow, 12, clock)[-1] == 3 - best
    assert torch.get_num_threads() == 2
    with seeded(0, "cpu"):
        assert stepping(cost, 3, clock) == [1, 1, 1]


@pytest.fixture(scope="module")
def toy():
    return made.block_model(members=15)


@pytest.mark.usefixtures("two")
def test_equal_seeds_give_equal_weights_whatever_torch_is_set_to(toy):
    parts, found = datasets.split(toy, 0, test=20, per_class=8), []
    for number in (1, 2):
        torch.set_num_threads(number)
        found.append(fit("sage", toy, parts, seed=3, settings=SHORT).state_dict())
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])


@pytest.mark.usefixtures("two")
def test_the_choice_is_told(toy):
    parts, told = datasets.split(toy, 0, test=20, per_class=8), []
    fit("sage", toy, parts, settings=SHORT, threads=None, progress=lambda *said: told.append(said[2]))
    assert told
    assert all(message.endswith(("threads: 1 of 2", "threads: 2 of 2")) for message in told)
    with pytest.raises(InputError, match="threads must be 1"):
        fit("sage", toy, parts, threads=2)
