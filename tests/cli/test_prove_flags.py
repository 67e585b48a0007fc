"""`unswayed prove --precision`: what is said and kept of a flag."""

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
