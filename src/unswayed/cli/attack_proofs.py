"""`unswayed attack` on proofs: nothing is searched, because a proof brings its own attacks."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unswayed.certificates import Certified
from unswayed.certificates.presenting import plural
from unswayed.cli.proving import prove_asked, proved_by_name
from unswayed.cli.record import Record, open_run
from unswayed.store import CERTIFICATES


@dataclass(frozen=True)
class Met:
    """Proofs, the record of them, and for each target the size of an attack that is known to succeed (−1: none is)."""

    certs: Certified
    record: Record

    @cached_property
    def known(self) -> list[npt.NDArray[np.int64] | None]:
        """The entries that each of these attacks changes."""
        return [self.certs.known_attack(place) for place in range(len(self.certs))]

    @property
    def attacked(self) -> npt.NDArray[np.int64]:
        """int64[targets]."""
        return np.array([-1 if attack is None else len(attack) for attack in self.known], dtype=np.int64)

    def facts(self) -> dict[str, Any]:
        """As the attacks of `unswayed attack` are told, JSON-ready."""
        hit = {
            name: {"size": len(attack), "kind": "witness", "entries": attack.tolist()}
            for name, attack in zip(self.record.names, self.known, strict=True)
            if attack is not None
        }
        return {"within": {}, "judged": 0, "rebuilt": 0, "breaches": [], "attacked": hit}

    def lines(self) -> list[str]:
        """For people."""
        unit, total, size, attacked = self.certs.unit, len(self.certs), self.certs.size, self.attacked
        hit = attacked >= 0
        whole = int(np.sum(~hit & (size >= self.certs.about.entries)))
        if not hit.any() and whole < total:
            return [
                f"These are lower bounds that hold for certain, and no attack on them is known: of {total} {unit}s none is sure to fall "
                "at K + 1 changes. Nothing was searched."
            ]
        told = [
            f"These are proofs: lower and upper bound meet. {int(hit.sum())} of {total} {unit}s fall to a known attack with K + 1 "
            f"changes and to none with K, and {whole} withstand every change. There is nothing left to search."
        ]
        names = self.record.names
        return told + listed(
            weakest_first(attacked),
            lambda place: (
                f"  {unit} {names[place]}: safe up to {plural(int(size[place]), 'change')}, broken by {int(attacked[place])}: "
                f"{self.certs.known_attack_in_words(place)}."
            ),
        )


LISTED = 20  # targets that are shown to people; JSON has all


def weakest_first(attacked: npt.NDArray[np.int64]) -> list[int]:
    """The positions of targets with a known attack, those with the smallest first."""
    found = np.flatnonzero(attacked >= 0)
    return [int(place) for place in found[np.argsort(attacked[found], kind="stable")]]


def listed(places: list[int], line: Callable[[int], str]) -> list[str]:
    """A line for each of the first, and how many more there are."""
    more = len(places) - LISTED
    return [line(place) for place in places[:LISTED]] + (
        [f"  … and {more:,} more; --json has all of them."] if more > 0 else []
    )


def met(words: dict[str, Any], store: Path | None) -> Met | None:
    """The proofs that these words, or the store, are about; None where there are none to be had."""
    named = words["dataset"] is not None or words["edges"] is not None  # then the store must be of these
    if store is not None and not named and (store / CERTIFICATES).exists():
        record, found = open_run(store)
        certs = record.certify(found)
        return Met(certs, record) if certs.confidence is None else None
    return Met(*prove_asked(words, store)) if proved_by_name(words["model"]) else None
