"""What a graph says of itself by its nodes alone: any function of which nodes there are, and none of its edges."""

import hashlib

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

HALF = 12.0  # a graph of so many nodes has size 1/2 on the scale n / (n + HALF)
LEAST = 1.0  # spread that a sum is measured in at least: a kind of node that hardly ever occurs gets no loud voice
LEAST_SIZE = 0.02  # the same of sizes on that scale
READOUTS = ("linear", "mlp")


class CountsScore(nn.Module):
    """Scores of graphs from the sums of their nodes' features: the logarithm of the mean of what members hold for probable.

    Sums are measured from `centre` in units of 1/`rate`, moments of training graphs that `standardise` stores. Without features
    (`in_channels` 0) the sum is the number of nodes, on the bounded scale n / (n + HALF).
    """

    centre: Tensor
    rate: Tensor

    def __init__(
        self, in_channels: int, out_channels: int, *, hidden: int, members: int, readout: str
    ) -> None:
        super().__init__()
        wide = max(in_channels, 1)
        self.sized, self.readout = in_channels == 0, readout
        self.members = nn.ModuleList(_readout(readout, wide, hidden, out_channels) for _ in range(members))
        self.register_buffer("centre", torch.zeros(wide))
        self.register_buffer("rate", torch.ones(wide))

    @torch.no_grad()
    def standardise(self, sums: Tensor) -> None:
        """Store the moments of these sums, of training graphs alone."""
        values = self._scaled(sums)
        spread = values.std(dim=0, correction=0)
        self.centre.copy_(values.mean(dim=0))
        least = LEAST_SIZE if self.sized else LEAST
        self.rate.copy_(1 / torch.where(spread > 0, spread, 1.0).clamp(min=least))

    def standard(self, sums: Tensor) -> Tensor:
        """[graphs, wide]: the sums as members read them."""
        return (self._scaled(sums) - self.centre) * self.rate

    def each(self, standard: Tensor) -> Tensor:
        """[members, graphs, C]: how probable each member holds each class for, as logarithms."""
        return torch.stack([member(standard) for member in self.members]).log_softmax(dim=-1)

    def forward(self, standard: Tensor) -> Tensor:
        """[graphs, C]: the logarithm of the members' mean."""
        said = self.each(standard)
        return said.logsumexp(dim=0) - float(np.log(len(said)))

    def _scaled(self, sums: Tensor) -> Tensor:
        return sums / (sums + HALF) if self.sized else sums


def node_keys(kind: Tensor, owner: Tensor, graphs: int) -> npt.NDArray[np.uint8]:
    """uint8[graphs, 32]: sha256 of which kinds of nodes each graph has, and how many of each; their order has no part in it."""
    order = np.lexsort((kind.cpu().numpy(), owner.cpu().numpy()))
    sizes = np.bincount(owner.cpu().numpy(), minlength=graphs)
    parts = np.split(kind.cpu().numpy().astype("<i8")[order], np.cumsum(sizes)[:-1])
    digests = b"".join(hashlib.sha256(part.tobytes()).digest() for part in parts)
    return np.frombuffer(digests, dtype=np.uint8).reshape(graphs, 32)


def _readout(name: str, wide: int, hidden: int, out: int) -> nn.Module:
    if name == "linear":
        return nn.Linear(wide, out)
    return nn.Sequential(nn.Linear(wide, hidden), nn.ReLU(), nn.Linear(hidden, out))
