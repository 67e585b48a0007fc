"""What every runner keeps: each block once, the right counts, errors come through."""

import warnings

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN
from torch_geometric.utils import erdos_renyi_graph

from unswayed.errors import UnsoundModel
from unswayed.runners import Block, SerialRunner, SeveralRunner
from unswayed.sampling.engines.asking.alone import Alone
from unswayed.sampling.question import Question
from unswayed.sampling.threats import Row
from unswayed.theory.noise import Flip


def of_ray():
    pytest.importorskip("ray")
    from unswayed.runners.ray import RayRunner

    return RayRunner(workers=1)


def of_several():
    return SeveralRunner(["cpu", "cpu:0"])


RUNNERS = {"serial": SerialRunner, "several": of_several, "ray": of_ray}


@pytest.fixture(scope="module", params=sorted(RUNNERS))
def runner(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray leaves files and sockets to the garbage collector
        made = RUNNERS[request.param]()
        yield made
        if hasattr(made, "close"):
            made.close()


@pytest.fixture(scope="module")
def question():
    torch.manual_seed(0)
    data = Data(x=torch.randn(15, 4), edge_index=erdos_renyi_graph(15, 0.2))
    return Question(GCN(4, 8, 2, 3), Row(data, [0, 4, 14]), Flip(0.7), engine="generic")


class TestRunner:
    def test_each_block_is_counted_once_and_right(self, runner, question):
        blocks = [Block(40, 60), Block(0, 40, (2, 0)), Block(60, 61)]
        done = dict(runner.run(question, blocks))  # slow machines may get a block in pieces
        counted = [(number, block.targets) for block in done for number in range(block.start, block.stop)]
        asked = [(number, block.targets) for block in blocks for number in range(block.start, block.stop)]
        assert sorted(counted, key=str) == sorted(asked, key=str)
        alone = Alone(question)  # the module itself, one graph at a time
        for block, part in done.items():
            targets = (0, 1, 2) if block.targets is None else block.targets
            said = alone.answers(range(block.start, block.stop), targets).argmax(dim=-1)
            expected = [np.bincount(said[:, place], minlength=3) for place in range(len(targets))]
            assert part.counts.tolist() == np.array(expected).tolist()

    def test_no_blocks_ask_nothing(self, runner, question):
        assert list(runner.run(question, [])) == []

    def test_refusals_come_through(self, runner, question):
        from dataclasses import replace

        cached = GCN(4, 8, 2, 3, cached=True)
        with pytest.raises(UnsoundModel, match="cache"):
            list(runner.run(replace(question, model=cached), [Block(0, 5)]))
