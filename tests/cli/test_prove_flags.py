"""`unswayed prove --precision`: what is said and kept of a flag."""

import re
from pathlib import Path

FILES = ["--edges", "E.csv", "--features", "X.csv", "--labels", "Y.csv", "--no-floor"]
FLAG = [*FILES, "--model", "ballots", "--positive", "1", "--precision", "0.4"]


def test_a_precision_is_part_of_the_command_and_of_what_is_remembered(call_json):
    found = call_json("prove", *FLAG)
    assert "--positive 1" in found["command"]
    assert "--precision 0.4" in found["command"]
    assert "precision" not in found["training"]  # whether it is had, validation nodes alone can say
    assert found["training"]["precision asked of validation nodes"] == 0.4
    assert found["training"]["flagged label"] == "1"
    assert found["recall"]["0"] > 0


def test_it_is_said_how_many_choose_a_flag(call):
    _, _, err = call("prove", *FLAG)
    assert "validation nodes, which choose, bear the flagged label" in err


def test_it_is_told_how_precise_a_flag_was_where_it_was_chosen_and_on_how_many_that_rests(call, call_json):
    _, _, first = call("prove", *FLAG, "--store", "run")
    _, _, second = call("prove", *FLAG, "--store", "run")
    found = call_json("report", "run")["training"]
    flagged, right = found["validation nodes flagged"], found["of these rightly"]
    assert 0 < right <= flagged <= 4
    assert found["precision on validation nodes"] == right / flagged
    said = f"has a precision of {right / flagged:.3f} on validation nodes: of {flagged} that it flags, {right} bear"
    assert all(said in " ".join(err.split()) for err in (first, second))


def test_of_those_whose_label_nobody_knows_it_is_told_how_many_are_flagged_and_stay_so(call, call_json):
    Path("U.csv").write_text(re.sub(r"(?m)^(8|9|1\d),\d,", r"\1,,", Path("Y.csv").read_text()))
    asked = [*FLAG[:4], "--labels", "U.csv", *FLAG[6:], "--nodes", "unlabelled"]
    _, _, err = call("prove", *asked)
    found = call_json("prove", *asked)["targets"]
    flagged = [target["size"] for target in found if str(target["label"]) == "1"]
    others = [target["size"] for target in found if str(target["label"]) != "1"]
    said = " ".join(err.split())
    assert "known to be 1, so nothing can be said of how many of these stay flagged" in said
    stay = [sum(size >= k for size in who) for who in (flagged, others) for k in (1, 5)]
    assert (
        f"{len(flagged)} of {len(found)} nodes {'is' if len(flagged) == 1 else 'are'} flagged 1: {stay[0]} stay so against any 1 change, "
        f"{stay[1]} against any 5. Of the {len(others)} others {stay[2]} stay unflagged against any 1 change, {stay[3]} against any 5."
    ) in said
