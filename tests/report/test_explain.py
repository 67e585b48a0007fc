import numpy as np
import pytest

import unswayed as us
from unswayed.certificates.advice import samples_needed
from unswayed.report.explain import explain
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
