"""Training of graph classifiers, on clean graphs or with fresh noise on every pair of nodes at every step."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data

from unswayed.datasets import Dataset, Split
from unswayed.models.training.keeping import Best, Progress
from unswayed.models.training.stepping import descend
from unswayed.sampling.stream import Stream
from unswayed.theory.noise import Noise

VALIDATE_FROM = 2**33  # sample numbers that no training step reaches


@dataclass(frozen=True)
class GraphSettings:
    """How long and how hard to train a graph classifier. Chosen on validation graphs."""

    steps: int = 1000
    batch: int = 32
    lr: float = 0.01
    weight_decay: float = 1e-4
    check_every: int = 100
    checks: int = 16  # noisy copies asked of each validation graph


CLEAN = GraphSettings(steps=600, lr=0.005, check_every=20)


def ragged(first: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """(owner, position) of the runs first[i], ..., first[i] + count[i] - 1, one after the other.

    >>> ragged(torch.tensor([5, 0]), torch.tensor([2, 1]))
    (tensor([0, 0, 1]), tensor([5, 6, 0]))
    """
    owner = torch.repeat_interleave(torch.arange(len(count), device=count.device), count)
    within = torch.arange(len(owner), device=count.device) - (count.cumsum(0) - count)[owner]
    return owner, first[owner] + within


class GraphPool:
    """Many small graphs laid end to end, with every pair of nodes of each, from which (noisy) batches are cut."""

    def __init__(self, graphs: Sequence[Data], device: str) -> None:
        sizes = torch.tensor([graph.num_nodes for graph in graphs])
        # the order of AllPairs: (1,0) (2,0) (2,1) ...
        pairs = [torch.tril_indices(n, n, -1) for n in sizes.tolist()]
        self.x = torch.cat([graph.x for graph in graphs]).to(device)
        self.y = torch.cat([graph.y.view(-1) for graph in graphs]).to(device)
        self.ends = torch.cat(pairs, dim=1).to(device)
        self.edges = torch.cat([_pair_bits(*item) for item in zip(graphs, pairs, strict=True)]).to(device)
        self.nodes, self.pairs = sizes.to(device), (sizes * (sizes - 1) // 2).to(device)
        self.first_node = self.nodes.cumsum(0) - self.nodes
        self.first_pair = self.pairs.cumsum(0) - self.pairs

    def batch(
        self, chosen: Tensor, noise: Noise | None, stream: Stream, start: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(x, edge_index, batch) of the chosen graphs, the i-th under the noise of sample number start + i."""
        graph, node = ragged(self.first_node[chosen], self.nodes[chosen])
        owner, pair = ragged(self.first_pair[chosen], self.pairs[chosen])
        present = self.edges[pair]
        if noise is not None:
            longest = int(self.pairs[chosen].max())
            flips = stream.flips(start, start + len(chosen), longest, noise, device=chosen.device)
            entry = pair - self.first_pair[chosen][owner]
            added, deleted = (flip[owner, entry] for flip in flips)
            present = torch.where(present, ~deleted, added)
        offset = self.nodes[chosen].cumsum(0) - self.nodes[chosen]
        half = (self.ends[:, pair] + offset[owner])[:, present]
        return self.x[node], torch.cat([half, half.flip(0)], dim=1), graph


def _pair_bits(graph: Data, pairs: Tensor) -> Tensor:
    """bool: which of the pairs are edges of the graph."""
    dense = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.bool)
    dense[graph.edge_index[0], graph.edge_index[1]] = True
    return dense[pairs[0], pairs[1]]


def fit_graphs(
    model: nn.Module,
    dataset: Dataset,
    split: Split,
    noise: Noise | None,
    *,
    seed: int,
    device: str,
    settings: GraphSettings | None = None,
    progress: Progress | None = None,
) -> nn.Module:
    """The model after it has learnt the training graphs' labels, under fresh noise at every step unless `noise` is None.

    The weights kept are those with the highest accuracy on (noisy copies of) the validation graphs.
    """
    chosen = settings or GraphSettings()
    pool, stream, best = GraphPool(dataset.graphs, device), Stream(seed, purpose="train"), Best()
    train, val = split.train.to(device), split.val.to(device)
    optimiser = torch.optim.Adam(model.parameters(), lr=chosen.lr, weight_decay=chosen.weight_decay)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, chosen.steps, eta_min=chosen.lr / 50)
    for step in range(1, chosen.steps + 1):
        model.train()
        picked = train[torch.randint(len(train), (chosen.batch,), device=device)]
        logits = model(*pool.batch(picked, noise, stream, step * chosen.batch))
        descend(optimiser, functional.cross_entropy(logits, pool.y[picked]))
        schedule.step()
        if step % chosen.check_every == 0 or step == chosen.steps:
            best.offer(_accuracy(model, pool, val, noise, stream, chosen), model)
            if progress is not None:
                progress(step, chosen.steps, f"validation {best.score:.3f}")
    return best.restore(model)


@torch.no_grad()
def _accuracy(
    model: nn.Module,
    pool: GraphPool,
    graphs: Tensor,
    noise: Noise | None,
    stream: Stream,
    chosen: GraphSettings,
) -> float:
    model.eval()
    right, start = 0, VALIDATE_FROM
    copies = 1 if noise is None else chosen.checks
    for part in torch.split(graphs.repeat(copies), chosen.batch):
        logits = model(*pool.batch(part, noise, stream, start))
        right += int((logits.argmax(dim=1) == pool.y[part]).sum())
        start += len(part)
    return right / (len(graphs) * copies)
