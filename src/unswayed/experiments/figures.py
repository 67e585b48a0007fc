"""Certified-accuracy curves of a figure's panels: the mean over seeds, the spread, and the floor, as PNG and SVG.

And what certificates add to the floor, for every model on every dataset.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unswayed.errors import InputError
from unswayed.experiments.saved_figures import save
from unswayed.experiments.settings import ALPHAS, BETAS, SAMPLES, Panel
from unswayed.experiments.spread import deviation
from unswayed.report.plots import COLOURS, STYLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = npt.NDArray[np.float64]

FLOOR = (0, (1, 2))  # the dotted line of what is certified for free


def curves(panel: Panel, rows: Sequence[Mapping[str, Any]]) -> dict[float, FloatArray]:
    """For each value of what the panel varies: float[seeds, sizes], the certified accuracy of every seed.

    A value with less than half as many seeds as another is left out: its mean would be of other splits.
    """
    by_value: dict[float, list[list[float]]] = defaultdict(list)
    for row in rows:
        by_value[row[panel.varied]].append(_shares(row))
    most = max(map(len, by_value.values()), default=0)
    return {value: np.array(seeds) for value, seeds in sorted(by_value.items()) if 2 * len(seeds) >= most}


def _shares(row: Mapping[str, Any]) -> list[float]:
    shares: dict[str, float] = row["certified_accuracy"]
    return [shares[key] for key in sorted(shares, key=int)]


def draw(by_panel: Mapping[Panel, Sequence[Mapping[str, Any]]], stem: Path) -> list[Path]:
    """All panels of a figure side by side, written to stem.png and stem.svg."""
    with _sheet(len(by_panel), stem) as axes:
        for ax, (panel, rows) in zip(axes, by_panel.items(), strict=True):
            _panel(ax, panel, rows)
        axes[0].set_ylabel("certified accuracy")
        _legend(axes, columns=6)
    return _paths(stem)


def draw_gains(groups: Mapping[tuple[str, ...], Sequence[Mapping[str, Any]]], stem: Path) -> list[Path]:
    """For each dataset, certified accuracy less the floor of the same split, for (dataset, model, recipe, protocol)."""
    names = sorted({key[1:] for key in groups})
    datasets = list(dict.fromkeys(key[0] for key in groups))
    with _sheet(len(datasets), stem) as axes:
        for ax, dataset in zip(axes, datasets, strict=True):
            for place, name in enumerate(names):
                if rows := groups.get((dataset, *name)):
                    gain = np.array([[s - row["floor"] for s in _shares(row)] for row in rows])
                    _curve(ax, gain, place, " ".join(name))
            ax.axhline(0, color="0.35", linestyle=FLOOR, linewidth=1.4)
            ax.set(title=dataset, ylim=(-0.95, 0.25))
        axes[0].set_ylabel("certified accuracy − floor")
        _legend(axes, columns=4)
    return _paths(stem)


@contextmanager
def _sheet(count: int, stem: Path) -> Iterator[list["Axes"]]:
    """Axes for so many panels, at most three in a line; what was drawn is written when it ends."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise InputError("Curves need matplotlib: pip install 'unswayed[report]'.") from error
    columns = min(count, 3)
    lines = -(-count // columns)
    size = (4.2 * columns, 3.1 * lines + 0.4)
    figure, axes = pyplot.subplots(lines, columns, figsize=size, layout="constrained", squeeze=False)
    for place, ax in enumerate(axes.flat):
        ax.set_visible(place < count)
        ax.set(xlim=(0, 30), xlabel="perturbation size k")
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", color="0.9", linewidth=0.8)
    yield list(axes.flat[:count])
    stem.parent.mkdir(parents=True, exist_ok=True)
    for path in _paths(stem):
        save(figure, path, dpi=110)
    pyplot.close(figure)


def _paths(stem: Path) -> list[Path]:
    return [stem.with_suffix(".png"), stem.with_suffix(".svg")]


def _legend(axes: Sequence["Axes"], columns: int) -> None:
    """One legend below the panels: inside, it would hide curves."""
    fullest = sorted((ax.get_legend_handles_labels() for ax in axes), key=lambda found: -len(found[1]))
    named = {label: line for lines, labels in fullest for line, label in zip(lines, labels, strict=True)}
    figure = axes[0].get_figure(root=True)
    assert figure is not None
    names = sorted(named, key=lambda name: "floor" in name)
    lines = [named[name] for name in names]
    figure.legend(lines, names, loc="outside lower center", ncols=min(len(names), columns), frameon=False)


def _curve(ax: "Axes", shares: FloatArray, place: int, label: str) -> None:
    """The mean over seeds as a line, the spread as a band."""
    sizes, mean, spread = np.arange(shares.shape[1]), shares.mean(axis=0), deviation(shares)
    colour = COLOURS[place % len(COLOURS)]
    ax.step(sizes, mean, where="post", color=colour, linestyle=STYLES[place % len(STYLES)], label=label)
    band: dict[str, Any] = {"step": "post", "color": colour, "alpha": 0.12, "linewidth": 0}
    ax.fill_between(sizes, mean - spread, mean + spread, **band)


def _panel(ax: "Axes", panel: Panel, rows: Sequence[Mapping[str, Any]]) -> None:
    names = {"beta": "β = {:g}", "alpha": "α = {:g}", "samples": "d = {:,.0f}"}
    every = {"beta": BETAS, "alpha": ALPHAS[::-1], "samples": SAMPLES}[panel.varied]
    for value, shares in curves(panel, rows).items():
        place = every.index(value) if value in every else len(every)
        _curve(ax, shares, place, names[panel.varied].format(value))
    floor = float(np.mean([row["floor"] for row in rows]))
    ax.axhline(floor, color="0.35", linestyle=FLOOR, linewidth=1.4, label="structure-free floor")
    ax.set(title=f"{panel.dataset}, {panel.model} ({panel.recipe}, {panel.protocol})", ylim=(0, 1.02))
    ax.title.set_fontsize("medium")
