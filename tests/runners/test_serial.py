"""Blocks that are asked together bring the counts that each brings alone."""

import itertools

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import erdos_renyi_graph

from unswayed.ledger import whole
from unswayed.models import build
from unswayed.runners.serial import Pace, SerialRunner, _adjacent
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
    together = list(SerialRunner()._counted(question, engine, blocks, Pace(None)))
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


def test_a_slow_model_is_asked_in_pieces_of_about_a_second() -> None:
    pace = Pace(rate=3.0)
    block, cut = Block(0, 100), []
    for (piece,) in pace.pieces([block]):
        cut.append((piece.start, piece.stop))
        pace.took(piece.stop - piece.start, (piece.stop - piece.start) / 8)
    assert cut[:3] == [(0, 3), (3, 11), (11, 19)]
    assert cut[-1][1] == 100
    assert all(a[1] == b[0] for a, b in itertools.pairwise(cut))
    pace.took(10, 1000.0)
    assert pace.samples == 1
    part = Block(0, 100, (1,))
    assert list(pace.pieces([part])) == [[part]]  # what an adaptive run asks is never cut
    assert list(Pace(None).pieces([block, block])) == [[block, block]]


def test_pieces_of_a_block_become_one() -> None:
    from unswayed.votes import Votes

    stops = np.array([3, 10, 1000, 1500, 2000, 2500, 3000, 3001])
    starts = np.array([0, 3, 10, 1000, 1500, 2400, 2500, 3000])
    counts = np.stack([np.stack([stops - starts, 0 * starts], axis=1)], axis=1)
    votes = Votes(counts, starts, stops, Flip(0.7), entries=5)
    joined = whole(votes)
    assert joined.starts.tolist() == [0, 1000, 2400, 3000]
    assert joined.stops.tolist() == [1000, 2000, 3000, 3001]
    assert joined == votes
    assert joined.blocks[:, 0, 0].tolist() == [1000, 1000, 600, 1]
    apart = np.ones((8, 1), bool)
    apart[1] = False
    polled = Votes(counts * apart[..., None], starts, stops, Flip(0.7), entries=5, polled=apart)
    assert whole(polled).starts.tolist() == [0, 3, 10, 1000, 2400, 3000]
