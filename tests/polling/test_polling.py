import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.nn import GCN

import unswayed as us
from unswayed.errors import InputError, StoreError, UnsoundModel
from unswayed.polling import missing
from unswayed.runners import Block, SerialRunner, serial
from unswayed.votes import Votes

from .recorder import Recorder

CHECKOUT = Path(__file__).parent.parent.parent
FLIP = us.Flip(beta=0.7)


def test_votes_say_what_was_asked(ask, data):
    votes = ask()
    assert votes.starts.tolist() == [0, 1000, 2000]
    assert votes.stops.tolist() == [1000, 2000, 2500]
    assert votes.samples.tolist() == [2500, 2500]
    assert votes.classes == 3
    assert votes.targets.tolist() == [0, 4]
    assert votes.entries.tolist() == [14, 14]
    assert votes.ones.tolist() == us.Row(data, [0, 4]).ones.tolist()
    assert set(votes.provenance) == {"model", "threat", "seed", "purpose", "shared", "stream", "classes"}
    assert json.loads(json.dumps(dict(votes.provenance))) == dict(votes.provenance)


def test_order_of_blocks_and_batch_sizes_change_nothing(ask):
    assert ask() == ask(runner=Recorder(backwards=True)) == ask(batch_size=17, engine="generic")


def test_votes_of_two_runs_join(ask):
    """Sample numbers 0 .. 999 of one run and 1000 .. 1999 of another are those of a run of 2,000."""
    whole, first = ask(2000), ask(1000)
    second = replace(
        whole,
        **{
            name: getattr(whole, name)[whole.starts >= 1000]
            for name in ("blocks", "starts", "stops", "polled")
        },
    )
    assert first + second == second + first == whole
    assert (
        (first + second).counts.tolist() == (first.counts + second.counts).tolist() == whole.counts.tolist()
    )
    with pytest.raises(InputError, match="overlap"):
        first + whole


@pytest.mark.parametrize("until", [None, us.Budget(seconds=1e6)])
def test_a_poll_that_ends_later_with_fewer_samples_leaves_those_of_another_in_the_store(ask, tmp_path, until):
    """They were lost in silence: of two polls the one that was done last had the say."""
    asked = {"store": tmp_path / "run", "until": until, "audit": 20}

    class Overtaken(SerialRunner):
        def run(self, question, blocks):
            if not (tmp_path / "run" / "votes.npz").exists():
                self.more = ask(3_000, **asked)
            yield from super().run(question, blocks)

    overtaken = Overtaken()
    few = ask(100, runner=overtaken, **asked)
    assert few.samples.tolist() == [100, 100]
    assert us.load(tmp_path / "run") == overtaken.more
    assert overtaken.more.samples.min() > 100
    assert ask(4_000, **asked).samples.max() > overtaken.more.samples.max()  # and a larger one is stored
    assert us.load(tmp_path / "run").samples.max() > overtaken.more.samples.max()


@pytest.mark.parametrize(
    "pieces", [[(1000, 1300), (1500, 2000)], [(1200, 1400), (1400, 2000)], [(1000, 2000)]]
)
def test_fewer_samples_than_a_stopped_poll_was_to_count_are_cut_out_of_its_pieces(ask, tmp_path, pieces):
    """What several workers had counted beyond became one piece with what was missing, and the poll ended in an error."""
    stopped = ask(2_000, store=tmp_path)
    counts = np.array([ask(stop).counts - ask(start).counts for start, stop in pieces])
    starts, stops = np.array(pieces).T
    polled = np.ones((len(pieces), 2), bool)
    replace(stopped, blocks=counts, starts=starts, stops=stops, polled=polled).save(tmp_path / "votes.npz")
    assert ask(1_500, store=tmp_path) == ask(1_500)
    assert us.load(tmp_path) == ask(2_000)


def test_a_runner_that_leaves_blocks_out_is_noticed(ask):
    later = SerialRunner()

    class Second(Recorder):
        def run(self, question, blocks):
            return later.run(question, [block for block in blocks if block.start >= 1000])

    with pytest.raises(InputError):
        ask(2000, runner=Second())


def test_seeds_purposes_and_own_noise_give_other_votes(ask):
    votes = [ask(), ask(seed=1), ask(purpose="select"), ask(shared=False)]
    for i, one in enumerate(votes):
        for other in votes[:i]:
            assert not np.array_equal(one.counts, other.counts)
            with pytest.raises(InputError):
                one + other


@pytest.mark.usefixtures("whole_blocks")
def test_a_store_resumes_with_only_what_is_missing(ask, tmp_path):
    first, second, third = Recorder(), Recorder(), Recorder()
    ask(1500, store=tmp_path / "run", runner=first)
    votes = ask(3200, store=tmp_path / "run", runner=second)
    ask(3200, store=tmp_path / "run", runner=third)
    assert first.blocks == [(0, 1000), (1000, 1500)]
    assert second.blocks == [(1500, 2000), (2000, 3000), (3000, 3200)]
    assert third.blocks == []
    assert votes == ask(3200)
    assert us.load(tmp_path / "run") == votes


def _thirties(pace, block):
    for at in range(block.start, block.stop, 30):
        yield Block(at, min(at + 30, block.stop))


def test_blocks_that_come_in_pieces_are_the_same_votes(ask, tmp_path, monkeypatch):
    everything, few = ask(1500, store=tmp_path / "run"), ask(1200)
    monkeypatch.setattr(serial.Pace, "took", lambda pace, samples, seconds: None)
    monkeypatch.setattr(serial, "WANTED", 0.0)
    monkeypatch.setattr(serial.Pace, "of", classmethod(lambda pace, engine: pace(None)))
    monkeypatch.setattr(serial.Pace, "cuts", lambda pace, group: True)
    monkeypatch.setattr(serial.Pace, "pieces", _thirties)
    recorder, short = Recorder(), Recorder()
    assert ask(1500, runner=recorder) == everything
    assert len(recorder.blocks) > 40
    assert ask(1200, store=tmp_path / "run", runner=short) == few  # part of a stored block, drawn again
    assert len(short.blocks) > 4
    assert us.load(tmp_path / "run") == everything


@pytest.mark.usefixtures("whole_blocks")
def test_fewer_samples_than_stored_use_the_first_ones(ask, tmp_path):
    everything = ask(3000, store=tmp_path / "run")
    recorder = Recorder()
    assert ask(2000, store=tmp_path / "run", runner=recorder) == ask(2000)
    assert recorder.blocks == []
    assert ask(1700, store=tmp_path / "run", runner=recorder) == ask(1700)
    assert recorder.blocks == [(1000, 1700)]
    assert us.load(tmp_path / "run") == everything


@pytest.mark.usefixtures("whole_blocks")
def test_an_interrupt_leaves_a_valid_store(ask, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        ask(5000, store=tmp_path / "run", runner=Recorder(stop_after=2))
    assert us.load(tmp_path / "run").samples.tolist() == [2000, 2000]
    recorder = Recorder()
    assert ask(5000, store=tmp_path / "run", runner=recorder) == ask(5000)
    assert recorder.blocks == [(2000, 3000), (3000, 4000), (4000, 5000)]


def test_stores_of_another_question_are_refused_by_name(model, data, tmp_path):
    threat = us.Row(data, [0, 4])
    us.poll(model, threat, FLIP, samples=10, store=tmp_path)
    torch.manual_seed(2)
    other, more = GCN(4, 8, 2, 3, dropout=0.5), data.clone()
    more.x = more.x + 1
    cases = {
        "model": (other, threat, FLIP, {}),
        "noise": (model, threat, us.Flip(beta=0.8), {}),
        "seed": (model, threat, FLIP, {"seed": 3}),
        "graph": (model, us.Row(more, [0, 4]), FLIP, {}),
        "list of targets": (model, us.Row(data, [0, 5]), FLIP, {}),
        "threat": (model, us.AllPairs(data, [0, 4]), FLIP, {}),
        "classes": (model, threat, FLIP, {"classes": 4}),
    }
    for words, (asked, where, noise, rest) in cases.items():
        with pytest.raises(StoreError, match=words):
            us.poll(asked, where, noise, samples=10, store=tmp_path, **rest)
    assert us.poll(model.train(), threat, FLIP, samples=10, store=tmp_path).samples.tolist() == [10, 10]


def test_votes_that_another_run_left_in_the_folder_are_refused(model, data, tmp_path):
    threat = us.Row(data, [0, 4])
    runs = {"run": (FLIP, 0), "seed": (FLIP, 3), "noise": (us.Flip(beta=0.9), 0)}
    for name, (noise, seed) in runs.items():
        us.poll(model, threat, noise, samples=10, seed=seed, store=tmp_path / name)
    for name in ("seed", "noise"):
        (tmp_path / "run" / "votes.npz").write_bytes((tmp_path / name / "votes.npz").read_bytes())
        with pytest.raises(StoreError, match="another run"):
            us.poll(model, threat, FLIP, samples=10, store=tmp_path / "run")


def test_blocks_still_missing():
    def stored(*spans):
        return Votes(
            blocks=np.zeros((len(spans), 1, 2), dtype=int),
            starts=np.array([a for a, _ in spans]),
            stops=np.array([b for _, b in spans]),
            noise=FLIP,
            entries=np.array([3]),
        )

    def spans(votes, samples):
        return [(block.start, block.stop) for block in missing(votes, samples)]

    assert spans(None, 2100) == [(0, 1000), (1000, 2000), (2000, 2100)]
    assert spans(stored((0, 1000), (2000, 3000)), 3000) == [(1000, 2000)]
    assert spans(stored((2000, 3000), (0, 700)), 3500) == [(700, 1000), (1000, 2000), (3000, 3500)]
    assert spans(stored((0, 5000)), 5000) == []
    assert spans(stored((0, 5000)), 1200) == [(0, 1000), (1000, 1200)]
    assert missing(None, 1) == [Block(0, 1)]


@pytest.mark.parametrize("samples", [0, -5, 1.5, True, "10"])
def test_samples_must_be_a_whole_number_from_one_up(ask, samples):
    with pytest.raises(InputError, match="samples"):
        ask(samples)


def test_settings_that_do_not_fit_are_refused(model, data):
    threat = us.Row(data, 0)
    for wrong in ({"engine": "warp"}, {"batch_size": 0}, {"seed": -1}, {"classes": 1}, {"purpose": "x"}):
        with pytest.raises(InputError):
            us.poll(model, threat, FLIP, samples=5, **wrong)
    with pytest.raises(InputError, match="threat"):
        us.poll(model, data, FLIP, samples=5)
    with pytest.raises(InputError, match="noise"):
        us.poll(model, threat, 0.7, samples=5)


def test_a_refused_model_leaves_no_votes(data, tmp_path):
    with pytest.raises(UnsoundModel):
        us.poll(GCN(4, 8, 2, 3, cached=True), us.Row(data, 0), FLIP, samples=5, store=tmp_path / "run")
    assert not (tmp_path / "run" / "votes.npz").exists()


@pytest.mark.slow
def test_three_kills_lose_nothing(tmp_path):
    command = [
        sys.executable,
        "-m",
        "benchmarks.checks.kill_and_resume",
        "--kills",
        "3",
        "--samples",
        "20000",
    ]
    done = subprocess.run(
        [*command, "--folder", str(tmp_path)],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["kills"] == 3
    assert all(found < 20_000 for found in told["samples found after each kill"])
