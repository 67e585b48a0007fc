"""RayRunner on a real cluster of two nodes (two raylets on this machine), against SerialRunner."""

import importlib.util
import itertools
import os
import re
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
import torch
from torch_geometric.nn import GCNConv

import unswayed as us
from unswayed.errors import InputError, RefusedVotes, StoreError, UnsoundModel, Unsupported, WorldError
from unswayed.runners import Block, SerialRunner, Tally
from unswayed.runners.ray import RayRunner
from unswayed.store import Store
from unswayed.votes import Votes

from .blocks import (
    DRIVER,
    MODEL,
    Counted,
    Fuse,
    Net,
    ask,
    bits,
    cut,
    die,
    exhaust,
    graph,
    in_order,
    joined,
    parity,
    raise_,
    survivors,
    table,
)

ray = pytest.importorskip("ray")
CLIENT_PORT = 10077

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray leaves files and sockets to the garbage collector
        head = {"num_cpus": 1, "include_dashboard": False, "ray_client_server_port": CLIENT_PORT}
        nodes = Cluster(initialize_head=True, head_node_args=head)
        nodes.add_node(num_cpus=1)
        ray.init(nodes.address, log_to_driver=False, logging_level="ERROR")
        yield nodes
        ray.shutdown()
        nodes.shutdown()


@pytest.fixture
def runner(cluster):
    return RayRunner(address=cluster.address)


class TestVotes:
    def test_equal_to_serial_whatever_the_blocks(self, runner):
        question = ask(seed=5)
        assert table(runner.run(question, cut(200, 40))) == in_order(question, cut(200, 40))

    def test_separate_noise_some_targets_and_odd_blocks(self, runner):
        question = ask(shared=False)
        blocks = [Block(3, 50, (2, 0)), Block(50, 51, (1,)), Block(1000, 1033)]
        assert table(runner.run(question, blocks)) == in_order(question, blocks)

    def test_no_blocks_need_no_cluster(self):
        assert list(RayRunner(address="10.255.255.1:1").run(ask(), [])) == []

    def test_both_nodes_count(self, runner, monkeypatch):
        seen = set()
        module = sys.modules["unswayed.runners.ray_blocks"]

        def slowly(*arguments):
            time.sleep(0.3)
            return [(block, Tally(np.array([[os.getppid()]]))) for block in arguments[-1]]

        monkeypatch.setattr(module, "count_blocks", slowly)
        for _ in range(
            4
        ):  # on a busy machine one node may have done all before a worker of the other has started
            seen |= {int(part.counts[0, 0]) for _, part in runner.run(bits(parity), cut(8, 1))}
            if len(seen) == 2:
                break
        assert len(seen) == 2  # workers of two raylets

    def test_poll_takes_it_as_a_runner(self, runner):
        plain = us.poll(Net(), us.Row(graph(), [1, 2]), us.Flip(beta=0.7), samples=100, seed=2)
        assert (
            us.poll(Net(), us.Row(graph(), [1, 2]), us.Flip(beta=0.7), samples=100, seed=2, runner=runner)
            == plain
        )

    def test_the_same_answers_are_asked_again_as_of_a_serial_poll(self, runner):
        def noted(**how):
            votes = us.poll(Net(), us.Row(graph(), [1, 2]), us.Flip(beta=0.7), samples=100, audit=50, **how)
            return {**votes.notes["audit"], "seconds": 0.0}

        found = noted(runner=runner)
        assert (found["asked"], found["agreed"], found["covered"]) == (50, 50, 200)
        assert found == noted()

    def test_workers_that_answer_otherwise_than_here_are_found_out(self, runner, tmp_path):
        home = os.getpid()

        def elsewhere(rows):
            return parity(rows) ^ int(os.getpid() != home)

        threat = us.Bits(np.random.default_rng(0).random((2, 12)) < 0.5)
        with pytest.raises(RefusedVotes, match="asked again one at a time"):
            us.poll(
                elsewhere,
                threat,
                us.Flip(beta=0.8),
                samples=50,
                classes=2,
                runner=runner,
                store=tmp_path / "run",
            )
        with pytest.raises(StoreError, match="were refused"):
            us.load(tmp_path / "run")

    def test_a_model_from_a_file_that_workers_cannot_import(self, runner, tmp_path):
        path = tmp_path / "home_made_model.py"
        path.write_text("def classify(rows):\n    return rows[:, 0] ^ rows[:, 1]\n")
        spec = importlib.util.spec_from_file_location("home_made_model", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules["home_made_model"] = module
        try:
            spec.loader.exec_module(module)
            question = bits(module.classify)
            assert table(runner.run(question, cut(20, 10))) == in_order(question, cut(20, 10))
        finally:
            del sys.modules["home_made_model"]

    def test_no_more_in_flight_than_twice_the_slots(self, runner, monkeypatch):
        module = sys.modules["unswayed.runners.ray_blocks"]
        most = []
        taken = module.Run._take

        def watch(self):
            most.append(len(self.asked))
            return taken(self)

        monkeypatch.setattr(module.Run, "_take", watch)
        assert len(table(runner.run(bits(parity), cut(60, 2)))) == 30
        assert max(most) == 4  # two nodes of one CPU
        most.clear()
        assert len(table(RayRunner(address=runner.address, workers=1).run(bits(parity), cut(10, 2)))) == 5
        assert max(most) == 1


class TestOnce:
    """What is the same for all tasks is fetched, and made, once in each worker."""

    def test_an_engine_is_chosen_once_also_for_a_later_poll_of_the_same_question(self, cluster, tmp_path):
        made = tmp_path / "made"
        made.mkdir()
        one = RayRunner(address=cluster.address)
        question = bits(Counted(made))
        for blocks in (cut(40, 5), [Block(40, 50)]):
            assert len(table(one.run(question, blocks))) == len(blocks)
        assert 1 <= len(list(made.iterdir())) <= 2  # workers, each of which unpacked it once
        assert len(table(one.run(bits(Counted(made), seed=1), cut(40, 5)))) == 8
        assert 2 <= len(list(made.iterdir())) <= 4  # another question is another engine


class TestProofs:
    def proofs(self, **more):
        data = graph()
        known = torch.tensor([0, 1, 2, 0, -1, 1, -1, 2])
        ballots = us.LabelBallots(3).freeze(data, known=known)
        return us.prove(ballots, us.Row(data, [0, 1, 2, 3, 4, 5, 6]), **more)

    def test_the_proofs_are_those_made_here(self, runner):
        here, there = self.proofs(), self.proofs(runner=runner)
        assert here.size.tolist() == there.size.tolist()
        assert here.label.tolist() == there.label.tolist()
        assert [here.witness(i) is None for i in range(7)] == [there.witness(i) is None for i in range(7)]

    @pytest.mark.parametrize("change", ["any", "adds", "deletes"])
    def test_parts_are_the_whole(self, runner, change):
        record = self.proofs().record
        assert runner.sizes(record, change).tolist() == record.sizes(change).tolist()

    def test_others_take_no_runner(self, runner):
        with pytest.raises(InputError, match="RayRunner or none, not SerialRunner"):
            self.proofs(runner=SerialRunner())
        with pytest.raises(Unsupported, match="leave the runner away for Hashed"):
            us.prove(us.Hashed(Net(), 3), us.Row(graph(), [0]), runner=runner)

    def test_no_room_is_an_error_in_the_end(self, cluster):
        greedy = RayRunner(address=cluster.address, cpus_per_task=64, patience=0.5)
        with pytest.raises(WorldError, match="no room for a task of 64 CPU"):
            self.proofs(runner=greedy)


class TestTime:
    """A slow model's counts come home about once a second, not by whole blocks."""

    def test_slow_blocks_come_in_pieces_that_are_told_and_stored(self, runner, tmp_path, monkeypatch, capsys):
        def slow(rows):
            time.sleep(0.01 * len(rows))
            return parity(rows)

        stored = []
        save = Store.save
        monkeypatch.setattr(
            Store,
            "save",
            lambda self, votes: stored.append(int(votes.samples.min())) or save(self, votes),
        )
        threat = us.Bits(np.random.default_rng(0).random((2, 12)) < 0.5)
        asked = {"samples": 400, "classes": 2, "seed": 4, "audit": 2}
        votes = us.poll(
            slow, threat, us.Flip(beta=0.8), runner=runner, store=tmp_path / "run", progress=True, **asked
        )
        assert votes.counts.tolist() == us.poll(parity, threat, us.Flip(beta=0.8), **asked).counts.tolist()
        assert len([number for number in stored if number < 400]) >= 2  # eight seconds of one block
        said = capsys.readouterr().err
        assert "the generic engine, 1 thread," in said
        assert "left" in said

    def test_a_piece_is_followed_by_the_rest_of_its_block(self, runner, monkeypatch):
        module = sys.modules["unswayed.runners.ray_blocks"]

        def half(version, name, held, threads, share):
            block = share[0]
            stop = block.stop if block.stop - block.start < 4 else (block.start + block.stop) // 2
            return [(Block(block.start, stop), Tally(np.array([[stop - block.start]])))]

        monkeypatch.setattr(module, "count_blocks", half)
        found = {(b.start, b.stop): part for b, part in runner.run(bits(parity), cut(40, 20))}
        edges = sorted(found)
        assert edges[0][0] == 0
        assert edges[-1][1] == 40
        assert all(one[1] == other[0] for one, other in itertools.pairwise(edges))


class TestFaults:
    def test_a_killed_worker_changes_nothing(self, runner, tmp_path):
        blocks = [*cut(100, 20), Block(100, 130), Block(130, 150)]
        question = bits(Fuse(tmp_path / "lives", die))
        assert table(runner.run(question, blocks)) == in_order(bits(parity), blocks)
        assert (tmp_path / "lives").read_text() == "0"

    @pytest.mark.parametrize(
        ("harm", "message"),
        [
            (die, r"Samples 100 to 129 killed their worker 1 times"),
            (raise_, r"Samples 100 to 129 .* failed on a worker \(ZeroDivisionError: the model broke\)"),
            (exhaust, r"Samples 100 to 129 .* ran out of memory .* batch_size"),
        ],
    )
    def test_a_block_that_cannot_be_counted_is_one_clear_error_and_the_rest_is_kept(
        self, cluster, tmp_path, harm, message
    ):
        runner = RayRunner(address=cluster.address, retries=0)
        question = bits(Fuse(tmp_path / "lives", harm, lives=99))
        kept, error = survivors(runner.run(question, [*cut(100, 20), Block(100, 130)]))
        assert isinstance(error, WorldError)
        assert re.match(message + ".*Every finished block is kept", str(error))
        assert "\n" not in str(error)
        assert kept == in_order(bits(parity), cut(100, 20))

    def test_our_own_refusals_come_through_as_they_are(self, runner):
        class Cached(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = GCNConv(4, 3, cached=True)

            def forward(self, x, edge_index):
                return self.conv(x, edge_index)

        with pytest.raises(UnsoundModel, match="cached"):
            list(runner.run(ask(Cached()), cut(10, 5)))

    def test_a_killed_node_changes_nothing(self, cluster, runner):
        doomed = cluster.add_node(num_cpus=1)

        def slow(rows):
            time.sleep(0.2)
            return parity(rows)

        results, killed = {}, False
        for block, part in runner.run(bits(slow), cut(300, 10)):
            assert (block.start, block.stop) not in results
            results[block.start, block.stop] = (part.counts.tolist(), part.audit)
            if len(results) == 6:
                cluster.remove_node(doomed, allow_graceful=False)
                killed = True
        assert killed
        blocks = cut(300, 10)
        assert joined(results, blocks) == joined(in_order(bits(parity), blocks), blocks)

    def test_a_caller_that_stops_early_leaves_the_cluster_usable(self, runner):
        results = runner.run(bits(parity), cut(100, 5))
        next(results)
        results.close()
        assert len(table(runner.run(bits(parity), cut(10, 5)))) == 2

    def test_no_room_for_a_task_is_an_error_in_the_end(self, cluster):
        greedy = RayRunner(address=cluster.address, cpus_per_task=64, patience=0.5)
        with pytest.raises(WorldError, match="no room for a task of 64 CPU"):
            list(greedy.run(bits(parity), cut(4, 2)))


@pytest.mark.slow
class TestDrivers:
    """Callers in processes of their own."""

    def start(self, tmp_path, address, pause=0.0):
        (tmp_path / "parity_model.py").write_text(MODEL.format(pause=pause))
        code = DRIVER.format(folder=str(tmp_path), address=address, store=str(tmp_path / "run"))
        return subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def expected(self):
        def same(rows):
            return rows[:, :3].sum(axis=1) % 2

        threat = us.Bits([[0, 1, 1, 0, 1, 0], [1, 1, 0, 0, 0, 1]])
        return us.poll(same, threat, us.Flip(beta=0.7), samples=4000, seed=3, classes=2).counts.tolist()

    def test_through_rays_client(self, cluster, tmp_path):
        pytest.importorskip("grpc")
        driver = self.start(tmp_path, f"ray://127.0.0.1:{CLIENT_PORT}")
        out, err = driver.communicate(timeout=400)  # a busy machine starts processes slowly
        assert out.strip() == "8000", err
        assert us.load(tmp_path / "run").counts.tolist() == self.expected()

    def test_a_killed_driver_goes_on_from_its_store(self, cluster, tmp_path):
        first = self.start(tmp_path, cluster.address, pause=0.15)
        kept = tmp_path / "run" / "votes.npz"
        while not kept.exists() and first.poll() is None:
            time.sleep(0.05)
        first.kill()
        said = first.communicate()
        assert kept.exists(), said
        before = us.Votes.load(kept)  # whichever blocks came first; `us.load` gives only those without a gap
        assert 0 < before.samples[0] < 4000
        second = self.start(tmp_path, cluster.address, pause=0.15)
        _, err = second.communicate(timeout=400)
        assert second.returncode == 0, err
        after = us.load(tmp_path / "run")
        assert after.counts.tolist() == self.expected()
        done = before.stops - before.starts == 1000
        assert np.all(after.blocks[np.isin(after.starts, before.starts[done])] == before.blocks[done])


class TestSettings:
    def test_what_cannot_be_sent_is_refused(self, runner):
        import threading

        lock = threading.Lock()

        def locked(rows):
            with lock:
                return parity(rows)

        with pytest.raises(InputError, match="cannot be sent to workers"):
            list(runner.run(bits(locked), cut(4, 2)))

    def test_a_cluster_of_the_callers_own_is_left_running(self, cluster):
        with RayRunner() as runner:  # would start its own, but Ray is initialised already
            assert len(table(runner.run(bits(parity), cut(4, 2)))) == 2
        assert ray.is_initialized()


def test_votes_are_votes(runner):
    """What comes back can be kept as votes: integers of the right shape."""
    (block, part) = next(iter(runner.run(bits(parity), [Block(0, 16)])))
    assert part.counts.dtype == np.int64
    votes = Votes(part.counts[None], [block.start], [block.stop], us.Flip(beta=0.8), entries=12)
    assert votes.samples.tolist() == [16, 16]
