"""Which noises `unswayed frontier` tries."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unswayed.theory.noise import Noise


OTHERS = [(0.0, 0.5), (0.0, 0.7), (0.0, 0.9), (0.001, 0.4), (0.001, 0.7), (0.01, 0.6)]
SEATS = ["3/30", "5/50", "10/50"]


def other_noises() -> "list[Noise]":
    """A few noises of every other kind."""
    from unswayed.cli.inputs import read_noise, read_seats

    return [*(read_noise(None, *pair) for pair in OTHERS), *map(read_seats, SEATS)]


def read_sweep(
    betas: str, p_adds: str | None, p_deletes: str | None, keeps: str | None = None
) -> "list[Noise]":
    """Every noise of the sweep; each is checked before the first is tried."""
    from unswayed.cli.inputs import read_noise, read_seats
    from unswayed.errors import InputError

    if keeps is not None:
        return [*read_sweep(betas, p_adds, p_deletes), *map(read_seats, keeps.split(","))]

    if (p_adds is None) != (p_deletes is None):
        raise InputError("An asymmetric sweep needs both --p-adds and --p-deletes.")
    if p_adds is None or p_deletes is None:
        return [read_noise(beta, None, None) for beta in _floats(betas, "--betas")]
    return [
        read_noise(None, add, delete)
        for add in _floats(p_adds, "--p-adds")
        for delete in _floats(p_deletes, "--p-deletes")
    ]


def _floats(words: str, flag: str) -> list[float]:
    from unswayed.errors import InputError

    try:
        values = [float(word) for word in words.split(",") if word.strip()]
    except ValueError as error:
        raise InputError(f"{flag} must be numbers with commas between them, not {words!r}.") from error
    if not values:
        raise InputError(f"{flag} names no value.")
    return values
