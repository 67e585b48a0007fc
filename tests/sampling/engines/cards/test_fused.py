"""Kernels and the operations they stand for: who is asked, and that the plain ones are the layers' own sums."""

import pytest
import torch
from torch_geometric.utils import erdos_renyi_graph

from unswayed.sampling.engines.asking.gathering import _by_sixteen
from unswayed.sampling.engines.cards import fused
from unswayed.sampling.engines.graphs.star import Spokeless, Star
from unswayed.sampling.engines.plans.layers import Sums, Symmetric
from unswayed.sampling.engines.plans.surroundings import Surroundings

NUMBERS = torch.arange(40.0).view(20, 2)


@pytest.fixture
def as_if_on_a_card(monkeypatch):
    monkeypatch.setattr(fused, "_usable", lambda numbers: True)
    monkeypatch.setattr(fused, "_agreed", {})


def test_on_a_cpu_no_kernel_is_asked():
    assert torch.equal(fused.either(pytest.fail, torch.neg, NUMBERS), -NUMBERS)
    assert not fused.copies(NUMBERS)


@pytest.mark.usefixtures("as_if_on_a_card")
def test_a_kernel_that_agrees_is_asked_and_tried_once():
    asked = []

    def kernel(numbers):
        asked.append(len(numbers))
        return -numbers

    for _ in range(2):
        assert torch.equal(fused.either(kernel, lambda numbers: numbers.neg_(), NUMBERS.clone()), -NUMBERS)
    assert asked == [fused.FEW, 20, 20]


def other(numbers):
    return -numbers * 1.001


def infinite(numbers):
    return numbers / 0


def broken(numbers):
    raise RuntimeError("no such instruction")


@pytest.mark.usefixtures("as_if_on_a_card")
@pytest.mark.parametrize("kernel", [other, infinite, broken])
def test_a_kernel_that_says_something_else_or_fails_is_not_used(kernel):
    assert torch.equal(fused.either(kernel, torch.neg, NUMBERS), -NUMBERS)


@pytest.mark.usefixtures("as_if_on_a_card")
def test_memory_that_runs_out_says_nothing_about_a_kernel():
    def large(numbers):
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(torch.OutOfMemoryError):
        fused.either(large, torch.neg, NUMBERS)
    assert not fused._agreed


@pytest.mark.parametrize("width", [1, 4, 7, 16])
def test_rows_by_sixteen_bytes_are_the_same_rows(width):
    states, index = torch.randn(50, width), torch.randint(0, 50, (333,))
    assert torch.equal(_by_sixteen(states, index), states[index])
    assert torch.equal(_by_sixteen(states[1:], index % 49), states[1:][index % 49])
    assert torch.equal(_by_sixteen(states.T.contiguous().T, index), states[index])


@pytest.mark.parametrize(
    "layer", [Symmetric("all"), Symmetric("given"), Symmetric("none"), Sums(), Sums(True), Sums(loop=1.3)]
)
@pytest.mark.parametrize("alike", [True, False])
def test_a_star_at_once_is_the_layer_in_steps(layer, alike, monkeypatch):
    torch.manual_seed(0)
    edges = erdos_renyi_graph(40, 0.1)
    edges = torch.cat([edges[:, (edges != 7).all(0)], torch.tensor([[3, 9], [3, 9]])], dim=1)
    rest = Spokeless(Surroundings.of(edges, 40, torch.float64), 7)
    rows = torch.rand(9, 40) < 0.3
    rows[:, 7] = False
    z = torch.randn(1 if alike else 9, 40, 5, dtype=torch.float64)
    expected = layer.over((z,), Star(rest, rows))

    def at_once(self, z, before, loop, after):
        before = torch.ones_like(self.mask) if before is None else before
        return self._by_parts(z, self.mask, before, torch.ones(1, 40, 1) if after is None else after, loop)

    monkeypatch.setattr(Star, "at_once", at_once)
    torch.testing.assert_close(layer.over((z,), Star(rest, rows)), expected, rtol=1e-12, atol=1e-12)
