"""Classes whose names are numbers written as text are spoken of and counted as any others."""

import json

import pytest

from unswayed.cli.main import main

from .conftest import NODES, OWN

COUNTED = {"certified_accuracy", "certified_recall", "rows"}


@pytest.mark.parametrize(
    "words",
    [
        ["certify", *OWN, "--positive", "PLUM"],
        ["prove", *OWN[:6], "--model", "label-ballots", "--no-floor", "--positive", "PLUM"],
        ["frontier", *OWN[:-2], "--betas", "0.9", "--positive", "PLUM"],
    ],
    ids=lambda words: words[0],
)
def test_names_that_are_numbers_change_no_share(here, capsys, words):
    """The class of number 1 is not the one that is called "1"."""
    told = []
    for names in (("pear", "plum"), ("1", "plum")):
        parts = ["train"] * 4 + ["val"] * 4 + ["test"] * 4
        rows = [f"{node},{names[node % 2]},{parts[node]}" for node in range(NODES)]
        (here / "Y.csv").write_text("node,label,split\n" + "\n".join(rows) + "\n")
        capsys.readouterr()
        assert main([word.replace("PLUM", names[1]) for word in words] + ["--json"]) == 0
        told.append(json.loads(capsys.readouterr().out))
    first, second = (
        {name: value for name, value in document.items() if name in COUNTED} for document in told
    )
    assert first
    assert first == second
