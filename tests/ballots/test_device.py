"""Sizes computed with torch are those computed with numpy, which brute force has checked."""

import numpy as np
import pytest
import torch

from unswayed.ballots import device as module
from unswayed.ballots.device import sizes_on
from unswayed.theory.electorate import Electorate
from unswayed.theory.roll import Roll

DEVICES = ["cpu", pytest.param("cuda", marks=[pytest.mark.cuda, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a card")])]  # fmt: skip


def random_people(seed, t=40, n=60, classes=4):
    rng = np.random.default_rng(seed)
    reach = int(rng.choice([1, 3, 100]))
    ballots = rng.integers(-reach, reach + 1, (n + 10, classes)).astype(np.int32)
    own = rng.integers(-reach, reach + 1, (t, classes)) * rng.integers(0, 2)
    linked = rng.random((t, n)) < rng.random((t, 1)) * 0.6
    itself = np.where(rng.random(t) < 0.7, rng.integers(0, n, t), -1)
    linked[np.arange(t)[itself >= 0], itself[itself >= 0]] = False
    target, voter = np.nonzero(linked)
    row = np.where(rng.random(len(voter)) < 0.3, n + rng.integers(0, 10, len(voter)), voter)
    start = np.searchsorted(target, np.arange(t + 1))
    people = (Roll(ballots, n), own, own * 2, start, row, voter, itself, n - (itself >= 0))
    return Electorate(*people)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("change", ["any", "adds", "deletes"])
@pytest.mark.parametrize(("kept", "at_once"), [(4096, 2**25), (3, 50)])
def test_both_libraries_agree(device, change, kept, at_once, monkeypatch):
    monkeypatch.setattr(module, "KEPT", kept)
    monkeypatch.setattr(module, "AT_ONCE", at_once)
    for seed in range(12):
        people = random_people(seed)
        assert np.array_equal(sizes_on(people, device, change), people.sizes(change)), seed


def test_links_that_speak_as_newcomers_are_moved_once():
    people = random_people(3)
    plain = Electorate(people.roll, people.own, people.base, people.start, people.voter, people.voter, people.itself, people.entries)  # fmt: skip
    moved = module.DeviceElectorate(plain, torch.device("cpu"))
    assert moved.parts["row"] is moved.parts["voter"]
    assert np.array_equal(moved.sizes(), plain.sizes())
