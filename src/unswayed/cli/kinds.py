"""The words that options with a fixed choice take."""

from enum import StrEnum


class Recipe(StrEnum):
    """How a built-in model is trained."""

    CLEAN = "clean"
    NOISE = "noise"
    DISTILL = "distill"


class Protocol(StrEnum):
    """What training may see of the test nodes."""

    TRANSDUCTIVE = "transductive"
    INDUCTIVE = "inductive"


class ThreatKind(StrEnum):
    """Which entries the attacker may change."""

    ROW = "row"
    ALL_PAIRS = "all-pairs"
    INJECT = "inject"


class BoundsKind(StrEnum):
    """Which confidence bounds are used."""

    STRICT = "strict"
    PAPER = "paper"
    TIGHT = "tight"
    ANYTIME = "anytime"


class RivalsKind(StrEnum):
    """What a label must be more probable than."""

    ALL = "all"
    LABELS = "labels"


class EngineKind(StrEnum):
    """Which engine asks the classifier."""

    AUTO = "auto"
    GENERIC = "generic"
    FAST = "fast"


class RunnerKind(StrEnum):
    """Where samples are counted."""

    SERIAL = "serial"
    RAY = "ray"


class VotersKind(StrEnum):
    """What a ballot is made of."""

    FEATURES = "features"
    TWO_HOP = "two-hop"
