from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

from unswayed import datasets
from unswayed.datasets import Dataset, Split
from unswayed.errors import InputError


@pytest.fixture
def toy():
    y = torch.arange(900) % 3
    return Dataset(
        "toy", "node", 2, 3, data=Data(x=torch.zeros(900, 2), edge_index=torch.zeros(2, 0).long(), y=y)
    )


def test_twenty_a_class_and_a_hundred_to_test(toy):
    split = datasets.split(toy, 0)
    assert toy.labels[split.train].bincount().tolist() == [20, 20, 20]
    assert len(split.test) == 100


def test_the_hundred_are_the_first_of_the_rest(toy):
    some, rest = datasets.split(toy, 3), datasets.split(toy, 3, test="rest")
    assert torch.equal(rest.test[:100], some.test)
    everything = torch.cat([rest.train, rest.val, rest.test])
    assert everything.sort().values.tolist() == list(range(900))


def test_the_seed_decides(toy):
    assert torch.equal(datasets.split(toy, 1).test, datasets.split(toy, 1).test)
    assert not torch.equal(datasets.split(toy, 1).test, datasets.split(toy, 2).test)


def test_overlap_is_refused():
    one = torch.tensor([1])
    with pytest.raises(InputError, match="overlap"):
        Split(one, one, torch.tensor([2]))


def test_names_in_a_split_are_one_sentence():
    with pytest.raises(InputError, match="test must be a mask, or numbers of targets"):
        Split(torch.arange(3), torch.arange(3, 6), ["anna", "ben"])


def test_more_test_nodes_than_there_are(toy):
    with pytest.raises(InputError, match="'rest'"):
        datasets.split(toy, 0, test=900)


def test_a_declared_share_is_all_that_is_known(toy):
    declared = replace(toy, labelled=0.2)
    split = datasets.split(declared, 0, test="rest")
    assert (len(split.train), len(split.val), len(split.test)) == (135, 45, 720)
    assert torch.equal(datasets.split(declared, 0).test, split.test[:100])
    given = datasets.split(toy, 0, test="rest", labelled=0.2)
    assert torch.equal(given.train, split.train)


def test_every_class_has_its_share(toy):
    uneven = replace(toy, data=toy.data.clone())
    uneven.graph.y = (torch.arange(900) >= 600).long() + (torch.arange(900) >= 860)
    split = datasets.split(uneven, 4, test="rest", labelled=0.1)
    assert uneven.labels[split.train].bincount().tolist() == [45, 20, 3]
    assert uneven.labels[split.val].bincount().tolist() == [15, 6, 1]


def test_a_share_may_be_of_all_nodes_whatever_their_classes(toy):
    split = datasets.split(toy, 4, test="rest", labelled=0.2, draw="nodes")
    assert (len(split.train), len(split.val), len(split.test)) == (135, 45, 720)
    known = torch.cat([split.train, split.val])
    assert toy.labels[known].bincount().tolist() != [60, 60, 60]
    with pytest.raises(InputError, match="'nodes'"):
        datasets.split(toy, 4, labelled=0.2, draw="edges")


@pytest.mark.parametrize("share", [0.0, 1.0, 20])
def test_a_share_is_between_none_and_all(toy, share):
    with pytest.raises(InputError, match="share"):
        datasets.split(toy, 0, labelled=share)


@pytest.mark.parametrize("seed", range(5))
def test_a_rare_class_is_as_frequent_among_those_who_choose_as_among_the_rest(toy, seed):
    y = (torch.arange(3000) % 25 == 0).long()
    rare = replace(
        toy, num_classes=2, data=Data(x=torch.zeros(3000, 2), edge_index=torch.zeros(2, 0).long(), y=y)
    )
    parts = datasets.split(rare, seed, test="rest")
    assert len(parts.val) == 500
    assert 8 <= int(y[parts.val].sum()) <= 28  # of 100 among 2960


@pytest.mark.parametrize(
    ("seed", "how", "words"),
    [(0, {"test": "all"}, "'rest', not 'all'"), (0, {"test": 0.5}, "'rest', not 0.5"), (-1, {}, "from 0 up")],
)
def test_what_cannot_be_split_is_one_sentence(toy, seed, how, words):
    with pytest.raises(InputError, match=words):
        datasets.split(toy, seed, **how)
    with pytest.raises(InputError, match=r"A dataset is expected, not Data; .*from_data"):
        datasets.split(toy.graph, 0)


def test_masks_of_several_lengths_are_refused_by_their_lengths():
    """They were said to overlap, or taken as they were."""
    masks = torch.eye(4, dtype=torch.bool)
    with pytest.raises(InputError, match="one value for each target, not 3, 4 values"):
        Split(masks[0], masks[1], torch.tensor([True, False, False]))
