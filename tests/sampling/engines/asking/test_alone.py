"""Whatever a classifier does to what it is handed, each answer is that of one graph asked by itself."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.utils import erdos_renyi_graph

import unswayed as us
from unswayed.sampling.engines.asking.alone import Alone
from unswayed.sampling.question import Question
from unswayed.theory.noise import Flip

N, F, C = 20, 5, 3

WRITES: dict[str, Callable[[Tensor], object]] = {
    "nothing": lambda x: x,
    "in place": lambda x: x.mul_(1.5),
    "to and fro": lambda x: x.neg_(),
    "behind torch's back": lambda x: x.data.mul_(1.5),
    "through numpy": lambda x: x.numpy().__imul__(1.5),
    "its shape": lambda x: x.unsqueeze_(0),
    "rectified": lambda x: x.relu_(),
}


class Writing(nn.Module):
    """Answers, then writes to the features that it was handed."""

    def __init__(self, write: Callable[[Tensor], object]) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.layer, self.write = GCNConv(F, C), write

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out = self.layer(x, edge_index)
        self.write(x)
        return out


@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize("write", sorted(WRITES))
def test_what_one_answer_writes_the_next_does_not_read(write: str, gap: bool) -> None:
    torch.manual_seed(0)
    data = Data(x=torch.randn(N, F), edge_index=erdos_renyi_graph(N, 0.2))
    if gap:
        data.x[7, 2] = torch.nan  # numbers that are not equal to themselves are no sign of writing
    model, clean = Writing(WRITES[write]).eval(), data.x.clone()
    alone = Alone(Question(model, us.Row(data, [3, 5]), Flip(0.7)))
    together = alone.answers(range(3), (0, 1))
    for sample in range(3):
        for target in (0, 1):
            model.write = WRITES["nothing"]
            one = Alone(alone.question).answer(sample, target)
            assert torch.equal(together[sample, target].nan_to_num(), one.nan_to_num())
    assert torch.equal(data.x.nan_to_num(), clean.nan_to_num())
