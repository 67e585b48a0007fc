"""Answers that were counted are asked again one at a time; a fault in a few of them refuses all votes."""

import json

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GCNConv, global_mean_pool
from torch_geometric.utils import erdos_renyi_graph

import unswayed as us
from unswayed.certificates.predicted import predicted
from unswayed.errors import DoubtfulSetting, InputError, RefusedVotes, StoreError
from unswayed.notes import Audit
from unswayed.runners import SerialRunner
from unswayed.sampling.engines import Engine
from unswayed.sampling.engines.asking.generic import GenericEngine
from unswayed.sampling.engines.graphs.dense import DenseEngine
from unswayed.sampling.engines.graphs.plan_engine import PlanEngine
from unswayed.sampling.engines.rows.engine import RowEngine
from unswayed.sampling.question import Block, Question
from unswayed.sampling.tally import heard
from unswayed.store import Store

N, F, C = 24, 5, 3
NOISE = us.Flip(0.7)


def graph(n: int = N, seed: int = 0) -> Data:
    torch.manual_seed(seed)
    return Data(x=torch.randn(n, F), edge_index=erdos_renyi_graph(n, 0.2), num_nodes=n)


def net() -> nn.Module:
    torch.manual_seed(1)
    return GCN(F, 8, 2, C).eval()


class Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.one, self.two = GCNConv(F, 8), GCNConv(8, C)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        return global_mean_pool(self.two(self.one(x, edge_index).relu(), edge_index), batch)


def planted(monkeypatch: pytest.MonkeyPatch, kind: type[Engine], share: float) -> None:
    """Turn one answer in so many of an engine into another, whatever it is asked after the probes."""
    right = kind.labels

    def labels(self: Engine, start: int, stop: int, targets: tuple[int, ...] | None = None) -> torch.Tensor:
        said = right(self, start, stop, targets)
        if stop - start < 100:
            return said
        wrong = torch.rand(said.shape, generator=torch.Generator().manual_seed(start)) < share
        return torch.where(wrong, (said + 1) % self.classes, said)

    monkeypatch.setattr(kind, "labels", labels)


CASES = {
    "row": (RowEngine, net, lambda: us.Row(graph(), [0, 3, 9, 20]), {}),
    "dense": (DenseEngine, Pooled, lambda: us.AllPairs([graph(6), graph(9)]), {}),
    "generic": (GenericEngine, net, lambda: us.AllPairs(graph(), [0, 5]), {"engine": "generic"}),
    "pairs": (PlanEngine, net, lambda: us.Pairs(graph(), [(0, 1), (2, 3), (0, 5)], [0, 1]), {}),
}


@pytest.mark.parametrize("case", sorted(CASES))
def test_sound_votes_pass_and_say_so(case: str) -> None:
    kind, model, threat, more = CASES[case]
    votes = us.poll(model(), threat(), NOISE, samples=400, **more)
    audit = votes.notes["audit"]
    assert votes.notes["engine"] == kind.name
    assert audit["asked"] == audit["wanted"] == 300
    assert audit["agreed"] + audit["ties"] == 300
    assert audit["covered"] == 400 * len(votes)
    assert audit["seconds"] > 0
    assert votes.notes["dtype"] == "float32"
    assert votes.notes["device"] == "cpu"
    assert set(votes.notes["versions"]) == {"unswayed", "torch", "torch_geometric", "numpy"}
    json.dumps(dict(votes.notes))


@pytest.mark.parametrize("case", sorted(CASES))
def test_a_fault_in_two_of_a_hundred_answers_is_caught(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, model, threat, more = CASES[case]
    planted(monkeypatch, kind, 0.02)
    with pytest.raises(
        RefusedVotes, match=rf"asked again one at a time were not what the {kind.name} engine"
    ):
        us.poll(model(), threat(), NOISE, samples=2000, **more)
    assert us.poll(model(), threat(), NOISE, samples=2000, audit=0, **more).notes["audit"]["asked"] == 0


def test_rows_of_bits_are_asked_again_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def majority(rows: np.ndarray) -> np.ndarray:
        return (rows.sum(axis=1) > 5).astype(int)

    bits = us.Bits(np.random.default_rng(0).random((3, 12)) < 0.5)
    votes = us.poll(majority, bits, NOISE, samples=1000, classes=2)
    assert votes.notes["audit"]["agreed"] == 300
    assert votes.notes["dtype"] == "unknown"
    planted(monkeypatch, GenericEngine, 0.02)
    with pytest.raises(RefusedVotes):
        us.poll(majority, bits, NOISE, samples=1000, classes=2)


def test_a_refused_store_is_marked_and_asked_again_the_slow_way(monkeypatch, tmp_path) -> None:
    threat, store = us.Row(graph(), [0, 3]), tmp_path / "run"
    honest = us.poll(net(), threat, NOISE, samples=1000)
    with monkeypatch.context() as broken:
        planted(broken, RowEngine, 0.02)
        with pytest.raises(RefusedVotes):
            us.poll(net(), threat, NOISE, samples=1000, store=store)
    with pytest.raises(StoreError, match=r"were refused: .*asked again one at a time"):
        us.load(store)
    with pytest.raises(RefusedVotes, match="asked again one at a time"):
        us.certify(us.load(store / "refused.npz"))  # the votes that were put aside
    with pytest.raises(RefusedVotes, match="engine='generic' asks the same samples again"):
        us.poll(net(), threat, NOISE, samples=1000, store=store)
    again = us.poll(net(), threat, NOISE, samples=1000, store=store, engine="generic")
    assert again == honest
    assert again.notes["engine"] == "generic"
    assert us.load(store) == honest


def test_votes_of_a_poll_that_was_under_way_when_another_was_refused_stay_out_of_the_store(tmp_path) -> None:
    """Two polls share a folder; what the fast engine of one counted must not pass for what is asked again the slow way."""
    threat, store = us.Row(graph(), [0, 3]), tmp_path / "run"

    class Meanwhile(SerialRunner):
        def run(self, question, blocks):
            for number, counted in enumerate(super().run(question, blocks)):
                yield counted
                if number == 0:
                    Store(store).refuse("an answer was another one, so all are refused")

    with pytest.raises(RefusedVotes, match="an answer was another one"):
        us.poll(net(), threat, NOISE, samples=3000, store=store, runner=Meanwhile())
    assert not (store / "votes.npz").exists()
    again = us.poll(net(), threat, NOISE, samples=3000, store=store, engine="generic")
    assert again.notes["engine"] == "generic"


def test_resuming_audits_what_was_counted_before_and_asks_nothing_twice(tmp_path) -> None:
    threat, store = us.Row(graph(), [0, 3]), tmp_path / "run"
    once = us.poll(net(), threat, NOISE, samples=3000)
    first = us.poll(net(), threat, NOISE, samples=1000, store=store)
    asked = {(h[1], h[2]) for h in first.notes["audit"]["heard"]}
    both = us.poll(net(), threat, NOISE, samples=3000, store=store)
    # the same random choice of all answers
    assert both.notes["audit"]["heard"] == once.notes["audit"]["heard"]
    assert len(asked & {(h[1], h[2]) for h in both.notes["audit"]["heard"]}) > 50


def test_a_killed_run_is_audited_when_it_goes_on(monkeypatch, tmp_path) -> None:
    threat, store = us.Row(graph(), [0, 3]), tmp_path / "run"

    class Dying(us.SerialRunner):
        def run(self, question, blocks):
            yield from super().run(question, blocks[:2])
            raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        planted(broken, RowEngine, 0.02)
        with pytest.raises(KeyboardInterrupt):
            us.poll(net(), threat, NOISE, samples=4000, store=store, runner=Dying())
    assert us.load(store).notes["audit"]["asked"] == 0
    with pytest.raises(RefusedVotes):
        us.poll(net(), threat, NOISE, samples=4000, store=store)


class Interrupted(us.SerialRunner):
    """Counts two blocks and is stopped, before anything is asked again."""

    def run(self, question, blocks):
        yield from super().run(question, blocks[:2])
        raise KeyboardInterrupt


@pytest.mark.parametrize("prove", [us.certify, predicted, lambda votes: us.certify_top(votes, 1)])
def test_votes_of_a_poll_that_was_stopped_before_its_audit_are_warned_of(tmp_path, prove) -> None:
    threat, store = us.Row(graph(), [0, 3]), tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        us.poll(net(), threat, NOISE, samples=4000, store=store, runner=Interrupted())
    with pytest.warns(DoubtfulSetting, match="stopped before its audit: 300 of its answers"):
        prove(us.load(store))
    us.poll(net(), threat, NOISE, samples=4000, store=store)
    prove(us.load(store))  # warnings are errors here
    with pytest.raises(KeyboardInterrupt):
        us.poll(net(), threat, NOISE, samples=9000, store=store, runner=Interrupted())
    with pytest.warns(DoubtfulSetting, match="stopped before its audit"):  # of what was added
        prove(us.load(store))


def test_whoever_wanted_no_audit_is_not_warned_of_it() -> None:
    us.certify(us.poll(net(), us.Row(graph(), [0]), NOISE, samples=100, audit=0))


def test_adaptive_runs_are_audited(monkeypatch: pytest.MonkeyPatch) -> None:
    threat, rule = us.Row(graph(), [0, 3, 7]), us.UntilSize(size=1)
    votes = us.poll(net(), threat, NOISE, samples=4000, until=rule)
    audit = votes.notes["audit"]
    assert audit["asked"] == 300
    assert audit["covered"] == votes.samples.sum()
    planted(monkeypatch, RowEngine, 0.05)
    with pytest.raises(RefusedVotes):
        us.poll(net(), threat, NOISE, samples=4000, until=rule)


class Tied(nn.Module):
    """Both classes have the same logit but for the last bit, which depends on how many graphs are asked together."""

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        tiny = 1e-7 if len(x) > N else -1e-7
        return torch.tensor([1.0, 1.0 + tiny]).expand(len(x), 2)


def test_answers_that_hang_on_rounding_are_refused_above_one_in_a_hundred() -> None:
    with pytest.raises(RefusedVotes, match=r"300 of 300 .* hang on rounding"):
        us.poll(Tied(), us.Row(graph(), [0]), NOISE, samples=400, batch_size=50)


def test_no_audit_is_noted_and_bad_numbers_are_refused() -> None:
    votes = us.poll(net(), us.Row(graph(), [0]), NOISE, samples=100, audit=0)
    assert votes.notes["audit"]["uncovered"] == 100
    assert votes.notes["audit"]["wanted"] == 0
    for wrong in (-1, 1.5, True, "all"):
        with pytest.raises(InputError, match="audit must be a whole number"):
            us.poll(net(), us.Row(graph(), [0]), NOISE, samples=100, audit=wrong)


def test_fewer_answers_than_asked_for_are_all_asked_again() -> None:
    votes = us.poll(net(), us.Row(graph(), [0, 1]), NOISE, samples=20)
    assert votes.notes["audit"]["asked"] == 40


def test_what_is_heard_is_a_fair_choice_of_all_answers() -> None:
    """Over many seeds each answer is chosen as often as any other, whichever block it is in."""
    question = [Question(net(), us.Row(graph(), [0, 1]), NOISE, seed=seed, audit=10) for seed in range(400)]
    cuts, labels = ((0, 5), (5, 40), (40, 60)), torch.zeros((60, 2), dtype=torch.int64)
    times = np.zeros((60, 2))
    for one in question:
        parts = [heard(one, Block(low, high), labels[low:high]) for low, high in cuts]
        for answer in sum(parts, start=Audit()).heard:
            times[answer.sample, answer.target] += 1
    expected = 400 * 10 / 120
    assert times.sum() == 4000
    assert ((times - expected) ** 2 / expected).sum() < 119 + 5 * (2 * 119) ** 0.5  # chi-squared
    assert abs(times[:5].sum() / 4000 - 5 / 60) < 0.02


def test_votes_stored_without_an_audit_are_not_taken_for_audited_ones(tmp_path):
    ask = {"samples": 100, "store": tmp_path / "run"}
    us.poll(net(), us.Row(graph(), [0]), NOISE, audit=0, **ask)
    with pytest.raises(StoreError, match="audit=0"):
        us.poll(net(), us.Row(graph(), [0]), NOISE, **ask)
    us.poll(net(), us.Row(graph(), [0]), NOISE, audit=0, **ask)
