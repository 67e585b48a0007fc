"""What is open stays open: outside its own room nobody asks which threat, noise or family of certificates it has before it."""

import re
from pathlib import Path

import pytest

import unswayed
from unswayed.certificates.protocol import FAMILIES
from unswayed.sampling.threats import Threat
from unswayed.sampling.threats.arrivals import Arrivals
from unswayed.theory.noise import KINDS

SOURCES = Path(unswayed.__file__).parent


def asked(names, room):
    """Every isinstance on one of these names outside the room."""
    pattern = re.compile(rf"isinstance\([^()]*(?:\([^()]*\)[^()]*)*\b({'|'.join(sorted(names))})\b")
    return [
        f"{path.relative_to(SOURCES)}: {found[0]}"
        for path in sorted(SOURCES.rglob("*.py"))
        if not path.is_relative_to(SOURCES / room)
        for found in pattern.finditer(path.read_text())
    ]


def kinds_of(kind):
    """Every class below this one."""
    return {below for own in kind.__subclasses__() for below in (own, *kinds_of(own))}


THREATS = {kind.kind: kind for kind in (Arrivals, *kinds_of(Threat))}


@pytest.mark.parametrize(
    ("known", "room", "least"),
    [(KINDS, "theory", 5), (FAMILIES, "certificates", 6), (THREATS, "sampling/threats", 9)],
)
def test_nobody_asks_outside_the_room(known, room, least):
    own = {kind.__name__ for kind in known.values() if kind.__module__.startswith("unswayed")}
    assert len(own) >= least
    assert asked(own, room) == []


def test_the_search_finds_what_it_is_after():
    assert asked({"Certified"}, "certificates")  # the protocol itself may be asked for
