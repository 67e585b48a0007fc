"""Which accounts could be whitewashed by a few forged links?

A made-up marketplace: 300 accounts, some of them a fraud ring that trades mostly with itself. A graph neural network of
your own making labels each account. The question of a trust-and-safety team: for which accounts is the label proven
to stay, whatever K links of the account are forged or deleted? The weakest accounts come first, and a report for
colleagues is written.

    python examples/fraud_ring.py --samples 10000 --report fraud.html
"""

import argparse
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv
from torch_geometric.utils import stochastic_blockmodel_graph

import unswayed as us


class Detector(nn.Module):
    """Two SAGE layers: each has a weight of its own for the account itself, so forged links cannot drown it."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.first = SAGEConv(num_features, 32)
        self.second = SAGEConv(32, num_classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = self.first(x, edge_index).relu()
        return self.second(x, edge_index)


def marketplace() -> Data:
    """240 honest accounts and 60 of a fraud ring, with eight noisy facts about each."""
    y = torch.tensor([0] * 240 + [1] * 60)
    edges = stochastic_blockmodel_graph([240, 60], [[0.03, 0.01], [0.01, 0.4]])
    return Data(x=torch.randn(300, 8) + 0.4 * y[:, None], edge_index=edges, y=y)


def train(data: Data, known: Tensor, edges: Callable[[], Tensor], steps: int = 200) -> Detector:
    """A detector that learned from the known accounts, on fresh edges at every step."""
    model = Detector(data.num_features, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        logits = model(data.x, edges())
        functional.cross_entropy(logits[known], data.y[known]).backward()
        optimizer.step()
    return model.eval()


def rewired(data: Data, noise: us.Flip) -> Tensor:
    """The edges after every pair of accounts was flipped with the noise's probability."""
    adjacency = torch.zeros(data.num_nodes, data.num_nodes, dtype=torch.bool)
    adjacency[data.edge_index[0], data.edge_index[1]] = True
    flips = (torch.rand(data.num_nodes, data.num_nodes) < noise.p_add).triu(1)
    return (adjacency ^ (flips | flips.T)).nonzero().T


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--samples", type=int, default=10_000, help="noisy copies for each account")
    options.add_argument(
        "--beta", type=float, default=0.8, help="probability that a possible link stays as it is"
    )
    options.add_argument("--report", default="fraud.html", help="where the HTML report goes")
    asked = options.parse_args()

    torch.manual_seed(0)
    data = marketplace()
    known = torch.rand(data.num_nodes) < 0.5
    noise = us.Flip(beta=asked.beta)
    model = train(data, known, lambda: rewired(data, noise))
    accounts = (~known).nonzero().flatten()
    truth = data.y[accounts]

    # The floor: a model that sees no links cannot be attacked through them.
    nothing = torch.empty(2, 0, dtype=torch.long)
    blind = train(data, known, lambda: nothing)(data.x, nothing).argmax(dim=1)
    floor = float((blind[accounts] == truth).float().mean())

    votes = us.poll(model, us.Row(data, accounts), noise, samples=asked.samples)
    certs = us.certify(votes, alpha=0.001)

    print(certs)
    print(f"floor, right without looking at any link: {floor:.0%}")
    for size, share in zip([0, 1, 2, 4], certs.accuracy(truth, at=[0, 1, 2, 4]), strict=True):
        print(f"right, and proven against any {size} forged or deleted links: {share:.0%}")
    print("The weakest accounts labelled as fraud:")
    table = certs.to_frame()
    weakest = table[table.label == 1].sort_values(["size", "p_top"]).head(5)
    print(weakest[["target", "size", "p_top"]].to_string(index=False))
    names = ["honest", "fraud"]
    us.write_report(
        asked.report, certs, data=data, truth=truth, floor=floor, class_names=names, title="Fraud ring"
    )
    print(f"The report is in {asked.report}.")


if __name__ == "__main__":
    main()
