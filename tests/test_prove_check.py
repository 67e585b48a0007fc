"""A small version of `benchmarks/checks/prove_check.py`: every attack on small cases, asked of the model itself."""

import numpy as np
import pytest

from benchmarks.checks import prove_check as check


@pytest.mark.slow
def test_no_proof_is_refuted_by_any_attack_and_none_is_too_small():
    found = check.run(112, seed=11)
    assert {name: dict(counts) for name, counts in found.items() if check.faults({name: counts})} == {}
    exact = [counts for name, counts in found.items() if name in check.cases.EXACT]
    assert all(counts["cases"] >= 5 for counts in found.values())
    assert all(counts["can be moved"] for counts in exact)


class Boasting:
    """Proofs that claim one more than they should, or one less."""

    def __init__(self, proofs, by):
        self.proofs, self.by = proofs, by

    def __getattr__(self, name):
        return getattr(self.proofs, name)

    @property
    def size(self):
        return self.proofs.size + self.by

    def sizes(self, change="any"):
        return self.proofs.sizes(change) + self.by


@pytest.mark.parametrize(("by", "fault"), [(1, "too large"), (-1, "too small")])
def test_the_check_notices_sizes_that_are_off_by_one(by, fault):
    rng = np.random.default_rng(3)
    noticed = 0
    for _ in range(6):
        case = check.cases.node_case(rng, "labels", "row")
        wrong = check.Case(Boasting(case.proofs, by), case.present, case.ask, case.names)
        found = check.check(wrong, exact=True)
        noticed += found[fault] > 0
        assert found["witness wrong"] or case.proofs.witness(0) is None
    assert noticed
