"""Hide: nodes lose all their edges, and edges are lost one by one."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from unswayed.errors import InputError
from unswayed.theory.noise import WORD, AddDelete, Noise, threshold

if TYPE_CHECKING:
    from unswayed.theory.law import Law


@dataclass(frozen=True)
class Hide(Noise):
    """Every node, the target too, loses all its edges with probability `nodes`; every edge is lost with probability `edges`.

    Nothing is ever added, so a fake node matters only where it is seen. `links`, the most links a fake node may have (None:
    any number), is the threat's word: `poll` takes it from `Inject`.

    >>> Hide(nodes=0.5, edges=0.25).words()
    'each node hidden, with all its edges, with probability 0.5, and each edge lost with 0.25'
    """

    nodes: float
    edges: float
    links: int | None = None
    kind: ClassVar[str] = "hide"
    drawing = "nodes"
    counts = "nodes"
    threats = ("inject",)

    def __post_init__(self) -> None:
        for name in ("nodes", "edges"):
            object.__setattr__(self, name, threshold(getattr(self, name), name, zero=True) / WORD)
        if not self.nodes and not self.edges:
            raise InputError("Hide needs a probability above 0 for nodes or for edges.")
        if self.links is not None and (not isinstance(self.links, int) or self.links < 1):
            raise InputError(f"links must be a whole number from 1 up, or None, not {self.links!r}.")

    @property
    def law(self) -> "Law":
        """Fake nodes that are seldom seen."""
        from unswayed.theory.injection import Shielded

        return Shielded(Fraction(self.nodes), Fraction(self.edges), self.links)

    @property
    def brief(self) -> str:
        """Its settings in a few words, for tables."""
        links = "" if self.links is None else f", links {self.links}"
        return f"nodes {self.nodes:.6g}, edges {self.edges:.6g}{links}"

    @property
    def stand_in(self) -> Noise:
        """Every second entry is deleted."""
        return AddDelete(p_add=0, p_delete=0.5)

    def expected(self, ones: float, zeros: float) -> float:
        """How many links are seen, on average."""
        return ones * (1 - self.edges) * (1 - self.nodes) ** 2

    def words(self) -> str:
        """What it does, for people."""
        return f"each node hidden, with all its edges, with probability {self.nodes:.6g}, and each edge lost with {self.edges:.6g}"
