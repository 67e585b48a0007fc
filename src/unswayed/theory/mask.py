"""Mask: features of nodes are masked, and edges deleted, at random."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unswayed.errors import InputError, Unsupported
from unswayed.theory.noise import WORD, AddDelete, Noise, threshold

if TYPE_CHECKING:
    from unswayed.theory.law import Law


@dataclass(frozen=True)
class Mask(Noise):
    """The features of every node are masked with probability `features`, every edge is deleted with probability `edges`.

    What a node says of itself then matters only where it is seen. How often that is depends on the paths around each
    target, which the threat `Intercept` knows: `certify_intercepted(votes, threat)`.

    >>> Mask(features=0.5, edges=0.25).words()
    'the features of each node masked with probability 0.5, and each edge deleted with 0.25'
    """

    features: float
    edges: float
    kind: ClassVar[str] = "mask"
    counts = "nodes"
    threats = ("intercept",)

    def __post_init__(self) -> None:
        for name in ("features", "edges"):
            object.__setattr__(self, name, threshold(getattr(self, name), name, zero=True) / WORD)
        if not self.features and not self.edges:
            raise InputError("Mask needs a probability above 0 for features or for edges.")

    @property
    def law(self) -> "Law":
        """None by itself."""
        raise Unsupported(
            "Under Mask a size depends on the paths around each target: use certify_intercepted(votes, threat)."
        )

    @property
    def thresholds(self) -> tuple[int, int]:
        """(T for a mask that is not there, T for an edge that is): such are the entries that are drawn."""
        return int(self.features * WORD), int(self.edges * WORD)

    @property
    def stand_in(self) -> Noise:
        """The same coins."""
        return AddDelete(p_add=self.features, p_delete=self.edges)

    def expected(self, ones: float, zeros: float) -> float:
        """How many edges and masks there are, on average."""
        return ones * (1 - self.edges) + zeros * self.features

    def words(self) -> str:
        """What it does, for people."""
        return f"the features of each node masked with probability {self.features:.6g}, and each edge deleted with {self.edges:.6g}"
