import unswayed as us
from unswayed.report.frontier import Point, frontier, recommend


def point(beta, *accuracy):
    return Point(us.Flip(beta=beta), accuracy, 9)


A, B, C = point(0.6, 0.5, 0.5, 0.5), point(0.8, 0.8, 0.6), point(0.9, 0.8, 0.1)


def test_the_best_at_the_wanted_size_is_recommended():
    assert recommend([A, B, C], 2) == 0
    assert recommend([A, B, C], 1) == 1


def test_ties_go_to_accuracy_without_attack():
    assert recommend([point(0.6, 0.5, 0.5), point(0.7, 0.7, 0.5)], 1) == 1


def test_where_nobody_reaches_it_nobody_is_recommended():
    assert recommend([C, B, A], 7) is None


def test_only_the_undominated_are_on_the_frontier():
    assert frontier([A, B, C], 1) == {1}
    assert frontier([A, B, C], 2) == {0, 1, 2}  # B and C tie at (0.8, 0)


def test_additions_and_deletions_may_be_wanted_apart(certs_of):
    certs, truth = certs_of(noise=us.AddDelete(p_add=0.01, p_delete=0.4))
    found = Point.of(certs.noise, certs, truth, 0, (0, 3))
    expected = (certs.grid(0, 3)[:, 0, 3] & (certs.label == truth)).mean()
    assert found.wanted(9) == found.split == expected > 0
    assert found.to_dict()["certified_accuracy_wanted"] == expected
    assert recommend([Point(certs.noise, (0.9,), 0, 0.2), Point(certs.noise, (0.5,), 0, 0.3)], 0) == 1


def test_a_point_is_the_curve_of_its_certificates(certs, truth):
    found = Point.of(certs.noise, certs, truth, 12)
    assert [found.at(size) for size in range(5)] == certs.accuracy(truth, at=range(5)).tolist()
    assert found.at(10_000) == 0
    assert str(found) == "beta 0.7"
