"""Own scores: the mean of perceptrons is one wider perceptron, and it learns as its members do."""

import torch
from torch_geometric.data import Data

from unswayed.ballots.networks import BallotNetwork
from unswayed.datasets import split
from unswayed.datasets.made import block_model
from unswayed.models.training.own_scores import MEMBERS, OwnScores, joined
from unswayed.models.training.view import View, view


def perceptron(seed: int, wide: int = 4, features: int = 5, classes: int = 3):
    torch.manual_seed(seed)
    return BallotNetwork(features, classes, own_hidden=wide).own.eval()


def test_the_wider_perceptron_says_the_mean():
    members = [perceptron(seed) for seed in range(MEMBERS)]
    wide = perceptron(9, MEMBERS * 4)
    wide.load_state_dict(joined([own.state_dict() for own in members]))
    x = torch.randn(7, 5)
    mean = torch.stack([own(x) for own in members]).mean(dim=0)
    assert torch.allclose(wide(x), mean, atol=1e-6)
    assert not torch.allclose(wide(x), members[0](x), atol=1e-3)


def test_members_differ_and_the_seed_decides_them():
    dataset = block_model()
    seen = view(dataset, split(dataset, 0, test="rest"), "inductive")

    def learnt(seed: int):
        alone = OwnScores(
            lambda own: perceptron(own, 4, dataset.num_features, dataset.num_classes),
            seen, dataset.num_classes, seed, "cpu",
        )  # fmt: skip
        return alone.best("inductive", distil=False, teacher=None)[0]

    first, again, other = learnt(1), learnt(1), learnt(2)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["0.weight"], other["0.weight"])
    parts = first["0.weight"].split(4)
    assert len(parts) == MEMBERS
    assert not torch.equal(parts[0], parts[1])


def test_where_classes_count_alike_a_rare_one_is_not_given_up():
    """Of 5% with a faint sign nobody is told by a perceptron that counts every node alike."""
    generator = torch.Generator().manual_seed(0)
    y = (torch.arange(400) % 20 == 0).long()
    x = torch.randn(400, 4, generator=generator) + y[:, None]
    data = Data(x=x, edge_index=torch.zeros((2, 0), dtype=torch.int64), y=y)
    seen = View(data, torch.arange(0, 300), torch.arange(300, 400), torch.arange(400))

    def recall(importance: torch.Tensor | None) -> float:
        scores = OwnScores(lambda seed: perceptron(seed, 8, 4, 2), seen, 2, 0, "cpu", importance)
        own = perceptron(0, 8 * MEMBERS, 4, 2)
        own.load_state_dict(scores.best("transductive", distil=False, teacher=None)[0])
        return float((own.eval()(x[y == 1]).argmax(dim=1) == 1).float().mean())

    assert recall(torch.tensor([0.5, 10.0])) > recall(None) + 0.3
