"""What only a card can show: the votes that it counts are those of the CPU, but for logits that tie within rounding."""

import threading

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
from unswayed.sampling.engines import choose, fused, kernels
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
