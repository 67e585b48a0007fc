"""Figures as files that are the same, byte for byte, whenever they show the same."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save(figure: "Figure", path: Path, dpi: int = 100) -> None:
    """Write a figure without the date, and with names inside that only what it shows decides."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": path.stem}):
        figure.savefig(path, dpi=dpi, metadata={"Date": None} if path.suffix == ".svg" else None)
