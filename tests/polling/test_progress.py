"""What takes long is said, and stored as it comes."""

import io
import re
import sys
import threading
import time
from types import SimpleNamespace

import pytest
import torch
from torch_geometric.datasets import KarateClub

import unswayed as us
from unswayed import ledger, polling, watching
from unswayed.datasets import Split, from_data
from unswayed.models.floors import floor
from unswayed.models.training import fit
from unswayed.sampling.question import Question
from unswayed.votes import Votes

from .recorder import Recorder

FLIP = us.Flip(beta=0.7)


# how long it takes is no part of a model's answers: nothing that holds a lock has content to compare
WAITING = SimpleNamespace(seconds=0.0, left=10**9, lock=threading.Lock())


def waiting(x, edge_index):
    """Takes a while for every graph, and may be stopped like somebody pressing Ctrl-C."""
    graphs = max(len(x) // 15, 1)
    time.sleep(WAITING.seconds * graphs)
    WAITING.left -= graphs
    if WAITING.left < 0:
        raise KeyboardInterrupt
    return torch.nn.functional.one_hot(torch.bincount(edge_index[1], minlength=len(x)) % 3, 3).double()


@pytest.fixture
def slowly(monkeypatch):
    def choose(seconds, left=10**9):
        monkeypatch.setattr(WAITING, "seconds", seconds)
        monkeypatch.setattr(WAITING, "left", left)
        return waiting

    return choose


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_what_takes_long_is_said_with_engine_speed_and_time_left(data, capsys, monkeypatch, slowly):
    monkeypatch.setattr(watching, "LONG", 0.2)
    monkeypatch.setattr(watching, "FIRST", 0.1)
    us.poll(slowly(0.01), us.Row(data, [0, 4]), FLIP, samples=60, audit=0, engine="generic", progress=True)
    said = capsys.readouterr()
    assert said.out == ""
    line = said.err.partition("\n")[0]
    assert re.match(
        r"polling: the generic engine, 1 thread, [\d.,]+ answers a second, about \d+ s left\.", line
    )
    assert "No faster engine: engine='generic' was asked for." in line
    assert line.count("alpha") == 1
    assert "Even unanimous votes of 60 samples prove nothing at alpha = 0.001." not in line
    reach = int(us.certify(Votes.from_counts([[60, 0, 0]], FLIP, entries=14)).size[0])
    assert f"At alpha = 0.001 they can prove at most K = {reach}." in line
    assert "120" in said.err  # the bar tells of answers


@pytest.mark.parametrize(
    ("progress", "terminal", "shown"),
    [(None, False, False), (None, True, True), (False, True, False), (True, False, True)],
)
def test_progress_true_means_yes_and_false_means_no(data, monkeypatch, slowly, progress, terminal, shown):
    monkeypatch.setattr(watching, "LONG", 0.0)
    monkeypatch.setattr(watching, "FIRST", 0.0)
    screen = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    us.poll(slowly(0.001), us.Row(data, [0]), FLIP, samples=20, audit=0, progress=progress)
    assert ("answers a second" in screen.getvalue()) == shown


def test_the_ceiling_is_that_of_unanimous_votes(data, model):
    for samples in (5, 10, 100, 1000):
        for noise in (FLIP, us.AddDelete(0.001, 0.4), us.Keep(3, 9)):
            question = Question(None, us.Row(data, [0, 4]), noise, classes=3)
            votes = Votes.from_counts(
                [[samples, 0, 0]] * 2, noise, question.threat.entries, ones=question.threat.ones
            )
            most = int(us.certify(votes).size.max())
            said = polling.reach(question, samples, "strict", None)
            assert ("prove nothing" in said) if most < 0 else f"K = {most}." in said
            assert "K = -1" not in said
    hidden = Question(model, us.Intercept(data, [0]), us.Mask(0.5, 0.5), classes=3)
    assert polling.reach(hidden, 100, "strict", None) == ""


def test_progress_true_is_said_of_short_runs_too(ask, capsys):
    ask(50, progress=True)
    said = capsys.readouterr().err
    assert said.startswith("polling: the row engine, ")
    assert "%|" in said  # the bar
    assert said.count("polling: the row engine, ") == 1


def test_a_short_run_says_nothing(ask, capsys, monkeypatch):
    monkeypatch.setattr(watching, "_in_notebook", lambda: True)
    ask(10)
    assert capsys.readouterr() == ("", "")


def test_a_slow_model_is_stored_within_its_blocks_and_resumed_there(data, tmp_path, monkeypatch, slowly):
    monkeypatch.setattr(ledger, "SAVE_EVERY", 0.0)
    monkeypatch.setattr("unswayed.runners.serial.WANTED", 0.05)
    threat, asked = us.Row(data, [0, 4]), {"samples": 200, "audit": 0, "engine": "generic"}
    whole = us.poll(slowly(0), threat, FLIP, **asked)
    slow = slowly(0.01, left=300)
    with pytest.raises(KeyboardInterrupt):
        us.poll(slow, threat, FLIP, store=tmp_path / "run", **asked)
    kept = us.load(tmp_path / "run")
    assert 0 < kept.samples[0] < 200
    assert len(kept.starts) == 1  # pieces of one block are one
    recorder = Recorder()
    votes = us.poll(slowly(0.01), threat, FLIP, store=tmp_path / "run", runner=recorder, **asked)
    assert min(start for start, _ in recorder.blocks) == kept.samples[0]
    assert votes == whole
    assert votes.starts.tolist() == [0]
    assert votes.notes["spent"]["answers"] == 400
    assert votes.notes["spent"]["seconds"] > 1


@pytest.mark.usefixtures("whole_blocks")
def test_saving_takes_a_small_part_of_the_time(ask, tmp_path, monkeypatch):
    saves = []
    monkeypatch.setattr(polling.Store, "save", lambda self, votes: saves.append(len(votes.starts)))
    monkeypatch.setattr(ledger.time, "monotonic", lambda: 0.0)  # however busy the machine is
    ask(3000, store=tmp_path / "seldom")
    assert saves == [3, 3]  # the votes, and once more with what the audit said
    monkeypatch.setattr(ledger, "SAVE_EVERY", 0.0)
    ask(3000, store=tmp_path / "often")
    assert saves == [3, 3, 1, 2, 3, 3]


@pytest.mark.parametrize(
    ("terminal", "long", "shown"), [(True, 0.0, True), (True, 99.0, False), (False, 0.0, False)]
)
def test_training_says_how_far_it_is_where_somebody_looks(monkeypatch, terminal, long, shown):
    club = from_data(KarateClub()[0])
    parts = Split(range(10), range(10, 20), range(20, 34))
    monkeypatch.setattr(watching, "LONG", long)
    screen = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    fit("sage", club, parts)
    floor(club, parts)
    assert ("training" in screen.getvalue()) == shown
    assert ("floor" in screen.getvalue()) == shown


def test_whoever_asks_is_told_of_every_model_of_a_floor():
    club, told = from_data(KarateClub()[0]), []
    floor(club, Split(range(10), range(10, 20), range(20, 34)), progress=lambda *step: told.append(step))
    assert [step[:2] for step in told] == [(number, 12) for number in range(1, 13)]
    assert told[9][2] == "mlp-by-heart"
    assert {step[2] for step in told[10:]} == {
        "mlp-distilled"
    }  # the floor is the mean of the best and two more
