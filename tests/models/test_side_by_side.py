"""The mean of several networks of two layers is one wider network."""

import pytest
import torch

from unswayed.models import build
from unswayed.models.side_by_side import side_by_side


@pytest.mark.parametrize("kind", ["sage", "gcn", "gcn-mean", "mlp"])
def test_the_wider_network_says_the_mean_of_the_members(kind):
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(30, 7, generator=generator)
    edges = torch.randint(0, 30, (2, 90), generator=generator)
    members = [build(kind, 7, 4, seed=seed, hidden=5) for seed in range(3)]
    wide = build(kind, 7, 4, hidden=15)
    wide.load_state_dict(side_by_side([member.state_dict() for member in members]))
    with torch.no_grad():
        mean = torch.stack([member(x, edges) for member in members]).mean(dim=0)
        assert torch.allclose(wide(x, edges), mean, atol=1e-5)
        assert not torch.allclose(wide(x, edges), members[0](x, edges), atol=1e-2)


def test_a_network_of_other_layers_is_refused():
    with pytest.raises(ValueError, match="third"):
        side_by_side([{"third.weight": torch.ones(2, 2)}])
