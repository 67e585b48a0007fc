from functools import partial

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.transforms import Compose, ToUndirected

import unswayed as us
from unswayed.errors import InputError
from unswayed.sampling.noisy_data import rewired


def ring(n=60, **more):
    edges = torch.stack([torch.arange(n), torch.arange(1, n + 1) % n])
    return Data(x=torch.ones(n, 2), edge_index=torch.cat([edges, edges.flip(0)], 1), y=torch.zeros(n), **more)


def links(data):
    return {tuple(sorted(pair)) for pair in data.edge_index.T.tolist() if pair[0] != pair[1]}


def test_as_many_links_change_as_the_noise_says():
    data, noise = ring(), us.AddDelete(p_add=0.1, p_delete=0.5)
    kept, added, clean = 0, 0, links(data)
    for seed in range(40):
        found = links(us.noisy(data, noise, seed=seed))
        kept, added = kept + len(found & clean), added + len(found - clean)
    assert kept / (40 * 60) == pytest.approx(0.5, abs=0.05)
    assert added / (40 * (60 * 59 // 2 - 60)) == pytest.approx(0.1, abs=0.01)


def test_with_nodes_only_their_own_links_change():
    data = ring()
    found = us.noisy(data, us.Flip(0.7), nodes=[3, 10], seed=1)
    changed = links(found) ^ links(data)
    assert changed
    assert all({3, 10} & set(pair) for pair in changed)
    both = {tuple(edge) for edge in found.edge_index.T.tolist()}
    assert both == {(j, i) for i, j in both}


def test_the_data_itself_stays_and_everything_else_goes_along():
    data = ring()
    before = data.edge_index.clone()
    found = us.noisy(data, us.Flip(0.8))
    assert torch.equal(data.edge_index, before)
    assert found.x is data.x
    assert found.y is data.y


def test_seeds_decide():
    data = ring()
    assert torch.equal(
        us.noisy(data, us.Flip(0.8), seed=5).edge_index, us.noisy(data, us.Flip(0.8), seed=5).edge_index
    )
    torch.manual_seed(0)
    one = us.noisy(data, us.Flip(0.8)).edge_index
    other = us.noisy(data, us.Flip(0.8)).edge_index
    torch.manual_seed(0)
    assert not torch.equal(one, other)
    assert torch.equal(one, us.noisy(data, us.Flip(0.8)).edge_index)


def test_it_is_a_transform_of_torch_geometric():
    transform = Compose([ToUndirected(), partial(us.noisy, noise=us.Flip(0.9))])
    assert transform(ring()).num_nodes == 60


def test_noise_that_trains_is_not_noise_that_certifies():
    """With the same seed, the same noise and the same threat, training and certifying see different structures."""
    seen = []

    class Spy(torch.nn.Module):
        def forward(self, x, edge_index):
            seen.append(edge_index)
            return x

    data = ring()
    us.poll(
        Spy(),
        us.AllPairs(data, [0]),
        us.Flip(0.7),
        samples=1,
        seed=3,
        engine="generic",
        audit=0,
        draws="sparse",
    )
    trained = links(us.noisy(data, us.Flip(0.7), seed=3))
    assert all(links(Data(edge_index=edges)) != trained for edges in seen)


def test_rows_are_taken_over_and_the_first_decides():
    edges = torch.tensor([[0, 1, 1, 2, 3, 3], [1, 0, 2, 1, 3, 2]])
    edges = torch.cat([edges, torch.tensor([[2], [3]])], 1)
    rows = torch.tensor([[0, 0, 0, 1], [1, 1, 0, 0]], dtype=torch.bool)
    found = {tuple(edge) for edge in rewired(edges, torch.tensor([1, 3]), rows).T.tolist()}
    assert found == {(1, 3), (3, 1), (3, 0), (0, 3), (3, 3)}


@pytest.mark.parametrize(("data", "noise", "word"), [
    (ring(edge_attr=torch.ones(120, 1)), us.Flip(0.9), "edge_attr"),
    (ring(), us.Keep(2, 5), "Flip or AddDelete"),
    ([1, 2], us.Flip(0.9), "list"),
])  # fmt: skip
def test_what_cannot_be_noisy_is_refused(data, noise, word):
    with pytest.raises(InputError, match=word):
        us.noisy(data, noise)
