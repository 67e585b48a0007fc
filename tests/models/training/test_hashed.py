"""A vote that has learnt on groups like those it will be asked about."""

import torch
from torch_geometric.data import Data

import unswayed as us
from unswayed.datasets import Dataset, Split
from unswayed.models.training.clean import CleanSettings
from unswayed.models.training.hashed import fit_hashed, hashed_untrained

SHORT = CleanSettings(steps=40, check_every=10)


def circles():
    """Two groups of friends, features that say little."""
    chance = torch.Generator().manual_seed(0)
    group = torch.arange(60) % 2
    same = group[:, None] == group
    linked = torch.triu(torch.rand(60, 60, generator=chance) < torch.where(same, 0.4, 0.02), diagonal=1)
    pairs = linked.nonzero().T
    x = torch.randn(60, 4, generator=chance) + 0.5 * group[:, None]
    data = Data(x=x, edge_index=torch.cat([pairs, pairs.flip(0)], dim=1), y=group)
    return Dataset("circles", "node", 4, 2, data=data), Split(
        torch.arange(20), torch.arange(20, 40), torch.arange(40, 60)
    )


def test_it_learns_and_its_vote_is_proved():
    dataset, split = circles()
    whole = CleanSettings(steps=200, check_every=10, input_dropout=0.0)
    vote = fit_hashed("sage", dataset, split, groups=7, settings=whole)
    assert not vote.training
    proofs = vote.prove_under(us.AllPairs(dataset.graph, split.test))
    # a constant answer would have half
    assert proofs.accuracy(dataset.labels[split.test], at=[0, 1])[1] > 0.55


def test_the_seed_decides_everything():
    dataset, split = circles()
    one, other = (fit_hashed("gcn", dataset, split, groups=5, seed=3, settings=SHORT) for _ in range(2))
    assert all(
        torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    )


def test_weights_can_be_loaded_back():
    dataset, split = circles()
    vote = fit_hashed("gcn", dataset, split, groups=5, settings=SHORT)
    again = hashed_untrained("gcn", dataset, groups=5)
    again.load_state_dict(vote.state_dict())
    data = dataset.graph
    assert torch.equal(again.eval()(data.x, data.edge_index), vote(data.x, data.edge_index))
