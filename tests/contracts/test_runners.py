"""What every runner keeps: each block once, the right counts, errors come through."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN
from torch_geometric.utils import erdos_renyi_graph

from unswayed.errors import UnsoundModel
from unswayed.runners import Block, SerialRunner
from unswayed.sampling.engines.generic import GenericEngine
from unswayed.sampling.question import Question
from unswayed.sampling.threat import Row
from unswayed.theory.noise import Flip

RUNNERS = {"serial": SerialRunner}


@pytest.fixture(params=sorted(RUNNERS))
def runner(request):
    return RUNNERS[request.param]()


@pytest.fixture(scope="module")
def question():
    torch.manual_seed(0)
    data = Data(x=torch.randn(15, 4), edge_index=erdos_renyi_graph(15, 0.2))
    return Question(GCN(4, 8, 2, 3), Row(data, [0, 4, 14]), Flip(0.7), engine="generic")


class TestRunner:
    def test_each_block_is_counted_once_and_right(self, runner, question):
        blocks = [Block(40, 60), Block(0, 40, (2, 0)), Block(60, 61)]
        done = dict(runner.run(question, blocks))
        assert set(done) == set(blocks)
        engine = GenericEngine(question)
        for block, part in done.items():
            assert np.array_equal(part.counts, engine.count(block.start, block.stop, block.targets))

    def test_no_blocks_ask_nothing(self, runner, question):
        assert list(runner.run(question, [])) == []

    def test_refusals_come_through(self, runner, question):
        from dataclasses import replace

        cached = GCN(4, 8, 2, 3, cached=True)
        with pytest.raises(UnsoundModel, match="cache"):
            list(runner.run(replace(question, model=cached), [Block(0, 5)]))
