"""What tasks on a Ray cluster are asked for, and what is left of it; a stand-in plays the cluster, and tells what it was asked."""

import numpy as np
import pytest

from unswayed.errors import WorldError
from unswayed.runners import Block, Tally
from unswayed.runners.ray import RayRunner
from unswayed.runners.ray_blocks import Run

from .blocks import cut, survivors


class Died(Exception):
    pass


class Raised(Exception):
    cause = None


class Stub:
    """A cluster of so many processors, whose tasks are done one after the other when they are waited for."""

    def __init__(self, processors, work):
        self.processors, self.work, self.shares = processors, work, []
        self.exceptions = type("Exceptions", (), {"RayTaskError": Raised, "RayError": Died})

    def remote(self, function):
        return self

    def options(self, **settings):
        def ask(version, name, held, threads, share):
            self.shares.append(share)
            return len(self.shares) - 1

        return type("Task", (), {"remote": staticmethod(ask)})

    def cluster_resources(self):
        return {"CPU": float(self.processors)}

    def wait(self, asked, **settings):
        return asked[:1], asked[1:]

    def get(self, reference):
        return self.work(self.shares[reference])

    def cancel(self, reference):
        pass


def counted(*pieces):
    return [(piece, Tally(np.array([[piece.stop - piece.start]]))) for piece in pieces]


def run(stub, blocks, **settings):
    runner = RayRunner(**settings)
    return [(b.start, b.stop) for b, _ in Run(stub, runner, "name", None).results(blocks)]


def covers(pieces, samples):
    """Whether each sample was counted once."""
    return sorted(at for start, stop in pieces for at in range(start, stop)) == list(range(samples))


def test_tasks_get_smaller_towards_the_end():
    stub = Stub(2, lambda share: counted(*share))
    assert covers(run(stub, cut(640, 10)), 640)
    sizes = [len(share) for share in stub.shares]
    assert sizes[0] == 8  # an eighth of what is left, for two processors that have two tasks each
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-8:] == [1] * 8


def test_what_a_task_did_not_come_to_is_asked_for():
    def first_half(share):
        block = share[0]
        middle = (block.start + block.stop + 1) // 2
        return counted(Block(block.start, middle)) if middle < block.stop else counted(*share[:1])

    assert covers(run(Stub(2, first_half), cut(200, 8)), 200)


def test_the_last_block_that_takes_long_is_shared_out():
    stub = Stub(4, lambda share: counted(Block(share[0].start, min(share[0].start + 10, share[0].stop))))
    assert covers(run(stub, [Block(0, 1000)]), 1000)
    assert stub.shares[0] == (Block(0, 1000),)
    assert {b.stop - b.start for share in stub.shares[1:5] for b in share} == {248, 246}
    assert max(len(share) for share in stub.shares) == 1


def test_blocks_that_end_alike_are_told_apart():
    """Of two looks at the same samples for other targets the second is not taken for done with the first."""
    one, two = Block(0, 10, (0,)), Block(0, 10, (1,))
    done = []
    stub = Stub(1, lambda share: done.extend(share[:1]) or counted(share[0]))
    run(stub, [one, two])
    assert done == [one, two]


@pytest.mark.parametrize("retries", [0, 2])
def test_blocks_that_died_together_are_asked_alone_and_the_culprit_is_named(retries):
    def deadly(share):
        if any(block.start == 30 for block in share):
            raise Died("the worker died")
        return counted(*share)

    stub = Stub(1, deadly)
    kept, error = survivors(Run(stub, RayRunner(retries=retries), "name", None).results(cut(400, 10)))
    assert isinstance(error, WorldError)
    assert f"Samples 30 to 39 killed their worker {retries + 1} times" in str(error)
    alone = [share for share in stub.shares if share == (Block(30, 40),)]
    assert len(alone) == retries + 1
    assert any(len(share) > 1 and Block(30, 40) in share for share in stub.shares)
    assert (30, 40) not in kept


@pytest.mark.parametrize(("workers", "room"), [(None, 8), (1, 1), (3, 3), (4, 8), (9, 8)])
def test_no_more_tasks_than_may_run(workers, room):
    assert RayRunner(workers=workers).room(4) == room
