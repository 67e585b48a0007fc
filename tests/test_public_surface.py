"""The names users and other people's checks rely on, and how light the import stays."""

import subprocess
import sys

import pytest

import unswayed

FIXED = {
    "AddDelete",
    "AllPairs",
    "BallotNetwork",
    "Bits",
    "Budget",
    "Certificates",
    "Certified",
    "Directed",
    "Flip",
    "Hashed",
    "Hide",
    "Inject",
    "Intercept",
    "Intercepted",
    "Keep",
    "LabelBallots",
    "Mask",
    "PairBallots",
    "Pairs",
    "Proofs",
    "RayRunner",
    "Relation",
    "Row",
    "SerialRunner",
    "Smoothed",
    "Snapshot",
    "Target",
    "TopCertificates",
    "UntilSize",
    "Votes",
    "__version__",
    "best_of",
    "certify",
    "certify_intercepted",
    "certify_top",
    "chosen_on",
    "errors",
    "flagged",
    "load",
    "meaning_of",
    "noisy",
    "plot_accuracy",
    "poll",
    "prospect",
    "prove",
    "receptive_fields",
    "theory",
    "write_report",
}
HEAVY = [
    "torch",
    "torch_geometric",
    "ray",
    "matplotlib",
    "pandas",
    "typer",
    "rich",
    "flint",
    "sklearn",
    "networkx",
]


def test_the_public_names_are_exactly_these():
    assert set(unswayed.__all__) == FIXED
    assert set(dir(unswayed)) == FIXED


@pytest.mark.parametrize("name", sorted(FIXED))
def test_every_public_name_can_be_fetched_and_explains_itself(name):
    value = getattr(unswayed, name)
    assert value.__doc__


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'refute'"):
        unswayed.refute


def loaded_after(statement):
    code = f"import sys; {statement}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()


def test_importing_the_package_loads_nothing_heavy():
    assert loaded_after("import unswayed") == []


def test_theory_and_certificates_load_no_torch():
    statement = "import unswayed as us; us.theory.certified_size; us.certify; us.Votes"
    assert not set(loaded_after(statement)) & {"torch", "torch_geometric", "ray", "matplotlib", "pandas"}


def test_polling_does_not_hide_behind_its_module():
    import unswayed.polling

    assert callable(unswayed.poll)
