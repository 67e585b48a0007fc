"""Noise with exactly known probabilities: what is certified is what is drawn.

An entry is flipped iff a uniform 32-bit word is below a threshold T, so its probability is the dyadic rational T/2³²
and never the decimal the user typed. Every float shown here is that rational exactly (32 bits fit in a float64).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

from unswayed.errors import InputError, Unsupported

if TYPE_CHECKING:
    from unswayed.theory.law import Law

WORD = 2**32  # probabilities are multiples of one in so many: what a random 32-bit word can tell exactly


def threshold(probability: Real | float, name: str, *, zero: bool = False) -> int:
    """The T for which T/2³² is nearest to `probability`; 2³² is refused, and 0 unless the noise has a law for it."""
    if isinstance(probability, bool) or not isinstance(probability, Real):
        raise InputError(f"{name} must be a number between 0 and 1, not {probability!r}.")
    value = float(probability)
    if zero and value == 0:
        return 0
    if not 0.0 < value < 1.0:  # also refuses NaN
        raise InputError(
            f"{name} must lie strictly between 0 and 1{', or be 0' if zero else ''}, not {probability}."
        )
    exact = probability if isinstance(probability, Fraction) else Fraction(value)
    nearest = round(exact * WORD)
    if not 0 < nearest < WORD:
        raise InputError(
            f"{name} = {probability} is within 2^-33 of 0 or 1: too close to draw with 32 random bits."
        )
    return nearest


def _shortest(value: Any) -> str:
    """A setting with the fewest digits that make the same noise again: mostly what was typed."""
    if not isinstance(value, float):
        return repr(value)
    short = (f"{value:.{digits}g}" for digits in range(1, 17))
    return next((text for text in short if round(Fraction(float(text)) * WORD) == value * WORD), repr(value))


class Noise(ABC):
    """What every noise says of itself: its law, its words, and its description in JSON.

    A noise is a frozen dataclass whose fields are JSON values; `kind` is its name in files.
    """

    kind: ClassVar[str]
    p_add: float  # that a 0 becomes 1; this and the next only of noise that flips entries one by one
    p_delete: float  # that a 1 becomes 0
    drawing: ClassVar[str] = "entries"  # how it is drawn: here, every entry by itself
    counts: ClassVar[str] = "entries"  # what a size under it counts: entries, or "nodes"
    # the kinds of threat that it is for; none: all that are made of entries
    threats: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Noise.__repr__  # type: ignore[method-assign]  # not the one dataclasses would write
        if "kind" in cls.__dict__:
            KINDS[cls.kind] = cls

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={_shortest(value)}" for name, value in self.options().items())
        return f"{type(self).__name__}({given})"

    @property
    @abstractmethod
    def law(self) -> "Law":
        """What it lets an attack do."""

    @abstractmethod
    def words(self) -> str:
        """What it does, for people: the middle of a sentence."""

    @property
    def symmetric(self) -> bool:
        """Whether additions and deletions count alike, so that only their sum matters."""
        return False

    @property
    def brief(self) -> str:
        """Its settings in a few words, for tables."""
        return ", ".join(f"{name} {value:.6g}" for name, value in self.options().items())

    def options(self) -> dict[str, Any]:
        """The settings as a user would type them."""
        return {part.name: getattr(self, part.name) for part in fields(self)}  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description that `noise_from_dict` turns back into an equal noise."""
        return {"kind": self.kind, **self.options()}

    @property
    def only_hides(self) -> bool:
        """Whether nothing is ever added."""
        return self.drawing != "entries" or self.thresholds[0] == 0

    def expected(self, ones: float, zeros: float) -> float:
        """How many entries are 1 under the noise, on average."""
        return ones * (1 - self.p_delete) + zeros * self.p_add

    @property
    def stand_in(self) -> "Noise":
        """Noise that flips entries one by one, to try a classifier with: this one, where it does."""
        return self

    @property
    def thresholds(self) -> tuple[int, int]:
        """(T for an entry that is 0, T for an entry that is 1): flip iff a 32-bit word is below it."""
        raise Unsupported(f"{type(self).__name__} does not flip entries one by one.")


KINDS: dict[str, type[Noise]] = {}  # kind → noise, for `noise_from_dict`


@dataclass(frozen=True)
class Flip(Noise):
    """Every entry keeps its value with probability `beta`, independently of all others.

    >>> Flip(beta=0.7)
    Flip(beta=0.7)
    >>> Flip(beta=0.7).beta == 0.7      # the realised probability has 32 bits
    False
    >>> Flip(beta=Flip(beta=0.7).beta) == Flip(beta=0.7)
    True
    """

    beta: float
    kind: ClassVar[str] = "flip"

    def __post_init__(self) -> None:
        flip = WORD - threshold(self.beta, "beta")
        object.__setattr__(self, "beta", (WORD - flip) / WORD)

    @property
    def thresholds(self) -> tuple[int, int]:
        """(T for an entry that is 0, T for an entry that is 1): flip iff a 32-bit word is below it."""
        flip = WORD - int(self.beta * WORD)
        return flip, flip

    @property
    def p_add(self) -> float:  # type: ignore[override]
        """Probability that a 0 becomes 1."""
        return 1 - self.beta

    @property
    def p_delete(self) -> float:  # type: ignore[override]
        """Probability that a 1 becomes 0."""
        return 1 - self.beta

    @property
    def law(self) -> "Law":
        """Every entry by itself."""
        return _entrywise(self)

    @property
    def symmetric(self) -> bool:
        """A 0 flips as easily as a 1."""
        return True

    def words(self) -> str:
        """What it does, for people."""
        return f"each entry kept with probability {self.beta:.6g}"


@dataclass(frozen=True)
class AddDelete(Noise):
    """A 0 becomes 1 with probability `p_add`, a 1 becomes 0 with probability `p_delete`, independently.

    One of them may be 0: noise that only deletes, or only adds, and by that only hides what an attacker did.

    >>> AddDelete(p_add=0.25, p_delete=0.5).thresholds == (2**30, 2**31)
    True
    """

    p_add: float
    p_delete: float
    kind: ClassVar[str] = "add-delete"

    def __post_init__(self) -> None:
        for name in ("p_add", "p_delete"):
            object.__setattr__(self, name, threshold(getattr(self, name), name, zero=True) / WORD)
        if not self.p_add and not self.p_delete:
            raise InputError(
                "AddDelete needs p_add or p_delete above 0: without noise nothing can be proved."
            )

    @property
    def law(self) -> "Law":
        """Every entry by itself."""
        if self.p_add and self.p_delete:
            return _entrywise(self)
        from unswayed.theory.visibility import Unseen

        return Unseen(Fraction(self.p_add or self.p_delete), adding=not self.p_delete)

    @property
    def symmetric(self) -> bool:
        """Only with equal probabilities."""
        return self.p_add == self.p_delete

    @property
    def thresholds(self) -> tuple[int, int]:
        """(T for an entry that is 0, T for an entry that is 1): flip iff a 32-bit word is below it."""
        return int(self.p_add * WORD), int(self.p_delete * WORD)

    def words(self) -> str:
        """What it does, for people."""
        if not self.p_add:
            return f"no entry added, an existing one deleted with probability {self.p_delete:.6g}"
        if not self.p_delete:
            return f"a missing entry added with probability {self.p_add:.6g}, none deleted"
        return f"a missing entry added with probability {self.p_add:.6g}, an existing one deleted with {self.p_delete:.6g}"


def _entrywise(noise: Noise) -> "Law":
    from unswayed.theory.entrywise import EntryWise  # which reads the thresholds of noises

    return EntryWise(noise)


def noise_from_dict(description: Mapping[str, Any]) -> Noise:
    """The noise that `to_dict` described.

    >>> noise_from_dict(Flip(beta=0.7).to_dict()) == Flip(beta=0.7)
    True
    """
    options = dict(description)
    kind = options.pop("kind", None)
    if kind not in KINDS:
        raise InputError(f"Unknown kind of noise {kind!r}; it must be one of {', '.join(map(repr, KINDS))}.")
    try:
        return KINDS[kind](**options)
    except TypeError as error:
        raise InputError(
            f"The description of the noise has missing or unknown fields: {sorted(options)}."
        ) from error
