"""What a frozen model is held to is what it answers."""

import numpy as np
import pytest

import unswayed as us
from unswayed.ballots.fixed import SCALE

from .cases import awakened, random_graph, some_known


@pytest.mark.parametrize("voters", ["features", "two-hop"])
def test_a_proof_adds_up_the_scores_of_the_models_own_answer(voters):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        data, net = random_graph(rng, n=30), awakened(us.BallotNetwork(3, 4, voters=voters), seed)
        net.freeze(data, known=some_known(rng, 30, 4))
        nodes = rng.permutation(30)[:20]
        record = us.prove(net, us.Row(data, nodes)).record
        assert record.scores.tolist() == (net(data.x, data.edge_index)[nodes] * SCALE).long().tolist()
