import numpy as np
import pytest

import unswayed as us
from unswayed.certificates.advice import samples_needed
from unswayed.errors import InputError
from unswayed.report.explain import explain
from unswayed.report.html import facts
from unswayed.report.summary import summarise


def certify(counts, **options):
    votes = us.Votes.from_counts(
        counts, us.Flip(beta=0.7), 99, provenance={"threat": {"kind": "row", "words": us.Row.words.to_dict()}}
    )
    return us.certify(votes, **options)


@pytest.mark.parametrize("options", [{}, {"family": True}, {"bounds": "paper"}, {"bounds": "anytime"}])
def test_the_samples_it_asks_for_suffice_and_are_not_many_too_many(options):
    certs = certify([[9_760, 240], [9_910, 90]], **options)
    for place in range(2):
        wanted = int(certs.size[place]) + 1
        needed = samples_needed(certs, place, wanted)
        assert needed is not None
        assert needed > 10_000

        def size_at(samples, place=place):
            scaled = certs.votes.counts * samples // 10_000
            votes = us.Votes.from_counts(scaled, us.Flip(beta=0.7), 99, samples=samples)
            return int(
                us.certify(votes, alpha=certs.alpha, bounds=certs.bounds, family=certs.family).size[place]
            )

        assert size_at(needed) >= wanted
        assert size_at(int(needed * 0.95)) < wanted


def test_out_of_reach_is_said():
    certs = certify([[6_000, 4_000]])
    # even exactly known shares of .6 and .4 prove nothing beyond K = 0
    assert us.theory.certified_size(0.6, 0.4, us.Flip(beta=0.7), 99) == 0
    assert samples_needed(certs, 0, 1) is None
    assert "out of reach" in explain(summarise(certs), 0).facts["advice"]


def test_an_abstention_asks_for_a_label_first():
    found = explain(summarise(certify([[5_050, 4_950]])), 0)
    assert found.size == -1
    assert found.facts["next_size"] == 0
    assert found.facts["needed"] is not None
    assert found.facts["needed"] > 10_000


def test_votes_are_listed_from_the_top():
    found = explain(summarise(certify([[100, 9_800, 100]]), class_names=["a", "b", "c"]), 0)
    assert found.facts["votes"][0] == ["b", 9_800]
    assert found.label == "b"
    assert found.facts["samples"] == 10_000
    assert (found.bars[0].name, found.bars[0].value) == ("b", "9,800")


def test_the_wall_is_mentioned_where_there_is_one():
    graph = type("D", (), {"edge_index": np.array([[0, 1], [1, 0]]), "num_nodes": 100, "y": None})()
    certs = certify([[10_000, 0], [5_500, 4_500]])
    summary = summarise(certs, data=graph)
    assert "its only link" in explain(summary, 0).facts["wall"]
    assert explain(summary, 0).facts["wall"] in explain(summary, 0).sentences
    assert explain(summary, 1).facts["wall"] is None


def test_beyond_the_entries_there_is_nothing():
    votes = us.Votes.from_counts([[10_000, 0]], us.Flip(beta=0.7), 3)
    certs = us.certify(votes)
    assert certs.size[0] == 3
    assert samples_needed(certs, 0, 4) is None


def test_the_ceiling_is_of_the_targets_own_samples():
    votes = us.Votes(
        blocks=[[[200, 0], [200, 0]], [[0, 0], [39_800, 0]]],
        starts=[0, 200],
        stops=[200, 40_000],
        polled=[[True, True], [False, True]],
        noise=us.Flip(beta=0.7),
        entries=99,
    )
    few, many = (explain(summarise(us.certify(votes)), place) for place in range(2))
    assert (few.facts["ceiling"], many.facts["ceiling"]) == (few.size, many.size)
    assert few.facts["ceiling"] < many.facts["ceiling"]


def said_of(kind, deletes=4, ones=9):
    """Certificates of one node against so many deletions, of whose entries so many are edges, under a threat of this kind."""
    provenance = {"threat": {"kind": kind, "words": us.Row.words.to_dict()}}
    votes = us.Votes.from_counts([[10_000, 0]], us.Flip(beta=0.7), 99, provenance=provenance, ones=[ones])
    certs = us.certify(votes)
    assert certs.sizes("deletes")[0] >= deletes
    return certs


@pytest.mark.parametrize("kind", ["pairs", "directed", "relation", "unknown"])
def test_losing_every_link_is_covered_only_where_every_link_is_an_entry(kind):
    graph = type(
        "D", (), {"edge_index": np.array([[0, 1, 0, 2], [1, 0, 2, 0]]), "num_nodes": 100, "y": None}
    )()
    assert explain(summarise(said_of("row", deletes=2, ones=2), data=graph), 0).facts["wall"] is not None
    found = summarise(said_of(kind), data=graph)
    assert explain(found, 0).facts["wall"] is None
    assert facts(found, graph)["columns"]["wall"] == [False]


def test_another_graph_than_was_certified_is_refused():
    graph = type("D", (), {"edge_index": np.array([[0, 1], [1, 0]]), "num_nodes": 100, "y": None})()
    with pytest.raises(InputError, match="node 0 has 1 link there, and had 9"):
        summarise(said_of("row"), data=graph)


def test_no_link_is_none_to_lose():
    graph = type("D", (), {"edge_index": np.array([[1, 2], [2, 1]]), "num_nodes": 100, "y": None})()
    assert explain(summarise(said_of("all-pairs", deletes=1, ones=1), data=graph), 0).facts["wall"] is None


def test_links_come_in_too_where_they_have_a_direction():
    graph = type("D", (), {"edge_index": np.array([[1, 2, 0], [0, 0, 2]]), "num_nodes": 100, "y": None})()
    assert summarise(said_of("directed"), data=graph).degree.tolist() == [2]


@pytest.mark.parametrize(("kind", "degree"), [("row", [9]), ("all-pairs", None), ("pairs", None)])
def test_without_a_graph_the_entries_that_are_edges_are_the_links_of_rows_alone(kind, degree):
    found = summarise(said_of(kind)).degree
    assert (found if found is None else found.tolist()) == degree


def test_a_node_that_arrives_has_the_links_it_arrives_with():
    provenance = {"threat": {"kind": "row-new", "words": us.Row.words.to_dict()}}
    votes = us.Votes.from_counts(
        [[9_000, 0]], us.Flip(beta=0.7), 3, provenance=provenance, ones=[2], targets=[3]
    )
    graph = type("D", (), {"edge_index": np.array([[0, 1], [1, 0]]), "num_nodes": 3, "y": None})()
    assert summarise(us.certify(votes), data=graph).degree.tolist() == [2]
