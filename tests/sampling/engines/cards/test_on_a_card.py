"""What only a card can show: the votes that it counts are those of the CPU, but for logits that tie within rounding."""

import threading

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN, SAGEConv
from torch_geometric.utils import erdos_renyi_graph

import unswayed as us
from unswayed.datasets import load, split
from unswayed.experiments.deep_networks import DEEP
from unswayed.models.networks import GAT
from unswayed.models.training import fit
from unswayed.sampling.engines import choose
from unswayed.sampling.engines.cards import fused, kernels
from unswayed.sampling.engines.machine import room
from unswayed.sampling.engines.rows.engine import RowEngine
from unswayed.sampling.question import Question

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no card on this machine"),
]


class Sage(torch.nn.Module):
    """Two layers that the row engine knows."""

    def __init__(self):
        super().__init__()
        self.first, self.second = SAGEConv(5, 16), SAGEConv(16, 3)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


@pytest.fixture
def data():
    torch.manual_seed(0)
    return Data(x=torch.randn(30, 5), edge_index=erdos_renyi_graph(30, 0.15))


@pytest.mark.parametrize("build", [Sage, lambda: GCN(5, 16, 2, 3)], ids=["sage", "gcn"])
@pytest.mark.parametrize("threat", [us.Row, us.AllPairs])
@pytest.mark.parametrize(
    "noise", [us.Flip(beta=0.7), us.AddDelete(p_add=0.01, p_delete=0.4)], ids=["flip", "add"]
)
def test_the_votes_are_those_of_the_cpu(data, build, threat, noise):
    torch.manual_seed(1)
    model = build()
    asked = {"samples": 400, "seed": 4, "progress": False, "audit": 0}
    here = us.poll(model, threat(data, [0, 7, 29]), noise, device="cpu", **asked)
    there = us.poll(model, threat(data, [0, 7, 29]), noise, device="cuda", **asked)
    assert here.samples.tolist() == there.samples.tolist()
    assert abs(here.counts - there.counts).sum() <= 2  # one sample whose highest logits tie


@pytest.mark.parametrize(
    ("noise", "engine"),
    [(us.Keep(2, 6), "kept"), (us.AddDelete(p_add=0.05, p_delete=0.4), "few")],
    ids=["kept", "few"],
)
def test_rows_of_large_graphs_get_the_votes_of_the_cpu(data, noise, engine):
    torch.manual_seed(1)
    model, draws = Sage(), "sparse" if engine == "few" else "auto"
    asked = {"samples": 2_000, "seed": 4, "progress": False, "draws": draws, "audit": 20}
    here, there = (
        us.poll(model, us.Row(data, range(30)), noise, device=device, **asked) for device in ("cpu", "cuda")
    )
    assert here.notes["engine"] == there.notes["engine"] == engine
    assert abs(here.counts - there.counts).sum() <= 2


@pytest.mark.parametrize("engine", ["fast", "generic"])
def test_a_card_that_is_named_twice_counts_the_same_votes(data, engine):
    torch.manual_seed(1)
    model, asked = Sage(), {"samples": 5_500, "engine": engine, "progress": False, "audit": 20}
    threat, noise = us.Row(data, [0, 7, 29]), us.Flip(beta=0.7)
    one = us.poll(model, threat, noise, device="cuda:0", **asked)
    two = us.poll(model, threat, noise, devices=["cuda:0", "cuda:0"], **asked)
    assert np.array_equal(one.blocks, two.blocks)


@pytest.mark.filterwarnings("ignore")  # Ray leaves files and sockets to the garbage collector
def test_two_workers_on_a_card_count_the_same_votes(data, monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    torch.manual_seed(1)
    model, threat, noise = Sage(), us.Row(data, [0, 7, 29]), us.Flip(beta=0.7)
    asked = {"samples": 4_000, "device": "cuda", "progress": False, "audit": 20}
    with us.RayRunner(workers=2, gpus_per_task=0.5) as runner:
        there = us.poll(model, threat, noise, runner=runner, **asked)
    assert np.array_equal(there.blocks, us.poll(model, threat, noise, **asked).blocks)


def test_proofs_are_those_of_the_cpu(data):
    known = torch.where(torch.arange(30) % 2 == 0, torch.arange(30) % 3, -1)
    ballots = us.LabelBallots(3).freeze(data, known=known)
    here = us.prove(ballots, us.Row(data, range(30)))
    there = us.prove(ballots.to("cuda"), us.Row(data, range(30)))
    assert here.size.tolist() == there.size.tolist()
    assert here.label.tolist() == there.label.tolist()


@pytest.fixture
def cap(monkeypatch):
    """Bounds what torch may take of the card, in bytes; without a bound, and with fresh shares, before and after."""
    monkeypatch.setattr(room, "_shares", {})

    def bound(size=None):
        torch.cuda.empty_cache()
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(1.0 if size is None else size / total, 0)

    bound()
    yield bound
    bound()


CARD = torch.device("cuda", 0)


def test_what_was_halved_by_a_full_card_grows_back(cap):
    def ask():
        return torch.empty(room.room({"cuda": 2**30}, CARD), dtype=torch.uint8, device=CARD).numel()

    cap(torch.cuda.memory_allocated() + 2**28 + 2**26)
    assert room.within_memory(CARD, ask, lambda: None) == 2**28
    cap()
    grown = [room.within_memory(CARD, ask, lambda: None) for _ in range(2 * room.PATIENCE + 1)]
    assert grown[0] == 2**28
    assert grown[-1] == 2**30


def test_a_full_card_costs_no_votes(cap):
    torch.manual_seed(1)
    graph = Data(x=torch.randn(2_000, 5), edge_index=erdos_renyi_graph(2_000, 0.005))
    question = Question(Sage().eval(), us.Row(graph, range(10)), us.Flip(beta=0.6), device="cuda")

    def asked(engine):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        return engine.count(0, 200_000), before, torch.cuda.max_memory_allocated()

    asked(RowEngine(question))  # what is tried and compiled once
    votes, before, most = asked(RowEngine(question))
    again = RowEngine(question)
    cap(torch.cuda.memory_allocated() + (most - before) // 2)
    assert np.array_equal(asked(again)[0], votes)
    short = room.room({"cuda": 2**20}, CARD)
    cap()
    few = RowEngine(question).count(0, 2_000)
    for _ in range(20 * room.PATIENCE):
        assert np.array_equal(again.count(0, 2_000), few)
    assert short < room.room({"cuda": 2**20}, CARD) == 2**20


MODELS = {
    "gcn": (lambda: GCN(5, 16, 2, 3), {"rectified_sums", "Coupled._corrected_at_once"}),
    "narrow gcn": (lambda: GCN(5, 5, 2, 3), {"rectified_sums", "Coupled._corrected_at_once"}),
    "gat": (lambda: GAT(5, 3), {"Signs._at_once"}),
    **{
        name: (lambda name=name: DEEP[name](5, 3), {"Star._by_kernel"})
        for name in ("gcn-3", "sage-3", "gin-3")
    },
    "appnp": (lambda: DEEP["appnp-10"](5, 3), set()),
    "gat-3": (lambda: DEEP["gat-3"](5, 3), set()),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "noise", [us.Flip(beta=0.7), us.AddDelete(p_add=0.1, p_delete=0.4)], ids=["flip", "add"]
)
def test_kernels_say_what_plain_operations_say(data, name, noise, monkeypatch):
    torch.manual_seed(1)
    build, expected = MODELS[name]
    model, targets = build().eval(), (0, 1, 2)
    monkeypatch.setattr(fused, "_agreed", {})

    def answers(device):
        engine = choose(Question(model, us.Row(data, [0, 7, 29]), noise, device=device, engine="fast"))
        return engine.answers(0, 33, targets).cpu()

    here, there = answers("cpu"), answers("cuda")
    agreed = {key[0]: used for key, used in fused._agreed.items()}
    if kernels.AVAILABLE:
        assert agreed.keys() >= expected
        assert all(agreed.values()), agreed
    monkeypatch.setattr(fused, "ENABLED", False)
    largest = here.abs().max()
    assert (there - here).abs().max() <= 1e-5 * largest
    assert (answers("cuda") - here).abs().max() <= 1e-5 * largest


@pytest.mark.parametrize("width", [1, 5, 7, 16, 64])
def test_rows_are_copied_bit_for_bit(width):
    states, index = torch.randn(50, width, device="cuda"), torch.randint(0, 50, (333,), device="cuda")
    assert fused.copies(states) or not kernels.AVAILABLE
    if kernels.AVAILABLE:
        assert torch.equal(fused.rows(states, index), states[index])
        assert fused.rows(states, index - 50).isnan().all()  # out of range: no state, and so no answer


def test_training_twice_gives_equal_bits_beside_other_work():
    graph = load("cora")
    parts = split(graph, 0)
    other, at_work = torch.randn(2048, 2048, device="cuda"), threading.Event()

    def busy():
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            while not at_work.is_set():
                other @ other
                stream.synchronize()

    def weights():
        noise = us.Flip(beta=0.7)
        return fit("sage", graph, parts, recipe="distill", noise=noise, seed=3, device="cuda").state_dict()

    alone = weights()
    beside = threading.Thread(target=busy)
    beside.start()
    try:
        again = weights()
    finally:
        at_work.set()
        beside.join()
    assert all(torch.equal(alone[name], again[name]) for name in alone)
