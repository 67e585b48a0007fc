import io
import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GIN
from torch_geometric.utils import erdos_renyi_graph

import unswayed as us
from unswayed import ledger, polling, watching
from unswayed.errors import InputError, StoreError, UnsoundModel
from unswayed.polling import missing
from unswayed.runners import Block, SerialRunner, serial
from unswayed.sampling.question import Question
from unswayed.votes import Votes

CHECKOUT = Path(__file__).parent.parent
FLIP = us.Flip(beta=0.7)


@pytest.fixture(scope="module")
def data():
    torch.manual_seed(0)
    return Data(x=torch.randn(15, 4), edge_index=erdos_renyi_graph(15, 0.2))


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(1)
    return GCN(4, 8, 2, 3, dropout=0.5)


@pytest.fixture
def ask(model, data):
    return lambda samples=2500, **rest: us.poll(model, us.Row(data, [0, 4]), FLIP, samples=samples, **rest)


@pytest.fixture
def whole_blocks(monkeypatch):
    """Blocks are never cut, however slow the machine is."""
    monkeypatch.setattr(serial.Pace, "of", classmethod(lambda pace, engine: pace(None)))


class Recorder(SerialRunner):
    """Notes which blocks were drawn; may stop after a number of them like somebody pressing Ctrl-C."""

    def __init__(self, stop_after=None, backwards=False):
        super().__init__()
        self.blocks, self.stop_after, self.backwards = [], stop_after, backwards

    def run(self, question, blocks):
        for block, counts in super().run(question, list(reversed(blocks)) if self.backwards else blocks):
            if self.stop_after is not None and len(self.blocks) == self.stop_after:
                raise KeyboardInterrupt
            self.blocks.append((block.start, block.stop))
            yield block, counts


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


WAITING = {"seconds": 0.0, "left": 10**9}  # outside the model: how long it takes is no part of its answers


def waiting(x, edge_index):
    """Takes a while for every graph, and may be stopped like somebody pressing Ctrl-C."""
    graphs = max(len(x) // 15, 1)
    time.sleep(WAITING["seconds"] * graphs)
    WAITING["left"] -= graphs
    if WAITING["left"] < 0:
        raise KeyboardInterrupt
    return torch.nn.functional.one_hot(torch.bincount(edge_index[1], minlength=len(x)) % 3, 3).double()


@pytest.fixture
def slowly(monkeypatch):
    def choose(seconds, left=10**9):
        monkeypatch.setitem(WAITING, "seconds", seconds)
        monkeypatch.setitem(WAITING, "left", left)
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
    assert said.count("answers a second") == 1


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


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), RandomForestClassifier(8, max_depth=4, random_state=0)]
)
def test_any_scikit_learn_classifier_on_binary_features(estimator, tmp_path):
    """A classifier of binary features: three words of label names, certified bit by bit."""
    rng = np.random.default_rng(0)
    x = rng.random((400, 12)) < 0.5
    y = np.array(["benign", "malware", "unsure"])[
        np.minimum(x[:, :4].sum(axis=1), 3) - (x[:, :4].sum(axis=1) > 2)
    ]
    estimator.fit(x, y)
    votes = us.poll(
        estimator, us.Bits(x[:6]), us.Flip(beta=0.9), samples=1500, seed=1, store=tmp_path / "run"
    )
    assert votes.classes == 3
    assert votes.samples.tolist() == [1500] * 6
    flips = us.sampling.stream.Stream(1).words(0, 1500, 12).numpy() < us.Flip(beta=0.9).thresholds[0]
    for target in range(6):
        answers = estimator.predict(x[target] ^ flips)
        expected = [(answers == label).sum() for label in estimator.classes_]
        assert votes.counts[target].tolist() == expected
    again = us.poll(
        estimator, us.Bits(x[:6]), us.Flip(beta=0.9), samples=1500, seed=1, store=tmp_path / "run"
    )
    assert again == votes
    certificates = us.certify(votes, alpha=0.01)
    assert certificates.size.max() >= 1
    with pytest.raises(StoreError, match="model"):
        us.poll(
            type(estimator)().fit(x, y[::-1]),
            us.Bits(x[:6]),
            us.Flip(beta=0.9),
            samples=9,
            seed=1,
            store=tmp_path / "run",
        )


def same_community(u, v):
    """Do u and v lie in one community of Louvain's partition? 1 for yes."""

    def classify(x, edge_index):
        graph = nx.empty_graph(len(x))
        graph.add_edges_from(edge_index.T.tolist())
        communities = nx.community.louvain_communities(graph, seed=0)
        return int(any(u in community and v in community for community in communities))

    return classify


def test_community_detection_as_a_two_class_question():
    """Two cliques joined by one edge: whether two nodes share a community is certified against every pair's change."""
    graph = nx.disjoint_union(nx.complete_graph(6), nx.complete_graph(6))
    graph.add_edge(0, 6)
    noise = us.Flip(beta=0.95)
    source = (nx.to_scipy_sparse_array(graph, weight=None), np.ones((12, 1)))
    together = us.poll(same_community(1, 2), us.AllPairs(source), noise, samples=300, classes=2)
    apart = us.poll(same_community(1, 8), us.AllPairs(source), noise, samples=300, classes=2)
    assert us.certify(together, alpha=0.01).label.tolist() == [1]
    assert us.certify(apart, alpha=0.01).label.tolist() == [0]
    assert us.certify(together, alpha=0.01).size[0] >= 1
    bridges = [(u, v) for u in range(6) for v in range(6, 12)]
    few = us.poll(
        same_community(1, 8), us.Pairs(graph_with_features(graph), bridges), noise, samples=200, classes=2
    )
    assert few.entries.tolist() == [36]
    assert few.ones.tolist() == [1]
    assert few.counts[0, 0] > 150


def graph_with_features(graph):
    graph = graph.copy()
    nx.set_node_attributes(graph, 1.0, "x")
    return graph


def test_one_node_graphs_and_isolated_targets_are_polled(model):
    lonely = Data(x=torch.randn(1, 4), edge_index=torch.empty(2, 0, dtype=torch.long))
    votes = us.poll(model, us.Row(lonely, 0), FLIP, samples=20, engine="generic")
    assert votes.counts.max() == 20
    assert votes.entries.tolist() == [0]
    torch.manual_seed(0)

    class Pooled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = GIN(4, 8, 2, 2)

        def forward(self, x, edge_index, batch):
            return torch.zeros(int(batch.max()) + 1, 2).index_add_(0, batch, self.body(x, edge_index))

    assert us.poll(Pooled(), us.AllPairs([lonely]), FLIP, samples=20).counts.max() == 20
