"""Ensembles of small graph networks that begin with what no edge can change, and let structure add to it.

Each member reads the sum of a graph's node features, standardised by moments of the training graphs that are stored with
the weights. Without layers a member never looks at an edge.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import GINConv, global_add_pool, global_mean_pool

from unswayed.ballots.counts import HALF, LEAST, LEAST_SIZE
from unswayed.models.networks import DROPOUT

FROM, TO = 20.0, 30.0  # nodes between which a graph without features begins to be judged by its edges
WEIGHT = 3.0  # of that judgement, in logits
USUAL = 16.0  # a degree that node states of graphs without features are measured in


class Member(nn.Module):
    """A readout of the standardised sum of node features, and of the layers of a small GIN.

    `own` names the first readout: "linear" or "mlp". Readouts of layers take the sum of the nodes' states.
    """

    centre: Tensor
    rate: Tensor
    least = LEAST

    def __init__(self, num_features: int, num_classes: int, hidden: int, layers: int, own: str) -> None:
        super().__init__()
        width = max(num_features, 1)
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("rate", torch.ones(width))
        self.own = nn.Linear(width, num_classes) if own == "linear" else _perceptron(width, 64, num_classes)
        self.convolutions = nn.ModuleList(
            GINConv(
                nn.Sequential(
                    nn.Linear(width if i == 0 else hidden, hidden),
                    nn.LayerNorm(hidden),
                    nn.ReLU(),
                    nn.Linear(hidden, hidden),
                )
            )
            for i in range(layers)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(layers))
        self.readouts = self.later(hidden, layers, num_classes)

    def later(self, hidden: int, layers: int, num_classes: int) -> nn.ModuleList:
        """The readouts of the layers."""
        return nn.ModuleList(nn.Linear(hidden, num_classes) for _ in range(layers))

    def counted(self, x: Tensor, batch: Tensor | None) -> Tensor:
        """What is standardised: the sum of the node features of every graph."""
        sums: Tensor = global_add_pool(x, batch)
        return sums

    def standard(self, x: Tensor, batch: Tensor | None) -> Tensor:
        """The sums, less their mean over the training graphs, in their standard deviations."""
        return (self.counted(x, batch) - self.centre) * self.rate

    def parts(self, x: Tensor, edge_index: Tensor, batch: Tensor | None) -> list[Tensor]:
        """Logits that each learn the labels by themselves; here one, the sum of all readouts."""
        out = self.own(self.standard(x, batch))
        for index in range(len(self.convolutions)):
            x = self.norms[index](self.convolutions[index](x, edge_index)).relu()
            pooled = functional.dropout(global_add_pool(x, batch), DROPOUT, self.training)
            out = out + self.readouts[index](pooled)
        return [out]

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        """Logits of every graph."""
        return self.parts(x, edge_index, batch)[0]


class SizeMember(Member):
    """For graphs without features: a law of the number of nodes, and in large graphs what their edges say.

    A noisy copy tells the density of a small graph too badly for an answer that holds; the more pairs, the better.
    """

    least = LEAST_SIZE

    def later(self, hidden: int, layers: int, num_classes: int) -> nn.ModuleList:
        """One perceptron that sees all layers and the size together."""
        return nn.ModuleList([_perceptron(1 + layers * hidden, 32, num_classes)] if layers else [])

    def counted(self, x: Tensor, batch: Tensor | None) -> Tensor:
        """The number of nodes, on a bounded scale on which small graphs lie apart."""
        nodes = global_add_pool(torch.ones_like(x), batch)
        scaled: Tensor = nodes / (nodes + HALF)
        return scaled

    def parts(self, x: Tensor, edge_index: Tensor, batch: Tensor | None) -> list[Tensor]:
        """Logits of the size and, where there are layers, of the edges."""
        size = self.standard(x, batch)
        out = [self.own(size)]
        seen, x = [size], torch.ones_like(x) / USUAL
        for index in range(len(self.convolutions)):
            x = self.norms[index](self.convolutions[index](x, edge_index)).relu()
            seen.append(global_mean_pool(x, batch))
        return out + [readout(torch.cat(seen, dim=-1)) for readout in self.readouts]

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        """Logits of every graph: those of the edges count in graphs of more than FROM nodes."""
        parts = self.parts(x, edge_index, batch)
        if len(parts) == 1:
            return parts[0]
        heard = ((global_add_pool(torch.ones_like(x), batch) - FROM) / (TO - FROM)).clamp(0.0, 1.0)
        out: Tensor = parts[0] + WEIGHT * heard * parts[1]
        return out


class Ensemble(nn.Module):
    """The mean of the members' class probabilities. With `layers=0` it is structure-free: any perturbation is certified.

    `own` names the members' readout of the node features: "linear" or "mlp"; None is linear where there are features.
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        members: int = 5,
        hidden: int = 16,
        layers: int = 2,
        own: str | None = None,
    ) -> None:
        super().__init__()
        kind, usual = (Member, "linear") if num_features else (SizeMember, "mlp")
        self.members = nn.ModuleList(
            kind(num_features, num_classes, hidden, layers, own or usual) for _ in range(members)
        )

    @torch.no_grad()
    def standardise(self, x: Tensor, batch: Tensor) -> None:
        """Store the moments of these graphs' sums: to be called once, with training graphs alone."""
        for member in self.members:
            assert isinstance(member, Member)
            values = member.counted(x, batch)
            spread = values.std(dim=0, correction=0)
            member.centre.copy_(values.mean(dim=0))
            member.rate.copy_(1 / torch.where(spread > 0, spread, 1.0).clamp(min=member.least))

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        """Class probabilities of every graph."""
        first, *others = [functional.softmax(member(x, edge_index, batch), dim=-1) for member in self.members]
        for other in others:
            first = first + other
        return first / len(self.members)


def _perceptron(wide: int, hidden: int, out: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(wide, hidden), nn.ReLU(), nn.Linear(hidden, out))
