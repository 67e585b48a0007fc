import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import unswayed as us
from unswayed.errors import InputError
from unswayed.report.summary import summarise
from unswayed.rounding import nice_sizes


def test_curve_is_the_certified_accuracy(certs, truth):
    summary = summarise(certs, truth=truth)
    assert np.array_equal(summary.curve.share, certs.accuracy(truth, at=summary.curve.sizes))
    assert summary.curve.share[-1] == 0
    assert np.all(np.diff(summary.curve.share) <= 0)


def test_without_truth_the_curve_is_the_share_certified(certs):
    summary = summarise(certs)
    expected = [(certs.size >= size).mean() for size in summary.curve.sizes]
    assert summary.curve.share.tolist() == expected


@pytest.mark.parametrize(
    ("targets", "alpha", "wrong"), [(100, "0.001", 1), (50, "0.001", 0), (2708, "0.001", 54), (10, "0.1", 10)]
)
def test_markov_bounds_how_many_are_wrong(targets, alpha, wrong):
    votes = us.Votes.from_counts([[500, 0]] * targets, us.Flip(beta=0.7), entries=9)
    certs = us.certify(votes, alpha=float(alpha))
    summary = summarise(certs)
    assert summary.doubtful == wrong
    # P(N ≥ doubtful + 1) ≤ alpha·m / (doubtful + 1) ≤ 5%
    assert float(alpha) * len(certs) / (summary.doubtful + 1) <= 0.05 + 1e-12 or summary.doubtful == len(
        certs
    )


def test_family_certificates_leave_no_doubt(certs_of):
    certs, truth = certs_of(family=True)
    summary = summarise(certs, truth=truth)
    assert summary.doubtful == 0
    assert np.array_equal(summary.curve.low, summary.curve.share)


def test_the_band_is_below_by_the_doubtful_share(certs_of):
    certs, truth = certs_of(targets=100)
    summary = summarise(certs, truth=truth)
    assert summary.doubtful == 1
    assert summary.curve.low[0] == pytest.approx(summary.curve.share[0] - 0.01)
    assert np.all(summary.curve.low >= 0)


def test_weakest_first(certs):
    sizes = certs.size[summarise(certs).order]
    assert np.all(np.diff(sizes) >= 0)
    assert sizes[0] == -1


@pytest.mark.parametrize("floor", [0.0, 0.1, 0.33, 0.5, 0.775, 0.9, 1.0])
def test_beats_floor_to_agrees_with_the_curve(certs, truth, floor):
    summary = summarise(certs, truth=truth, floor=floor)
    above = [size for size in range(summary.top + 1) if certs.accuracy(truth, at=[size])[0] > floor]
    assert summary.beats_floor_to == max(above, default=-1)


def test_a_small_graph_that_withstands_all_its_changes_beats_the_floor_beyond_them():
    votes = us.Votes.from_counts([[9000, 0], [9000, 0], [5000, 4000]], us.Flip(beta=0.7), [2, 40, 40])
    certs = us.certify(votes)
    assert certs.size[0] == 2 < certs.size[1] < 40
    summary = summarise(certs, truth=[0, 0, 0], floor=0.5)
    assert summary.beats_floor_to == certs.size[1]  # at which two of three stand


def test_median_means_half_of_the_targets(certs):
    summary = summarise(certs)
    assert (certs.size >= summary.median).mean() >= 0.5
    assert (certs.size >= summary.median + 1).mean() < 0.5


def test_attack_curve_is_never_below_the_certified_one(certs, truth):
    attacked = np.where(np.arange(len(certs)) % 3 == 0, -1, certs.size + 1)
    summary = summarise(certs, truth=truth, attacked=attacked)
    assert np.all(summary.attack_curve >= summary.curve.share)


def test_degrees_count_distinct_neighbours_without_loops(certs, graph):
    summary = summarise(certs, data=graph)
    pairs = {tuple(pair) for pair in graph.edge_index.T.tolist()}
    expected = [sum(1 for a, b in pairs if a == node and b != node) for node in certs.targets.tolist()]
    assert summary.degree.tolist() == expected


def test_ceiling_uses_the_level_in_use(certs_of):
    one, _ = certs_of()
    many, _ = certs_of(family=True)
    assert summarise(many).ceiling < summarise(one).ceiling
    assert one.size.max() <= summarise(one).ceiling


def test_sizes_without_limit_do_not_stretch_the_axis():
    votes = us.Votes.from_counts([[100, 0], [90, 10]], us.Flip(beta=0.5), entries=50_000)
    certs = us.certify(votes)
    assert certs.size.max() == 50_000
    assert summarise(certs).top <= 120


@pytest.mark.parametrize(
    "bad", [{"truth": [1, 2]}, {"attacked": [1]}, {"floor": 1.5}, {"floor": float("nan")}, {"floor": min}]
)
def test_what_does_not_fit_is_refused(certs, bad):
    with pytest.raises(InputError):
        summarise(certs, **bad)


def test_no_targets_no_report(certs):
    with pytest.raises(InputError, match="no targets"):
        summarise(certs[:0])


@pytest.mark.parametrize("top", [0, 1, 3, 8, 14, 63, 120])
def test_table_sizes_are_few_rising_and_end_at_the_top(top):
    sizes = nice_sizes(top)
    assert sizes[-1] == top
    assert len(sizes) <= 9
    assert sizes == sorted(set(sizes))


def test_other_graphs_than_those_certified_are_refused():
    def ring(nodes):
        there = torch.tensor([[*range(nodes)], [*range(1, nodes), 0]])
        return Data(edge_index=torch.cat([there, there.flip(0)], dim=1), num_nodes=nodes)

    graphs = [ring(4), ring(5)]
    proofs = us.prove(us.Hashed(lambda x, edge_index: torch.ones(1, 2), groups=3), us.AllPairs(graphs))
    assert summarise(proofs, data=graphs).degree.tolist() == [4, 5]
    for others in (graphs[::-1], graphs[:1], [ring(4), ring(6)]):
        with pytest.raises(InputError, match="certified"):
            summarise(proofs, data=others)
