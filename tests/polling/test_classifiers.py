"""Whatever answers may be polled: scikit-learn, community detection, graphs of one node."""

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from torch_geometric.data import Data
from torch_geometric.nn import GIN

import unswayed as us
from unswayed.errors import StoreError

FLIP = us.Flip(beta=0.7)


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
