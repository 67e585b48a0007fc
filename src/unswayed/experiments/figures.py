"""Certified-accuracy curves of a figure's panels: the mean over seeds, the spread, and the floor, as PNG and SVG."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unswayed.errors import InputError
from unswayed.experiments.settings import Panel
from unswayed.report.plots import COLOURS, STYLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = npt.NDArray[np.float64]


def curves(panel: Panel, rows: Sequence[Mapping[str, Any]]) -> dict[float, FloatArray]:
    """For each value of what the panel varies: float[seeds, sizes], the certified accuracy of every seed."""
    by_value: dict[float, list[list[float]]] = defaultdict(list)
    for row in rows:
        shares = row["certified_accuracy"]
        by_value[row[panel.varied]].append([shares[key] for key in sorted(shares, key=int)])
    return {value: np.array(seeds) for value, seeds in sorted(by_value.items())}


def draw(by_panel: Mapping[Panel, Sequence[Mapping[str, Any]]], stem: Path) -> list[Path]:
    """All panels of a figure side by side, written to stem.png and stem.svg."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise InputError("Curves need matplotlib: pip install 'unswayed[report]'.") from error
    columns = min(len(by_panel), 3)
    lines = -(-len(by_panel) // columns)
    size = (4.2 * columns, 3.2 * lines)
    figure, axes = pyplot.subplots(lines, columns, figsize=size, layout="constrained", squeeze=False)
    for ax in axes.flat[len(by_panel) :]:
        ax.set_visible(False)
    for ax, (panel, rows) in zip(axes.flat, by_panel.items(), strict=False):
        _panel(ax, panel, rows)
    axes.flat[0].set_ylabel("certified accuracy")
    paths = [stem.with_suffix(".png"), stem.with_suffix(".svg")]
    stem.parent.mkdir(parents=True, exist_ok=True)
    for path in paths:
        figure.savefig(path, dpi=110, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)
    return paths


def _panel(ax: "Axes", panel: Panel, rows: Sequence[Mapping[str, Any]]) -> None:
    names = {"beta": "β = {:g}", "alpha": "α = {:g}", "samples": "d = {:,.0f}"}
    for place, (value, shares) in enumerate(curves(panel, rows).items()):
        sizes, mean, spread = np.arange(shares.shape[1]), shares.mean(axis=0), shares.std(axis=0)
        colour = COLOURS[place % len(COLOURS)]
        label = names[panel.varied].format(value)
        ax.step(sizes, mean, where="post", color=colour, linestyle=STYLES[place % len(STYLES)], label=label)
        band: dict[str, Any] = {"step": "post", "color": colour, "alpha": 0.12, "linewidth": 0}
        ax.fill_between(sizes, mean - spread, mean + spread, **band)
    floor = float(np.mean([row["floor"] for row in rows]))
    ax.axhline(floor, color="0.35", linestyle=(0, (1, 2)), linewidth=1.4, label="structure-free floor")
    ax.set(
        title=f"{panel.dataset}, {panel.model} ({panel.recipe}, {panel.protocol})",
        ylim=(0, 1.02),
        xlim=(0, 30),
    )
    ax.title.set_fontsize("medium")
    ax.set_xlabel("perturbation size k")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="0.9", linewidth=0.8)
    ax.legend(frameon=False, fontsize="small")
