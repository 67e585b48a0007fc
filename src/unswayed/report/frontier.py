"""Accuracy against robustness over a sweep of noises: who is on the frontier, and which one to take."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unswayed.certificates import Certificates
from unswayed.theory.noise import Flip, Noise


@dataclass(frozen=True)
class Point:
    """One noise of a sweep: its certified accuracy at every size up to the last that is not zero."""

    noise: Noise
    accuracy: tuple[float, ...]
    ceiling: int

    @classmethod
    def of(cls, noise: Noise, certs: Certificates, truth: npt.NDArray[np.int64], ceiling: int) -> "Point":
        """The point of these certificates."""
        sizes = np.arange(min(int(certs.size.max(initial=0)), 1000) + 1)
        return cls(noise, tuple(certs.accuracy(truth, at=sizes).tolist()), ceiling)

    def at(self, size: int) -> float:
        """Certified accuracy at this size."""
        return self.accuracy[size] if size < len(self.accuracy) else 0.0

    def __str__(self) -> str:
        if isinstance(self.noise, Flip):
            return f"beta {self.noise.beta:.6g}"
        return f"p_add {self.noise.p_add:.6g}, p_delete {self.noise.p_delete:.6g}"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        curve = {str(size): share for size, share in enumerate(self.accuracy)}
        return {**self.noise.to_dict(), "ceiling": self.ceiling, "certified_accuracy": curve}


def frontier(points: Sequence[Point], want: int) -> set[int]:
    """Positions that no other point beats both without attack and at the wanted size."""

    def beaten(mine: Point, other: Point) -> bool:
        ours, theirs = (mine.at(0), mine.at(want)), (other.at(0), other.at(want))
        return theirs != ours and theirs[0] >= ours[0] and theirs[1] >= ours[1]

    return {place for place, point in enumerate(points) if not any(beaten(point, other) for other in points)}


def recommend(points: Sequence[Point], want: int) -> int:
    """The position of the best certified accuracy at the wanted size; ties go to accuracy without attack.

    Where no point certifies that size, the one with the widest area under its curve.
    """
    if max(point.at(want) for point in points) == 0:
        return max(range(len(points)), key=lambda place: sum(points[place].accuracy))
    return max(range(len(points)), key=lambda place: (points[place].at(want), points[place].at(0)))
