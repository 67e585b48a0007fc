"""Sizes on a card: the duels of `theory.duels` with torch for numpy, every target's arrays on the device at once."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from unswayed.theory.ballots import check_change
from unswayed.theory.duels import WIDEST, Arrays, Duels, Lists, Voters
from unswayed.theory.electorate import Electorate
from unswayed.theory.roll import KEPT

IntArray = npt.NDArray[np.int64]

AT_ONCE = 2**25  # links looked at together
FARTHEST = 2**63 - 1


class TorchArrays(Arrays):
    """The array operations of duels in torch, on one device."""

    where = staticmethod(torch.where)
    minimum = staticmethod(torch.minimum)
    maximum = staticmethod(torch.maximum)

    def __init__(self, device: Any) -> None:
        self.device = torch.device(device)

    def arange(self, count: int) -> Tensor:
        """0 .. count - 1."""
        return torch.arange(count, device=self.device)

    def zeros(self, count: int) -> Tensor:
        """int64 zeros."""
        return torch.zeros(count, dtype=torch.int64, device=self.device)

    def join(self, *parts: Any) -> Tensor:
        """One after the other."""
        return torch.cat(parts)

    def sort(self, keys: Any) -> Tensor:
        """Ascending."""
        return torch.sort(keys).values

    def repeat(self, values: Any, times: Any) -> Tensor:
        """Each value so many times."""
        return torch.repeat_interleave(values, times)

    def cumsum(self, values: Any) -> Tensor:
        """Running sums."""
        return torch.cumsum(values, 0)

    def highest(self, values: Any) -> Tensor:
        """Running maxima."""
        return torch.cummax(values, 0).values

    def count(self, segment: Any, segments: int) -> Tensor:
        """How often each segment occurs."""
        return torch.bincount(segment, minlength=segments)

    def largest(self, values: Any, most: int) -> tuple[Tensor, Tensor]:
        """The largest values, descending, and where they are."""
        found = torch.topk(values, most, sorted=True)
        return found.values.long(), found.indices


@dataclass(frozen=True, eq=False)
class DeviceElectorate:
    """An electorate whose arrays lie on a device; `sizes` equals the electorate's own."""

    people: Electorate
    device: torch.device

    @cached_property
    def arrays(self) -> TorchArrays:
        """What computes."""
        return TorchArrays(self.device)

    @cached_property
    def parts(self) -> dict[str, Tensor]:
        """The electorate's arrays, moved once."""
        people = self.people
        named = {
            name: getattr(people, name)
            for name in ("own", "spare", "label", "start", "itself", "entries", "voter")
        }
        moved = {
            name: torch.from_numpy(np.ascontiguousarray(value)).to(self.device)
            for name, value in named.items()
        }
        moved["ballots"] = torch.from_numpy(np.ascontiguousarray(people.roll.ballots)).to(self.device)
        same = people.row is people.voter
        moved["row"] = moved["voter"] if same else torch.from_numpy(people.row).to(self.device)
        return moved

    @cached_property
    def widest(self) -> int:
        """How many targets a sorting key holds."""
        loud = self.people.roll.loudest + int(self.parts["own"].abs().max()) if len(self.people) else 0
        return max(1, WIDEST // (4 * loud + 4))

    def sizes(self, change: str = "any") -> IntArray:
        """int64[t]: the largest K such that no change of at most K entries changes the label; all entries if none ever does."""
        check_change(change)
        best = self.parts["entries"].clone()
        least = self._at_least(change)
        for place in torch.argsort(least, dim=1, stable=True).T[: self.people.classes - 1]:
            open_ = (least.gather(1, place[:, None])[:, 0] < best).nonzero()[:, 0]
            if len(open_):
                found = self._against(open_, place[open_], change, KEPT)
                best[open_] = torch.minimum(best[open_], found)
        return np.asarray(best.cpu().numpy(), dtype=np.int64)

    def _at_least(self, change: str) -> Tensor:
        """A quick lower bound of each rival's size, from the loudest ballots of all."""
        own, label, spare = self.parts["own"], self.parts["label"], self.parts["spare"]
        high, low = (
            torch.from_numpy(ends).to(self.device) for ends in (self.people.roll.high, self.people.roll.low)
        )
        offset = own.gather(1, label[:, None]) - own
        removed, added = high[label][:, None] - low + offset, high - low[label][:, None] - offset
        worst = {"any": torch.maximum(removed, added), "adds": added, "deletes": removed}[change]
        bound = torch.div(spare, worst.clamp(min=1), rounding_mode="floor")
        least = torch.where(worst > 0, bound, self.parts["entries"][:, None])
        return least.scatter(1, label[:, None], FARTHEST)

    def _against(self, who: Tensor, rival: Tensor, change: str, most: int) -> Tensor:
        """What these targets withstand against these rivals; lists are prolonged for those that need it."""
        links = torch.cumsum(self.parts["start"][who + 1] - self.parts["start"][who] + 1, 0)
        step = torch.maximum(links // AT_ONCE, self.arrays.arange(len(who)) // self.widest)
        cuts = torch.unique_consecutive(step, return_counts=True)[1].tolist()
        pieces = zip(who.split(cuts), rival.split(cuts), strict=True)  # type: ignore[no-untyped-call]
        found = [self._duels(one, c, most, change).sizes() for one, c in pieces]
        size, all_, short = (torch.cat(column) for column in zip(*found, strict=True))
        size = torch.where(all_, self.parts["entries"][who], size)
        if bool(short.any()):
            size[short] = self._against(who[short], rival[short], change, 16 * most)
        return size

    def _duels(self, who: Tensor, rival: Tensor, most: int, change: str) -> Duels:
        p, classes = self.parts, self.people.classes
        label = p["label"][who]
        pairs, pair = torch.unique(label * classes + rival, return_inverse=True)
        voters = Voters(p["ballots"], p["start"], p["row"], p["voter"], p["itself"])
        offset = p["own"][who, label] - p["own"][who, rival]
        lists = self._lists(pairs, most) if change != "deletes" else None
        sides, spare = (label, rival, pair), p["spare"][who, rival]
        return Duels(voters, lists, who, sides, offset, spare, self.arrays, change)

    def _lists(self, codes: Tensor, most: int) -> Lists:
        classes, voters = self.people.classes, self.people.roll.voters
        length, said = min(most, voters), self.parts["ballots"][:voters]
        pairs = [divmod(code, classes) for code in codes.tolist()]
        ends = [self.arrays.largest(said[:, rival] - said[:, label], length) for label, rival in pairs]
        return Lists.of(ends, length == voters, self.arrays)


def sizes_on(people: Electorate, device: Any, change: str = "any") -> IntArray:
    """The sizes of an electorate, computed on a device: equal to its own."""
    return DeviceElectorate(people, torch.device(device)).sizes(change)
