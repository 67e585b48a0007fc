"""Blocks that are asked together bring the counts that each brings alone."""

import gc
import weakref
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import erdos_renyi_graph

from unswayed import ledger
from unswayed.ledger import whole
from unswayed.models import build
from unswayed.polling import poll
from unswayed.runners import serial
from unswayed.runners.serial import Pace, SerialRunner, adjacent
from unswayed.sampling.audit import asked_again
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
    together = list(SerialRunner()._counted(question, engine, blocks))
    assert [block for block, _ in together] == blocks
    for block, part in together:
        np.testing.assert_array_equal(part.counts, engine.count(block.start, block.stop, targets))
    assert sum(part.counts.sum() for _, part in together) == 400 * len(together[0][1].counts)


@pytest.mark.parametrize("way", ["fast", "generic"])
def test_an_engine_is_freed_before_the_audit(
    question: Question, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it holds may fill a card, which the audit and the next poll need at once, not when Python looks for cycles."""
    engines, alive = [], []

    def chosen(asked: Question) -> object:
        engine = choose(asked)
        engines.append(weakref.ref(engine))
        return engine

    def asked(*about: object) -> object:
        alive.extend(engine() for engine in engines)
        return asked_again(*about)

    monkeypatch.setattr(serial, "choose", chosen)
    monkeypatch.setattr(ledger, "asked_again", asked)
    gc.disable()
    try:
        poll(question.model, question.threat, question.noise, samples=40, engine=way, shared=question.shared)
        assert alive == [None]
    finally:
        gc.enable()


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
    assert list(adjacent(blocks, 20)) == groups
    assert list(adjacent(blocks, 0)) == [[block] for block in blocks]
    assert list(adjacent([], 5)) == []


def cuts(pace: Pace, block: Block, seconds: Callable[[int], float]) -> list[int]:
    """The sizes of the pieces in which a block is asked, of a model that takes so long for so many samples."""
    sizes, at = [], block.start
    for piece in pace.pieces(block):
        assert piece.start == at
        sizes.append(piece.stop - piece.start)
        pace.took(sizes[-1], seconds(sizes[-1]))
        at = piece.stop
    assert at == block.stop
    return sizes


def test_a_slow_model_is_asked_in_pieces_of_about_a_second() -> None:
    assert cuts(Pace(rate=3.0), Block(0, 100), lambda size: size / 8)[:4] == [3, 8, 8, 8]
    assert cuts(Pace(rate=32.0, guessed=True), Block(0, 50), lambda size: 10.0 * size) == [32] + [1] * 18


def test_a_fast_model_is_asked_for_few_samples_once_and_then_for_whole_blocks() -> None:
    pace = Pace(rate=32.0, guessed=True)
    assert cuts(pace, Block(0, 1000), lambda size: size / 5_000) == [32, 968]
    assert cuts(pace, Block(1000, 2000), lambda size: size / 5_000) == [1000]


@pytest.mark.parametrize("fixed", [0.8, 3.0, 8.0, 60.0])
def test_where_a_call_costs_much_in_itself_pieces_grow_until_they_are_whole_blocks(fixed: float) -> None:
    pace = Pace(rate=32.0, guessed=True)
    first = cuts(pace, Block(0, 1000), lambda size: fixed + size / 1e4)
    assert len(first) < 15
    for number in range(1, 6):
        last = cuts(pace, Block(number * 1000, number * 1000 + 1000), lambda size: fixed + size / 1e4)
    assert last == [1000]


def test_what_an_adaptive_run_or_a_card_is_asked_is_never_cut() -> None:
    block, part = Block(0, 100), Block(0, 100, (1,))
    assert list(Pace(rate=1.0).pieces(part)) == [part]
    assert list(Pace(None).pieces(block)) == [block]
    assert not Pace(rate=1.0).cuts([block, part])
    assert not Pace(None).cuts([block, block])
    assert Pace(rate=1.0).cuts([block, block])


@pytest.mark.parametrize(("wanted", "pieces"), [(60.0, 1), (0.0, 4)])
def test_what_takes_less_than_a_second_is_whole(
    question: Question, monkeypatch: pytest.MonkeyPatch, wanted: float, pieces: int
) -> None:
    engine, block = choose(question), Block(0, 200)
    monkeypatch.setattr(serial, "WANTED", wanted)
    pace = Pace(rate=1.0)
    pace.samples = 50
    monkeypatch.setattr(pace, "took", lambda samples, seconds: None)
    found = list(
        serial.in_pieces(engine, block, pace, lambda engine, part: engine.ask(part.start, part.stop))
    )
    assert len(found) == pieces
    assert found[-1][0].stop == 200
    np.testing.assert_array_equal(sum(part.counts for _, part in found), engine.count(0, 200))


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
