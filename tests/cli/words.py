"""Commands that several tests give, and how they read what is said of them."""

CERTIFY = (
    "certify --edges E.csv --features X.csv --labels Y.csv --model mine.py:build --no-floor --samples 100"
)


def plain(own):
    """The words without their noise."""
    at = own.index("--beta")
    return own[:at] + own[at + 2 :]


def one_sentence(err):
    """The last line of stderr; notes about progress may come before it."""
    assert "Traceback" not in err
    lines = [line for line in err.splitlines() if line.startswith("unswayed: ")]
    assert len(lines) == 1, err
    assert err.rstrip().endswith(lines[0])
    assert lines[0].endswith(".")
    return lines[0]
