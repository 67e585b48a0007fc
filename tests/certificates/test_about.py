"""Entries by the nodes that they join."""

import pytest

from unswayed.certificates.protocol import About

NODE, GRAPH = {"words": {"unit": "node"}}, {"words": {"unit": "graph"}}


def about(kind, unit=NODE, **more):
    return About([7, 2], [10, 10], 2, threat={"kind": kind, **unit}, **more)


def test_an_entry_of_a_row_is_the_other_end():
    assert about("row").ends(0, 3) == (7, 3)
    assert about("row").entry_name(0, 3) == "3"
    assert about("row-new").entry_name(1, 3) == "3"


def test_an_entry_of_all_pairs_is_a_pair():
    found = about("all-pairs", GRAPH)
    pairs = [(i, j) for j in range(40) for i in range(j)]
    assert [found.ends(0, entry) for entry in range(len(pairs))] == pairs
    assert found.entry_name(0, 4) == "1–3"
    assert found.entry_name(1, 4) == "1–3"  # graph 1 is not node 1


def test_a_pair_with_the_target_is_told_by_its_other_end():
    entry = 7 * 6 // 2 + 2  # the pair (2, 7)
    assert about("all-pairs").entry_name(0, entry) == "2"
    assert about("all-pairs").entry_name(1, entry) == "7"


def test_names_are_used_where_there_are_some():
    names = tuple("abcdefghij")
    assert about("row", node_names=names).entry_name(0, 3) == "d"
    assert about("all-pairs", GRAPH, node_names=names).entry_name(0, 4) == "b–d"


@pytest.mark.parametrize("kind", ["pairs", "bits", "inject", "something new"])
def test_other_entries_have_their_number(kind):
    assert about(kind).ends(0, 3) is None
    assert about(kind).entry_name(0, 3) == "3"
