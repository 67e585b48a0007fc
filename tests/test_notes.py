"""Audits add up to a random choice of all answers, whatever the order; notes keep what differs."""

import itertools
import json

import pytest

from unswayed.notes import OTHER, SAME, TIE, Audit, Heard, joined


def part(start: int, number: int, wanted: int = 5) -> Audit:
    heard = sorted(Heard((7919 * i) % 101 / 101, i, 0, 1) for i in range(start, start + number))
    return Audit(wanted, covered=number, seconds=0.5, heard=tuple(heard[:wanted]))


def test_audits_add_up_alike_in_any_order() -> None:
    parts = [part(0, 30), part(30, 10), part(40, 50), Audit(uncovered=7)]
    whole = part(0, 90)
    for order in itertools.permutations(parts):
        total = sum(order, start=Audit())
        assert total.heard == whole.heard
        assert (total.covered, total.uncovered, total.wanted, total.seconds) == (90, 7, 5, 1.5)


def test_verdicts_go_to_what_is_pending_and_survive_json() -> None:
    once = part(0, 3).judged([SAME, TIE, OTHER], 2.0)
    more = once + part(3, 2)
    words = json.loads(json.dumps(more.to_dict()))
    assert (words["asked"], words["agreed"], words["ties"], words["seconds"]) == (3, 1, 1, 3.0)
    again = Audit.from_dict(words).judged([SAME, SAME], 0.25)
    assert (again.number(SAME), again.number(OTHER), again.number("pending")) == (3, 1, 0)
    with pytest.raises(ValueError, match="unknown verdict"):
        Heard(0.1, 0, 0, 0, "perhaps")


def test_notes_keep_both_words_and_each_once() -> None:
    one = {"engine": "row", "audit": part(0, 3).to_dict(), "device": "cpu"}
    two = {"engine": "generic, row", "audit": part(3, 3).to_dict(), "device": "cpu", "why": "hooks"}
    both = joined(one, two)
    assert both["engine"] == "row, generic"
    assert both["device"] == "cpu"
    assert both["why"] == "hooks"
    assert both["audit"]["covered"] == 6
    assert joined({}, one) == one == joined(one, {})
