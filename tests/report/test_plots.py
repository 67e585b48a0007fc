import matplotlib as mpl
import numpy as np
import pytest

import unswayed as us
from unswayed.errors import InputError
from unswayed.report.plots import plot_accuracy, plot_certificates

mpl.use("agg")


@pytest.fixture(autouse=True)
def _close():
    yield
    from matplotlib import pyplot

    pyplot.close("all")


@pytest.mark.parametrize("suffix", ["pdf", "svg", "png"])
def test_saves_in_every_format(tmp_path, certs, truth, suffix):
    path = tmp_path / f"curve.{suffix}"
    certs.plot(truth, floor=0.5).figure.savefig(path)
    assert path.stat().st_size > 1_000


def test_the_line_is_the_certified_accuracy(certs, truth):
    line = plot_certificates(certs, truth).lines[0]
    assert np.array_equal(line.get_ydata(), certs.accuracy(truth, at=line.get_xdata().astype(int)))


def test_several_curves_and_their_floor(certs, truth):
    ax = plot_accuracy({"GCN": (certs, truth), "published": {"5": 0.55, "0": 0.7}, "share": certs}, floor=0.5)
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["GCN", "published", "share", "structure-free floor"]
    assert ax.lines[1].get_xdata().tolist() == [0, 5]
    assert len({(line.get_color(), str(line.get_linestyle())) for line in ax.lines}) == 4


def test_draws_into_the_axes_it_is_given(certs):
    from matplotlib import pyplot

    _, mine = pyplot.subplots()
    assert plot_certificates(certs, ax=mine) is mine
    assert us.plot_accuracy({"a": certs}, ax=mine) is mine


@pytest.mark.parametrize("bad", [{}, {"a": 3}, {"a": (3, 4)}])
def test_refuses_what_is_no_curve(bad):
    with pytest.raises(InputError):
        plot_accuracy(bad)
