"""What the worst changes of a row leave of a ballot network's margins, differentiable: what certified training learns from."""

from dataclasses import dataclass

import torch
from torch import Tensor

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
        step = torch.arange(int(count.max()), device=targets.device)
        there = step < count[:, None]
        return cls(targets, torch.where(there, first[:, None] + step, 0), there)

    @classmethod
    def alike(cls, starts: Tensor, targets: Tensor) -> list["Rows"]:
        """The rows of these nodes, those of about the same length together, so that little is padded."""
        length = (starts[targets + 1] - starts[targets]).clamp(min=8).double().log2().ceil()
        return [cls.of(starts, targets[length == kind]) for kind in torch.unique(length)]

    @property
    def degree(self) -> Tensor:
        """int64[t]: how many links each target has."""
        return self.there.sum(dim=1)


def margins(own: Tensor, heard: Tensor, rows: Rows, label: Tensor, tau: float) -> Tensor:
    """[t, C]: how far the label is ahead of each class, now; 0 for the label itself.

    `own` [t, C] is what the targets say of themselves, `heard` [t, d, C] what is said over each of their links.
    """
    said = (heard * rows.there[..., None]).sum(dim=1)
    score = (tau + rows.degree)[:, None] * own + said
    return score.gather(1, label[:, None]) - score


def most_against(said: Tensor, size: int) -> Tensor:
    """[C, C, size]: the most that newcomers, of whom each says a row of `said`, say for a class less what they say for another.

    The label first, then its rival.
    """
    spoken = said.T.contiguous()
    return torch.topk(spoken - spoken[:, None], min(size, len(said)), dim=2).values


def worst_harm(
    own: Tensor, heard: Tensor, against: Tensor, rows: Rows, label: Tensor, size: int, change: str
) -> Tensor:
    """[t, C]: what the `size` most harmful changes of the row, or additions alone, take from each margin.

    A neighbour counts as a possible newcomer too, which errs against the network by what it would say twice.
    """
    lead = own.gather(1, label[:, None]) - own
    harms = [against[label] - lead[..., None]]
    if change == "any":
        for_label = heard.gather(2, label[:, None, None].expand(-1, heard.shape[1], 1))
        gain = (lead[:, None] + for_label - heard).masked_fill(~rows.there[..., None], NEVER)
        gain = gain.transpose(1, 2).contiguous()
        harms.append(torch.topk(gain, min(size, gain.shape[2]), dim=2).values)
    both = torch.cat(harms, dim=2)
    return torch.topk(both, min(size, both.shape[2]), dim=2).values.clamp(min=0).sum(dim=2)
