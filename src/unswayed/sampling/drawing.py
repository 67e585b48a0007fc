"""How each kind of noise is drawn: a stream that turns it into flips of entries, pure in (seed, purpose, sample, target)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from unswayed.sampling import seats
from unswayed.sampling.sparse import NAME as SPARSE
from unswayed.sampling.sparse import SparseStream
from unswayed.sampling.stream import LANES, NAME, Stream
from unswayed.sampling.threats.base import Threat
from unswayed.theory.noise import AddDelete, Noise

CHUNK = 2**20  # words of noise at a time
ALIKE = 20  # ones up to which samples of a row are compared: their subsets are few


@dataclass(frozen=True)
class SeatStream(Stream):
    """Rows of which a few ones are kept: the flips of a target are the ones that were not drawn."""

    threat: Threat | None = None
    name: ClassVar[str] = seats.NAME

    def flips(
        self,
        start: int,
        stop: int,
        entries: int,
        noise: Noise,
        *,
        target: int | None = None,
        device: str | torch.device = "cpu",
    ) -> tuple[Tensor, Tensor]:
        """Two bool[stop - start, entries]: no zero flips; every one flips but those that were drawn."""
        if noise.drawing != "seats":
            return super().flips(start, stop, entries, noise, target=target, device=device)
        assert self.threat is not None
        assert target is not None
        options = noise.options()
        clean = self.threat.row(target)  # type: ignore[attr-defined]
        kept = seats.kept_rows(self, start, stop, clean, options["kept"], options["seats"], target=target)
        # an arrival that has joined the graph has a place, too
        kept = pad(kept, (0, entries - kept.shape[1]))
        return torch.zeros_like(kept).to(device), (~kept).to(device)


@dataclass(frozen=True)
class FewStream(Stream):
    """Rows of large graphs to which few entries are added: what is drawn follows what changes.

    An engine that knows it asks `added` and `lost` and never writes a row out; the flips are the same noise for all others.
    """

    name: ClassVar[str] = SPARSE

    def added(
        self, start: int, stop: int, entries: int, noise: Noise, device: str | torch.device = "cpu"
    ) -> tuple[Tensor, Tensor]:
        """(sample - start, entry) of the entries that flip if they are 0, by sample, then by entry."""
        return SparseStream(self).additions(start, stop, entries, noise, device=device)

    def lost(self, start: int, stop: int, entries: Tensor, noise: Noise) -> Tensor:
        """bool[stop - start, len(entries)]: whether these entries flip if they are 1."""
        return SparseStream(self).deletions(start, stop, entries, noise)

    def flips(
        self,
        start: int,
        stop: int,
        entries: int,
        noise: Noise,
        *,
        target: int | None = None,
        device: str | torch.device = "cpu",
    ) -> tuple[Tensor, Tensor]:
        """Two bool[stop - start, entries]: whether an entry flips if it is 0, and if it is 1."""
        zero = torch.zeros((stop - start, entries), dtype=torch.bool, device=device)
        zero[self.added(start, stop, entries, noise, device)] = True
        step = max(LANES, CHUNK // max(entries, 1) // LANES * LANES)
        everyone = torch.arange(entries, device=device)
        parts = [self.lost(low, min(low + step, stop), everyone, noise) for low in range(start, stop, step)]
        return zero, torch.cat(parts) if parts else zero


@dataclass(frozen=True)
class NodeStream(Stream):
    """Graphs whose nodes lose all their edges, and whose edges are lost: entries are the honest edges, then the nodes."""

    threat: Threat | None = None
    name: ClassVar[str] = f"{NAME}/nodes-1"

    def flips(
        self,
        start: int,
        stop: int,
        entries: int,
        noise: Noise,
        *,
        target: int | None = None,
        device: str | torch.device = "cpu",
    ) -> tuple[Tensor, Tensor]:
        """Two bool[stop - start, entries]: an edge flips where it, or either of its ends, is hidden; nothing is added."""
        if noise.drawing != "nodes":
            return super().flips(start, stop, entries, noise, target=target, device=device)
        graph, options = self.threat.graph, noise.options()  # type: ignore[union-attr]
        words = AddDelete(p_add=options["nodes"], p_delete=options["edges"])
        width = entries + graph.num_nodes
        hidden, lost = super().flips(start, stop, width, words, target=target, device=device)
        first, second = graph.pairs.to(device)
        nodes = hidden[:, entries:]
        gone = lost[:, :entries] | nodes[:, first] | nodes[:, second]
        return torch.zeros_like(gone), gone


def distinct(flips: tuple[Tensor, Tensor], ones: Tensor) -> tuple[tuple[Tensor, Tensor], Tensor | None]:
    """The different structures among samples in which no zero flips, and which of them each sample is.

    All samples, and None, where `ones` are many or few samples are alike. Asking once about equal structures is exact: the
    answer is one function of the structure.
    """
    if len(ones) > ALIKE or not len(flips[0]):
        return flips, None
    place = torch.arange(len(ones), device=ones.device)
    code = (flips[1][:, ones].long() << place).sum(dim=1)
    found, back = torch.unique(code, return_inverse=True)
    if 2 * len(found) > len(code):
        return flips, None
    one_of = torch.empty_like(found).scatter_(0, back, torch.arange(len(code), device=code.device))
    return (flips[0][one_of], flips[1][one_of]), back


#: drawing of a noise → its stream, made of seed, purpose and threat
DRAWINGS: dict[str, Callable[[int, str, Threat], Stream]] = {
    "entries": lambda seed, purpose, threat: Stream(seed, purpose),
    "seats": SeatStream,
    "nodes": NodeStream,
}
