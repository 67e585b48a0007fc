"""Blocks that are asked together bring the counts that each brings alone."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import erdos_renyi_graph

from unswayed.models import build
from unswayed.runners.serial import _adjacent, _counted
from unswayed.sampling.engines import choose
from unswayed.sampling.question import Block, Question
from unswayed.sampling.threats import AllPairs, Row
from unswayed.theory.noise import AddDelete, Flip


def graph(n: int) -> Data:
    return Data(x=torch.randn(n, 4), edge_index=erdos_renyi_graph(n, 0.3), num_nodes=n)


@pytest.fixture(params=["row", "dense"])
def question(request: pytest.FixtureRequest) -> Question:
    torch.manual_seed(0)
    if request.param == "row":
        return Question(build("gat", 4, 3).eval(), Row(graph(20), [3, 4, 9]), Flip(0.7), engine="fast")
    model = build("gin", 4, 3, task="graph").eval()
    return Question(model, AllPairs([graph(5), graph(9)]), AddDelete(0.1, 0.4), engine="fast", shared=False)


@pytest.mark.parametrize("targets", [None, (1, 0)])
def test_blocks_together_count_as_each_alone(question: Question, targets: tuple[int, ...] | None) -> None:
    engine = choose(question)
    blocks = [Block(0, 100, targets), Block(100, 130, targets), Block(130, 400, targets)]
    together = list(_counted(question, engine, blocks))
    assert [block for block, _ in together] == blocks
    for block, part in together:
        np.testing.assert_array_equal(part.counts, engine.count(block.start, block.stop, targets))
    assert sum(part.counts.sum() for _, part in together) == 400 * len(together[0][1].counts)


def test_only_neighbours_of_the_same_targets_go_together() -> None:
    blocks = [
        Block(0, 10),
        Block(10, 20),
        Block(20, 30),
        Block(40, 50),
        Block(50, 60, (1,)),
        Block(60, 70, (1,)),
    ]
    groups = [blocks[:2], blocks[2:3], blocks[3:4], blocks[4:]]
    assert list(_adjacent(blocks, 20)) == groups
    assert list(_adjacent(blocks, 0)) == [[block] for block in blocks]
    assert list(_adjacent([], 5)) == []
