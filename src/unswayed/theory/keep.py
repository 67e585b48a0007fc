"""Keep: a few of a row's neighbours are seen, drawn without replacement, as neighbour sampling does."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unswayed.errors import InputError
from unswayed.theory.checks import check_count
from unswayed.theory.noise import WORD, AddDelete, Noise

if TYPE_CHECKING:
    from unswayed.theory.law import Law


@dataclass(frozen=True)
class Keep(Noise):
    """Of max(degree, `seats`) seats, the row's neighbours and blanks, exactly `kept` are drawn; no other neighbour is seen.

    Nothing is ever added, so an attacker's new link matters only where it is drawn: the more neighbours a node has, the
    more links it takes. For `Row` alone.

    >>> Keep(kept=5, seats=50).words()
    '5 of 50 seats kept, or of as many as there are neighbours; empty seats are blanks'
    """

    kept: int
    seats: int
    kind: ClassVar[str] = "keep"
    drawing = "seats"
    threats = ("row", "row-new")

    def __post_init__(self) -> None:
        kept, seats = check_count(self.kept, "kept"), check_count(self.seats, "seats")
        if not 1 <= kept <= seats:
            raise InputError(f"Keep needs 1 ≤ kept ≤ seats, not kept={kept} of {seats} seats.")
        if seats >= WORD // 2:
            raise InputError(f"Keep draws seats with 32 random bits: {seats} seats are too many.")
        object.__setattr__(self, "kept", kept)
        object.__setattr__(self, "seats", seats)

    @property
    def law(self) -> "Law":
        """Draws without replacement."""
        from unswayed.theory.visibility import Seats

        return Seats(self.kept, self.seats)

    @property
    def stand_in(self) -> Noise:
        """Every second entry is deleted."""
        return AddDelete(p_add=0, p_delete=0.5)

    def expected(self, ones: float, zeros: float) -> float:
        """How many links are seen, on average."""
        return self.kept * ones / max(ones, self.seats)

    def words(self) -> str:
        """What it does, for people."""
        return f"{self.kept} of {self.seats} seats kept, or of as many as there are neighbours; empty seats are blanks"
