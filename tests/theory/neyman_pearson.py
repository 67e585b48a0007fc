"""The definition itself, in fractions, over single things that may be seen: no code of the package is used here."""

from collections import Counter
from fractions import Fraction
from itertools import combinations, product


def keep_law(row, kept: int, seats: int) -> dict:
    """Pr(seen set) when `kept` of the row's ones and blanks are drawn without replacement."""
    places = [*row, *[None] * (max(len(row), seats) - len(row))]
    drawn = ([places[i] for i in chosen] for chosen in combinations(range(len(places)), kept))
    seen = Counter(frozenset(v for v in some if v is not None) for some in drawn)
    total = sum(seen.values())
    return {what: Fraction(times, total) for what, times in seen.items()}


def entry_law(row, entries: int, p_add: Fraction, p_delete: Fraction) -> dict:
    """Pr(seen set) when every entry flips by itself."""
    law = {}
    for bits in product([0, 1], repeat=entries):
        p = Fraction(1)
        for v, bit in enumerate(bits):
            flip = p_delete if v in row else p_add
            p *= flip if bit != (v in row) else 1 - flip
        if p:
            law[frozenset(v for v, bit in enumerate(bits) if bit)] = p
    return law


def worst(before: dict, after: dict, top, rest) -> tuple[Fraction, Fraction]:
    """(least mass after of a set of mass `top` before, largest mass after of a set of mass `rest` before)."""
    top, rest = Fraction(top), min(Fraction(rest), 1 - Fraction(top))
    atoms = [(before.get(z, Fraction(0)), after.get(z, Fraction(0))) for z in before.keys() | after.keys()]
    assert sum(x for x, _ in atoms) == sum(y for _, y in atoms) == 1
    atoms.sort(key=lambda atom: atom[0] / (atom[0] + atom[1]))
    for_nothing = sum((y for x, y in atoms if x == 0), Fraction(0))
    return _take(atoms[::-1], top), for_nothing + _take(atoms, rest)


def _take(atoms, p: Fraction) -> Fraction:
    mass = Fraction(0)
    for x, y in atoms:
        part = min(Fraction(1), p / x) if x else 0
        p, mass = p - part * x, mass + part * y
    return mass


def holds(before: dict, after: dict, top, rest, times: int = 1) -> bool:
    kept, lost = worst(before, after, top, rest)
    return times * kept > lost
