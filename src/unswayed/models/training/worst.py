"""What the worst changes of a row leave of a ballot network's margins, differentiable: what certified training learns from."""

from dataclasses import dataclass

import torch
from torch import Tensor

from unswayed.ballots.models import Spoken

NEVER = -1e9  # the harm of a change that does not exist


@dataclass(frozen=True, eq=False)
class Rows:
    """The links of some targets, padded to the longest row: `place` int64[t, d] numbers links, `there` bool[t, d]."""

    targets: Tensor
    place: Tensor
    there: Tensor

    @classmethod
    def of(cls, starts: Tensor, targets: Tensor) -> "Rows":
        """The rows of these nodes; `starts` says where each node's links begin."""
        first, count = starts[targets], starts[targets + 1] - starts[targets]
        step = torch.arange(max(int(count.max()), 1), device=targets.device)
        there = step < count[:, None]
        return cls(targets, torch.where(there, first[:, None] + step, 0), there)

    @property
    def degree(self) -> Tensor:
        """int64[t]: how many links each target has."""
        return self.there.sum(dim=1)


def margins(spoken: Spoken, rows: Rows, label: Tensor, tau: float) -> Tensor:
    """[t, C]: how far the label is ahead of each class, now; 0 for the label itself."""
    own = spoken.own[rows.targets]
    said = (spoken.links[rows.place] * rows.there[..., None]).sum(dim=1)
    score = (tau + rows.degree)[:, None] * own + said
    return score.gather(1, label[:, None]) - score


def worst_harm(spoken: Spoken, rows: Rows, label: Tensor, size: int, change: str) -> Tensor:
    """[t, C]: what the `size` most harmful changes of the row, or additions alone, take from each margin.

    A neighbour counts as a possible newcomer too, which errs against the network by what it would say twice.
    """
    own = spoken.own[rows.targets]
    lead = own.gather(1, label[:, None]) - own
    said = spoken.newcomers
    against = (
        said[:, None, :] - said[:, :, None]
    )  # [n, A, c]: what a newcomer says for c, less what it says for A
    most = min(size, len(said))
    harms = [torch.topk(against, most, dim=0).values[:, label].permute(1, 2, 0) - lead[..., None]]
    if change == "any":
        heard = spoken.links[rows.place]
        for_label = heard.gather(2, label[:, None, None].expand(-1, heard.shape[1], 1))
        gain = (lead[:, None] + for_label - heard).masked_fill(~rows.there[..., None], NEVER)
        most = min(size, gain.shape[1])
        harms.append(torch.topk(gain, most, dim=1).values.permute(0, 2, 1))
    both = torch.cat(harms, dim=2)
    return torch.topk(both, min(size, both.shape[2]), dim=2).values.clamp(min=0).sum(dim=2)
