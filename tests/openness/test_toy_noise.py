"""A noise that the package has never heard of: one class here, and everything from sampling to the report serves it."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
import torch

import unswayed as us
from unswayed.cli.main import main
from unswayed.theory.entrywise import EntryWise
from unswayed.theory.noise import WORD, Noise


@dataclass(frozen=True)
class Eighths(Noise):
    """An entry flips with so many eighths of probability, a 1 twice as easily as a 0."""

    parts: int
    kind = "eighths"

    @property
    def thresholds(self):
        return self.parts * WORD // 16, self.parts * WORD // 8

    @property
    def p_add(self):
        return self.parts / 16

    @property
    def p_delete(self):
        return self.parts / 8

    @property
    def law(self):
        return EntryWise(self)

    def words(self):
        return f"missing entries appear {self.parts} times in 16, others vanish {self.parts} times in 8"


X = np.array([[1, 1, 1, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 1, 0, 0]], bool)


def few(bits):
    """1 where at least half of the entries are there."""
    return (torch.as_tensor(bits).sum(dim=1) >= 4).long()


@pytest.fixture
def store(tmp_path):
    us.poll(few, us.Bits(X), Eighths(parts=1), samples=4_000, seed=3, classes=2, store=tmp_path / "run")
    return tmp_path / "run"


def test_it_is_drawn_as_it_says(store):
    """The label of the second row needs three of its seven zeros to appear; counted by its own probabilities."""
    votes = us.load(store)
    assert votes.noise == Eighths(parts=1)
    rng = np.random.default_rng(0)
    flips = np.where(X[1], 1 / 8, 1 / 16)
    noisy = X[1] ^ (rng.random((200_000, 8)) < flips)
    expected = (noisy.sum(axis=1) >= 4).mean()
    assert votes.counts[1, 1] / 4_000 == pytest.approx(expected, abs=0.01)


def test_its_sizes_are_those_of_the_same_probabilities(store):
    certs = us.certify(us.load(store))
    same = us.AddDelete(p_add=1 / 16, p_delete=1 / 8)
    about = certs.about
    expected = us.theory.certified_size(certs.p_top, certs.p_rest, same, about.entries, ones=about.ones)
    assert certs.size.tolist() == expected.tolist()
    assert certs.size.max() >= 1


def test_report_json_and_explain_serve_it(store, tmp_path, capsys):
    words = Eighths(parts=1).words()
    assert main(["report", str(store), "--out", str(tmp_path / "r.html"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["noise"] == {"kind": "eighths", "parts": 1}
    assert words in (tmp_path / "r.html").read_text()
    assert main(["explain", "1", "--store", str(store)]) == 0
    assert words in " ".join(capsys.readouterr().out.split())
    assert main(["explain", "1", "--store", str(store), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["size"] == found["targets"][1]["size"]
