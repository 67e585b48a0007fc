"""Sums, maxima and attention over lists of edges, and what is written into memory."""

import pytest
import torch
from torch import fx

from unswayed.sampling.engines.graphs.edges import Edges, Listed
from unswayed.sampling.engines.graphs.touched import Keys
from unswayed.sampling.engines.plans.layers import Sums, Symmetric, plus, times
from unswayed.sampling.engines.plans.tracing import _Tracer


def edges(count: int = 6) -> tuple[Edges, torch.Tensor]:
    """Random edges, and the same as a matrix."""
    dense = (torch.rand(4, count) < 0.5).double()
    dense[1] = 0  # a receiver without any
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), dense.sum(1).long().cumsum(0)])
    return Edges(starts, dense.nonzero()[:, 1], count), dense


@pytest.mark.parametrize("graphs", [1, 3])
@pytest.mark.parametrize("width", [1, 5])
def test_totals_and_maxima_are_those_of_the_matrix(graphs: int, width: int) -> None:
    listed, dense = edges()
    z = torch.randn(graphs, 6, width).double()
    torch.testing.assert_close(listed.total(z), dense @ z)
    largest = listed.largest(z.index_select(1, listed.senders))
    masked = torch.where(dense[..., None] > 0, z[:, None], torch.finfo(z.dtype).min).amax(2)
    torch.testing.assert_close(largest, masked)


@pytest.mark.parametrize("heads", [1, 3])
def test_a_head_hears_the_same_head_of_others(heads: int) -> None:
    listed, dense = edges()
    values = torch.randn(2, 6, heads, 4).double()
    split = listed.split(heads)
    weight = torch.rand(2, split.senders.numel()).double()
    ours = split.weighed(weight, values.flatten(1, 2)).view(2, 4, heads, 4)
    theirs = torch.zeros_like(ours)
    for e in range(split.senders.numel()):
        to, by = divmod(int(split.to[e]), heads), divmod(int(split.senders[e]), heads)
        assert to[1] == by[1]
        assert dense[to[0], by[0]] == 1
        theirs[:, to[0], to[1]] += weight[:, e, None] * values[:, by[0], by[1]]
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("share", [0.0, 1 / 16, 2.0])
def test_keys_are_found_by_tables_and_by_searching_alike(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Keys, "MANY", share)
    monkeypatch.setattr(Keys, "SORTED", share)
    keys = Keys.union(50, torch.tensor([7, 3, 41]), torch.tensor([3, 20]))
    assert keys.keys.tolist() == [3, 7, 20, 41]
    assert keys.place(torch.tensor([20, 0, 3, 49, 41])).tolist() == [2, -1, 0, -1, 3]
    assert keys.has(torch.tensor([20, 0, 3, 49, 41])).tolist() == [True, False, True, False, True]
    assert keys.at(torch.tensor([20, 3, 41])).tolist() == [2, 0, 3]
    assert Keys.union(50, torch.zeros(0, dtype=torch.int64)).place(torch.tensor([1])).tolist() == [-1]


@torch.no_grad()
def test_nothing_but_new_memory_is_written_into() -> None:
    listed, dense = edges(4)
    around = Listed(listed, dense.sum(1)[None, :, None], torch.ones(1, 4, 1).double())
    z = torch.randn(1, 4, 3).double()
    kept = z.clone()
    for layer in (Sums(True, 1.0), Sums(False, 0.5), Symmetric("all"), Symmetric("given")):
        layer.over((z,), around)
        assert torch.equal(z, kept)
    wide = torch.randn(3, 4, 3).double()
    assert plus(z, wide).shape == wide.shape
    assert times(z, wide).shape == wide.shape
    assert torch.equal(z, kept)


def test_the_names_of_torch_fx_that_tracing_needs_are_there() -> None:
    assert isinstance(_Tracer()._autowrap_search, list)
    assert callable(fx.Tracer.create_proxy)
