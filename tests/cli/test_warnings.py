"""What is allowed and hardly ever meant is said before anything slow happens."""

import pytest

CERTIFY = (
    "certify --edges E.csv --features X.csv --labels Y.csv --model mine.py:build --no-floor --samples 200"
)


@pytest.fixture
def never(monkeypatch):
    """Whoever samples in this test is too late with what they had to say."""
    from unswayed.cli import plan

    def late(*_, **__):
        raise AssertionError("sampled before everything was said")

    monkeypatch.setattr(plan, "poll", late)


def test_a_high_alpha_is_warned_of_once(call):
    code, _, err = call(*CERTIFY.split(), "--alpha", "0.2")
    assert code == 0
    assert err.count("Warning: alpha = 0.2 lets one certificate in 5 be wrong") == 1


def test_the_usual_alpha_is_not(call):
    assert "certificate in" not in call(*CERTIFY.split())[2]


@pytest.mark.usefixtures("never")
def test_nothing_is_sampled_that_can_prove_nothing(call):
    code, _, err = call(*CERTIFY.replace("200", "10").split())
    assert code == 2
    assert "at least --samples 11" in " ".join(err.split())


def test_the_samples_it_asks_for_are_the_fewest(call):
    assert call(*CERTIFY.replace("200", "11").split())[0] == 0


def test_a_factory_without_weights_is_warned_of(call):
    import torch
    from safetensors.torch import save_file

    _, _, err = call(*CERTIFY.split())
    assert "Warning: mine.py:build is taken as its factory makes it" in " ".join(err.split())
    save_file({"read.weight": torch.ones(2, 3), "read.bias": torch.zeros(2)}, "W.safetensors")
    _, _, err = call(*CERTIFY.split(), "--weights", "W.safetensors")
    assert "as its factory makes it" not in " ".join(err.split())


def test_a_beta_below_one_half_is_explained(call):
    _, _, err = call(*CERTIFY.split(), "--beta", "0.3")
    assert "K(β) = K(1 − β)" in " ".join(err.split())
    assert "what 0.7 proves" in " ".join(err.split())


def test_targets_that_are_trained_on_are_warned_of(call):
    own = "--edges E.csv --features X.csv --labels Y.csv --no-floor"
    trained = f"certify {own} --model sage --samples 100"
    learnt = "targets are also trained on"
    assert learnt not in call(*trained.split())[2]
    assert learnt in call(*trained.split(), "--nodes", "all")[2]
    assert learnt in call(*f"prove {own} --model hashed:gcn --nodes all".split())[2]
    assert learnt not in call(*f"prove {own} --nodes all".split())[2]  # label ballots learn nothing
    assert learnt not in call(*trained.replace("sage", "mine.py:build").split(), "--nodes", "all")[2]


@pytest.mark.parametrize("command", ["certify --model sage --samples 100", "prove --model hashed:gcn"])
def test_features_too_large_to_learn_from_are_warned_of_wherever_something_is_trained(call, here, command):
    table = (here / "X.csv").read_text().splitlines()
    (here / "X.csv").write_text(
        "\n".join([f"{table[0]},amount", *(f"{row},{i * 5000}" for i, row in enumerate(table[1:]))])
    )
    _, _, err = call(*f"{command} --edges E.csv --features X.csv --labels Y.csv --no-floor".split())
    assert "Feature 4 reaches 55,000" in " ".join(err.split())


def test_warnings_of_ours_are_words_and_others_stay_as_they_are(here, capsys):
    from unswayed.cli.common import PACKAGE, as_words

    usual = []
    show = as_words(lambda *told: usual.append(told))
    for _ in range(2):
        show(
            UserWarning("It is asked one at a time."),
            UserWarning,
            str(PACKAGE / "sampling" / "classifier.py"),
            7,
        )
    others = [(UserWarning("theirs"), UserWarning, "/somewhere/else.py", 7)]
    others.append((DeprecationWarning("old"), DeprecationWarning, str(PACKAGE / "votes.py"), 7))
    for told in others:
        show(*told)
    assert usual == others
    assert capsys.readouterr().err == "Warning: It is asked one at a time.\n"
