"""Question: everything a worker needs to count votes; Block: which part of them."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unswayed.errors import InputError
from unswayed.sampling.drawing import DRAWINGS, FewStream
from unswayed.sampling.sparse import NAME as SPARSE
from unswayed.sampling.stream import Stream
from unswayed.sampling.threats.base import Threat
from unswayed.theory.noise import Noise

ENGINES = ("auto", "generic", "fast")
DRAWS = ("auto", "dense", "sparse")
MOST = 100_000  # answers of an audit: they are kept with the votes
SPARSE_BELOW = 1 / 16  # where one word a drawn entry, and the bookkeeping, cost less than one word an entry
# of rows with so many entries, where so few are added, only those are drawn
FEW_BELOW, FEW_ABOVE = (
    1 / 256,
    2**15,
)


ROWS = ("row", "row-new")  # threats whose structure vectors are rows of one graph


@dataclass(frozen=True)
class Block:
    """Sample numbers start .. stop - 1, for the targets at these positions (None: all)."""

    start: int
    stop: int
    targets: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class Question:
    """Everything that decides the votes: equal questions give equal votes on every machine (but for tied logits).

    `shared` draws one noise for all targets; each target's guarantee, and the union bound over targets, are the same as
    with separate noise. `classes` is None until the classifier's output columns are known. `dtype` None keeps the
    model's own. `draws` says which stream of the same law is used: "dense" draws a word for every entry, "sparse" only
    for what changes (rows, and nodes of a whole graph, with noise shared by all of them), "auto" the cheaper one. `audit` is how
    many of the answers are kept to be asked again.
    """

    model: Any
    threat: Threat
    noise: Noise
    seed: int = 0
    purpose: str = "certify"
    shared: bool = True
    classes: int | None = None
    device: str = "cpu"
    engine: str = "auto"
    batch_size: int | None = None
    dtype: torch.dtype | None = None
    draws: str = "auto"
    audit: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.threat, Threat):
            raise InputError(
                f"The threat must be a threat such as Row, AllPairs, Pairs or Bits, not {type(self.threat).__name__}."
            )
        if not isinstance(self.noise, Noise):
            raise InputError(
                f"The noise must be a noise such as Flip or AddDelete, not {type(self.noise).__name__}."
            )
        if self.engine not in ENGINES:
            raise InputError(f"engine must be one of {', '.join(ENGINES)}, not {self.engine!r}.")
        if self.batch_size is not None and (not isinstance(self.batch_size, int) or self.batch_size < 1):
            raise InputError(f"batch_size must be a whole number from 1 up, not {self.batch_size!r}.")
        if self.classes is not None and (not isinstance(self.classes, int) or self.classes < 2):
            raise InputError(f"classes must be a whole number from 2 up, not {self.classes!r}.")
        if self.draws not in DRAWS:
            raise InputError(f"draws must be one of {', '.join(DRAWS)}, not {self.draws!r}.")
        if isinstance(self.audit, bool) or not isinstance(self.audit, int) or not 0 <= self.audit <= MOST:
            raise InputError(f"audit must be a whole number from 0 to {MOST:,}, not {self.audit!r}.")
        object.__setattr__(self, "noise", self.threat.takes(self.noise))
        object.__setattr__(self, "model", self.threat.asks(self.model))
        if self.noise.drawing == "seats":  # how many seats there are is the target's own affair
            object.__setattr__(self, "shared", False)
        if self.draws == "sparse" and not (self._one_graph_for_all or self._rows_for_all):
            raise InputError(
                "Sparse draws are for Row and AllPairs(data, nodes) with shared noise; use draws='dense'."
            )
        _ = self.stream

    @property
    def _one_graph_for_all(self) -> bool:
        return self.threat.whole_view() is not None and self.shared

    @property
    def _rows_for_all(self) -> bool:
        return self.threat.kind in ROWS and self.shared and self.noise.drawing == "entries"

    @property
    def sparse(self) -> bool:
        """Whether whole graphs are drawn by the entries that change."""
        cheap = self._one_graph_for_all and self.noise.p_add < SPARSE_BELOW
        return self._one_graph_for_all and (self.draws == "sparse" or (self.draws == "auto" and cheap))

    @property
    def few(self) -> bool:
        """Whether rows are drawn by the entries that change."""
        if not self._rows_for_all or self.draws == "dense":
            return False
        large = self.threat.drawn(0) >= FEW_ABOVE
        return self.draws == "sparse" or (large and self.noise.p_add < FEW_BELOW)

    @property
    def apart(self) -> bool:
        """Whether each target has a row of its own in which no zero flips, so that few noisy rows may be different ones."""
        return self.threat.kind == "row" and not self.shared and self.noise.only_hides

    @property
    def stream_name(self) -> str:
        """Which stream's words decide the votes; votes of different streams never add."""
        return SPARSE if self.sparse else self.stream.name

    @property
    def stream(self) -> Stream:
        """The source of all noise."""
        if self.few:
            return FewStream(self.seed, self.purpose)
        return DRAWINGS[self.noise.drawing](self.seed, self.purpose, self.threat)

    def flips(
        self, start: int, stop: int, entries: int, key: int | None, noise: Noise | None = None
    ) -> tuple[Tensor, Tensor]:
        """Two bool[samples, entries] on its device: whether an entry flips if it is 0, and if it is 1; of `noise`, if given."""
        return self.stream.flips(start, stop, entries, noise or self.noise, target=key, device=self.device)

    def key_of(self, target: int) -> int | None:
        """The stream's target key for the target at this position: None where noise is shared."""
        return None if self.shared else int(self.threat.targets[target])
