from types import SimpleNamespace

import numpy as np
import pytest

import unswayed as us

CLASSES, NODES = 4, 300


THREATS = {threat.kind: threat for threat in (us.Row, us.AllPairs, us.Pairs, us.Bits)}


def threat_of(kind):
    """How a threat of this kind describes itself; an unknown one has no words."""
    return {"kind": kind, **({"words": THREATS[kind].words.to_dict()} if kind in THREATS else {})}


def make_certs(targets=40, noise=None, seed=0, kind="row", samples=2_000, **options):
    """Certificates of made-up votes: some unanimous, some close, a few undecided."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(CLASSES, size=targets)
    winner = np.where(rng.random(targets) < 0.8, truth, rng.integers(CLASSES, size=targets))
    share = np.clip(rng.beta(6, 0.4, size=targets), 0.3, 1)
    share[:2] = 0.3
    counts = np.empty((targets, CLASSES), int)
    for place in range(targets):
        spread = np.insert(
            rng.dirichlet(np.ones(CLASSES - 1)) * (1 - share[place]), winner[place], share[place]
        )
        counts[place] = rng.multinomial(samples, spread / spread.sum())
    numbers = np.sort(rng.choice(NODES, targets, replace=False))
    about = {"threat": threat_of(kind), "seed": seed}
    votes = us.Votes.from_counts(
        counts, noise or us.Flip(beta=0.7), NODES - 1, targets=numbers, provenance=about
    )
    return us.certify(votes, **options), truth


def make_graph(seed=0):
    rng = np.random.default_rng(seed)
    edges = rng.integers(NODES, size=(2, 600))
    both = np.concatenate([edges, edges[::-1]], axis=1)
    return SimpleNamespace(edge_index=both, num_nodes=NODES, y=rng.integers(CLASSES, size=NODES))


@pytest.fixture
def certs_of():
    return make_certs


@pytest.fixture
def certs():
    return make_certs()[0]


@pytest.fixture
def truth():
    return make_certs()[1]


@pytest.fixture
def graph():
    return make_graph()
