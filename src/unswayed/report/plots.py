"""Figures for papers, as matplotlib axes: save them as PDF, SVG or PNG with `ax.figure.savefig`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unswayed.certificates import Certified
from unswayed.errors import InputError
from unswayed.report.summary import Summary, summarise

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's palette: told apart by every kind of colour vision; line styles differ too, for print
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))


def plot_accuracy(
    curves: Mapping[str, Any],
    *,
    floor: float | Mapping[str, float] | None = None,
    at: Sequence[int] | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw one certified-accuracy curve for each name, all on the same axes, and the floor to hold them against.

    A curve is a pair `(certificates, truth)`, certificates alone (then the share certified), or a mapping from size
    to value such as a results row's `certified_accuracy`. `floor` is one accuracy, or several by name.
    """
    if not curves:
        raise InputError("There is no curve to plot: give at least one name and its certificates.")
    axes = _axes(ax)
    for place, (name, curve) in enumerate(curves.items()):
        sizes, shares = _points(curve, at)
        look = {"color": COLOURS[place % len(COLOURS)], "linestyle": STYLES[place % len(STYLES)]}
        axes.step(sizes, shares, where="post", label=name, linewidth=1.8, **look)
    floors = floor if isinstance(floor, Mapping) else {} if floor is None else {"structure-free floor": floor}
    for place, (name, height) in enumerate(floors.items()):
        axes.axhline(
            height, color=("0.35", "0.6")[place % 2], linestyle=(0, (1, 2)), linewidth=1.4, label=name
        )
    return _finish(axes, "certified accuracy")


def plot_certificates(
    certs: Certified,
    truth: npt.ArrayLike | None = None,
    *,
    floor: float | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the curve of one set of certificates with the band that 95% confidence leaves under it."""
    summary = summarise(certs, truth=truth, floor=floor)
    axes, curve = _axes(ax), summary.curve
    what = "certified accuracy" if truth is not None else "share certified"
    axes.step(curve.sizes, curve.share, where="post", color=COLOURS[0], linewidth=1.8, label=what)
    if summary.doubtful:
        band: dict[str, Any] = {"color": COLOURS[0], "alpha": 0.2, "linewidth": 0, "label": "95% confidence"}
        axes.fill_between(curve.sizes, curve.low, curve.share, step="post", **band)
    if summary.floor is not None:
        axes.axhline(
            summary.floor, color=COLOURS[1], linestyle="--", linewidth=1.4, label="structure-free floor"
        )
    return _finish(axes, what)


def _points(curve: Any, at: Sequence[int] | None) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    if isinstance(curve, Mapping):
        pairs = sorted((int(size), float(share)) for size, share in curve.items())
        return np.array([size for size, _ in pairs]), np.array([share for _, share in pairs])
    certs, truth = curve if isinstance(curve, tuple) else (curve, None)
    if not isinstance(certs, Certified):
        raise InputError(
            f"A curve must be certificates, (certificates, truth) or a mapping, not {type(certs).__name__}."
        )
    summary: Summary = summarise(certs, truth=truth)
    sizes = np.arange(summary.top + 1) if at is None else np.asarray(at, np.int64)
    return sizes, summary.share(sizes)


def _axes(ax: "Axes | None") -> "Axes":
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise InputError("Plots need matplotlib: pip install 'unswayed[report]'.") from error
    _, axes = pyplot.subplots(figsize=(4.8, 3.2), layout="constrained")
    return axes


def _finish(axes: "Axes", what: str) -> "Axes":
    from matplotlib.ticker import MaxNLocator

    axes.set_xlabel("perturbation size k")
    axes.set_ylabel(what)
    axes.set_ylim(0, 1.02)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.legend(frameon=False)
    return axes
