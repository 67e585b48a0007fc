import io

import numpy as np
import pytest
from rich.console import Console

import unswayed as us
from unswayed.report.summary import summarise
from unswayed.report.terminal import HEIGHT, accuracy_table, curve, print_summary, weakest_table


def text_of(thing, width=100):
    console = Console(file=io.StringIO(), width=width)
    console.print(thing)
    return console.file.getvalue()


def test_table_holds_the_curve_and_the_floor(certs, truth):
    summary = summarise(certs, truth=truth, floor=0.625)
    words = text_of(accuracy_table(summary))
    assert f"{certs.accuracy(truth, at=[0])[0]:.2f}" in words
    assert f"{0.625:.2f}" in words
    assert f"{certs.accuracy(truth, at=[0])[0] - 0.625:+.2f}" in words


def test_a_difference_that_cannot_be_seen_has_no_sign(certs, truth):
    share = float(certs.accuracy(truth, at=[0])[0])
    for floor in (share, share - 0.004, share + 0.004):
        last = text_of(accuracy_table(summarise(certs, truth=truth, floor=floor))).splitlines()[-1]
        assert last.split()[:4] == ["above", "the", "floor", "0.00"]


@pytest.mark.parametrize("ascii_only", [False, True])
def test_columns_are_as_high_as_the_shares(certs, truth, ascii_only):
    summary = summarise(certs, truth=truth)
    lines = str(curve(summary, ascii_only=ascii_only)).splitlines()[:HEIGHT]
    first = sum(line[6] != " " for line in lines) if ascii_only else sum(line[6] == "█" for line in lines)
    assert abs(first - summary.curve.share[0] * HEIGHT) <= 1
    assert all(ord(letter) < 128 for line in lines for letter in line) or not ascii_only


def test_weakest_targets_are_listed_in_order(certs, truth):
    summary = summarise(certs, truth=truth)
    words = text_of(weakest_table(summary, 4)).splitlines()[2:]
    assert [int(line.split()[0]) for line in words] == certs.targets[summary.order[:4]].tolist()


def test_markup_in_names_is_shown_not_obeyed(certs):
    summary = summarise(
        certs, names=["[red]x[/red]"] * len(certs), class_names=[f"[bold]{i}" for i in range(4)]
    )
    assert "[red]x[/red]" in text_of(weakest_table(summary, 2))


@pytest.mark.parametrize("width", [40, 80, 200])
def test_prints_at_any_width_and_without_truth(certs, truth, width):
    for known in (None, truth):
        console = Console(file=io.StringIO(), width=width)
        attacked = np.where(certs.size >= 0, certs.size + 1, -1)
        print_summary(summarise(certs, truth=known, floor=0.4, attacked=attacked), console)
        assert "attack size k" in console.file.getvalue()


def test_long_curves_fit_a_terminal(certs, truth, monkeypatch):
    summary = summarise(certs, truth=truth)
    monkeypatch.setitem(summary.__dict__, "top", 120)
    lines = str(curve(summary)).splitlines()
    assert max(map(len, lines)) <= 80
    assert "120" in lines[-1]


def test_a_true_label_that_nobody_knows_abstains_from_nothing(certs):
    words = text_of(weakest_table(summarise(certs, truth=[-1, *[0] * (len(certs) - 1)]), len(certs)))
    assert words.count("abstains") == int(certs.abstained.sum())
    assert words.count("unknown") == 1


def test_nearly_all_does_not_read_as_all():
    votes = us.Votes.from_counts([[10_000, 0]] * 299 + [[5_000, 5_000]], us.Flip(beta=0.7), 99)
    summary = summarise(us.certify(votes))
    assert "1.00" not in text_of(accuracy_table(summary))
    assert "0.99" in text_of(accuracy_table(summary))


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_narrow_terminal_has_fewer_columns_and_cuts_nothing_off(certs, truth, width):
    names = [f"account-{place:05d}" for place in range(len(certs))]
    summary = summarise(certs, truth=truth, floor=0.4, names=names)
    console = Console(file=io.StringIO(), width=width)
    print_summary(summary, console)
    out = console.file.getvalue()
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= width
    assert all(names[place] in out for place in summary.order[:5])
    (sizes,) = (line.split()[3:] for line in out.splitlines() if line.startswith("attack size k"))
    (shares,) = (line.split()[2:] for line in out.splitlines() if line.startswith("certified accuracy"))
    assert shares == [f"{share:.2f}" for share in certs.accuracy(truth, at=[int(size) for size in sizes])]
