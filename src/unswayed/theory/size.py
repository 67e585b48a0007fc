"""The certified size: exactly the largest attack that the two probabilities and the noise rule out.

For an attack (adds, deletes), let A be the set of X-mass p_top that is least probable under Y, and B the set of X-mass
p_rest that is most probable under Y (Neyman and Pearson). The attack is certified iff Pr(Y∈A) > Pr(Y∈B), strictly.
What A and B weigh is the noise's own law; here is what follows from it, for arrays of any shape.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from unswayed.theory.checks import check_count, check_counts, check_ones, check_probability, fit
from unswayed.theory.entrywise import EntryWise
from unswayed.theory.law import Bools, Floats, Ints, Law
from unswayed.theory.noise import Noise

#: A noise, or the exact keep probability β, or the exact pair (p_add, p_delete).
AnyNoise = Noise | Fraction | tuple[Fraction, Fraction]


def law_of(noise: AnyNoise) -> Law:
    """The noise's own law; exact fractions are those of noise that flips every entry by itself."""
    return noise.law if isinstance(noise, Noise) else EntryWise(noise)


def _pair(p_top: ArrayLike, p_rest: ArrayLike) -> tuple[Floats, Floats]:
    top, rest = check_probability(p_top, "p_top"), check_probability(p_rest, "p_rest")
    top, rest = fit(top, rest)
    return top, rest


def worst_case(
    p_top: ArrayLike,
    p_rest: ArrayLike,
    noise: AnyNoise,
    adds: int = 0,
    deletes: int = 0,
    *,
    ones: ArrayLike | None = None,
) -> tuple[Floats, Floats]:
    """The least Pr(Y∈A) and the largest Pr(Y∈B) that the bounds allow after the attack; p_rest is clipped to 1 − p_top.

    Floats for reading and plotting; `is_certified` settles what rounding leaves open.

    >>> from unswayed.theory import Flip
    >>> worst_case(0.9, 0.1, Flip(beta=0.75), deletes=1)
    (array(0.7), array(0.3))
    """
    top, rest = _pair(p_top, p_rest)
    a, d = (np.full(top.size, check_count(n, name)) for n, name in ((adds, "adds"), (deletes, "deletes")))
    held = _ones(ones, top.shape)
    kept, lost = law_of(noise).worst_case(top.ravel(), rest.ravel(), a, d, held)
    return kept.reshape(top.shape), lost.reshape(top.shape)


def _ones(ones: ArrayLike | None, shape: tuple[int, ...]) -> Ints | None:
    known = check_ones(ones, shape, np.asarray(np.iinfo(np.int64).max))
    return None if known is None else known.ravel()


def is_certified(
    p_top: ArrayLike,
    p_rest: ArrayLike,
    noise: AnyNoise,
    *,
    adds: ArrayLike = 0,
    deletes: ArrayLike = 0,
    ones: ArrayLike | None = None,
) -> Bools:
    """Exactly whether this attack, and every smaller one, is proved unable to change the label.

    `ones`, the number of entries that are 1, is needed where the noise depends on it.

    >>> from unswayed.theory import Flip
    >>> is_certified([0.78, 0.79], [0.22, 0.21], Flip(beta=0.7), deletes=1)
    array([False,  True])
    """
    top, rest = _pair(p_top, p_rest)
    attack = check_counts(adds, "adds"), check_counts(deletes, "deletes")
    top, rest, a, d, _ = fit(top, rest, *attack, np.asarray(0 if ones is None else ones))
    held = _ones(ones, top.shape)
    result = np.zeros(top.shape, np.bool_).ravel()
    left = np.flatnonzero((top > rest).ravel())
    cells = (top.ravel()[left], rest.ravel()[left], a.ravel()[left], d.ravel()[left])
    result[left] = law_of(noise).covered(*cells, None if held is None else held[left])
    return result.reshape(top.shape)


def certified_size(
    p_top: ArrayLike,
    p_rest: ArrayLike,
    noise: AnyNoise,
    cap: ArrayLike,
    *,
    ones: ArrayLike | None = None,
    change: str = "any",
) -> Ints:
    """Exactly the largest K ≤ cap such that no change of K entries can change the label; −1 where p_top ≤ p_rest.

    p_rest is clipped to 1 − p_top. `cap` is the number of entries. Where `ones`, the number of entries that are 1, is
    given, only attacks that exist count: at most `ones` deletions and `cap − ones` additions. `change` may be "adds" or
    "deletes": the largest number of additions, or of deletions, alone.

    >>> from unswayed.theory import Flip
    >>> certified_size([0.89, 0.89, 0.5], [0.02, 0.11, 0.5], Flip(beta=0.7), cap=2707)
    array([ 4,  1, -1])
    """
    top, rest = _pair(p_top, p_rest)
    top, rest, caps, _ = fit(top, rest, check_counts(cap, "cap"), np.asarray(0 if ones is None else ones))
    known = check_ones(ones, top.shape, caps)
    held = None if known is None else known.ravel()
    found = law_of(noise).size(top.ravel(), rest.ravel(), caps.ravel(), held, change)
    return found.reshape(top.shape)


def grid(
    p_top: ArrayLike,
    p_rest: ArrayLike,
    noise: AnyNoise,
    adds: int,
    deletes: int,
    *,
    ones: ArrayLike | None = None,
) -> Bools:
    """Exactly which attacks of up to `adds` additions and `deletes` deletions are certified: bool[…, adds+1, deletes+1].

    A cell counts only if every smaller attack holds too.

    >>> from unswayed.theory import Flip
    >>> grid(0.89, 0.02, Flip(beta=0.7), adds=2, deletes=3)
    array([[ True,  True,  True,  True],
           [ True,  True,  True,  True],
           [ True,  True,  True, False]])
    """
    top, rest = _pair(p_top, p_rest)
    adds, deletes = check_count(adds, "adds"), check_count(deletes, "deletes")
    if noise.symmetric if isinstance(noise, Noise) else not isinstance(noise, tuple):
        sums = np.add.outer(np.arange(adds + 1), np.arange(deletes + 1))
        return np.asarray(certified_size(top, rest, noise, adds + deletes)[..., None, None] >= sums)
    held = None if ones is None else np.broadcast_to(np.asarray(ones), top.shape)
    law, result = law_of(noise), np.zeros((*top.shape, adds + 1, deletes + 1), dtype=np.bool_)
    for a in range(adds + 1):
        for d in range(deletes + 1):
            # and every smaller attack holds: then this one alone is left to ask
            alive = np.asarray(top > rest)
            if a:
                alive &= result[..., a - 1, d]
            if d:
                alive &= result[..., a, d - 1]
            if alive.any():
                result[alive, a, d] = _one_attack(law, top[alive], rest[alive], a, d, held, alive)
    return result


def _one_attack(
    law: Law, top: Floats, rest: Floats, adds: int, deletes: int, ones: Ints | None, where: Bools
) -> Bools:
    """One attack, on those it may be asked about; what is not there cannot be deleted."""
    held = None if ones is None else ones[where]
    a, d = np.full(top.shape, adds), np.full(top.shape, deletes)
    return law.certified(top, rest, a, d if held is None else np.minimum(d, held), held)
