"""A network whose ballots were shaped by links of some nodes serves all others, and those who arrive."""

import pytest
import torch

import unswayed as us
from unswayed.ballots.links import Links
from unswayed.datasets import split
from unswayed.datasets.made import block_model
from unswayed.errors import UnsoundModel
from unswayed.models.training.classroom import presumed_labels


@pytest.fixture(scope="module")
def parts():
    dataset = block_model()
    return dataset, split(dataset, 0, test=60)


@pytest.fixture(scope="module")
def network(parts):
    """Labels are presumed on the graph without any link of the nodes to be asked about."""
    dataset, chosen = parts
    trusted = Links.of(dataset.graph).without(chosen.test)
    known = torch.full_like(dataset.labels, -1)
    known[chosen.train] = dataset.labels[chosen.train]
    presumed = presumed_labels(known, trusted, us.LabelBallots(dataset.num_classes))
    shaped = torch.bincount(trusted.target, minlength=trusted.nodes) > 0
    return us.LabelBallots(dataset.num_classes).freeze(dataset.graph, known=presumed).keep(seen=shaped)


def test_nodes_that_have_shaped_nothing_are_served(parts, network, tmp_path):
    dataset, chosen = parts
    service = us.Smoothed(network, None, dataset.graph)
    asked = chosen.test[[5, 2, 40]]
    alone = us.prove(network, us.Row(dataset.graph, asked))
    served = service.certify(asked)
    assert served.targets.tolist() == asked.tolist()
    assert (served.label.tolist(), served.size.tolist()) == (alone.label.tolist(), alone.size.tolist())
    assert service.audit() == {"asked": 60, "agreed": 60, "ties": 0}
    service.save(tmp_path / "service")
    again = us.Smoothed.load(tmp_path / "service", network)
    assert again.certify(asked).size.tolist() == alone.size.tolist()
    neighbours = chosen.test[:4].tolist()
    arrives = service.arriving(dataset.graph.x[:1], [neighbours])
    direct = us.prove(network, us.Row.new(dataset.graph, dataset.graph.x[:1], [neighbours]))
    assert service.certify(arrives).size.tolist() == direct.size.tolist()


def test_others_are_refused_alone_and_among_those_that_are_served(parts, network):
    dataset, chosen = parts
    service = us.Smoothed(network, None, dataset.graph)
    for nodes in (chosen.train[:1], torch.cat([chosen.test[:3], chosen.train[:1]])):
        with pytest.raises(
            UnsoundModel, match=f"1 of the targets, the first of them node {int(chosen.train[0])}"
        ):
            service.certify(nodes)
        with pytest.raises(UnsoundModel, match="shaped by links"):
            service.predict(nodes)


def test_a_service_that_could_answer_nobody_is_not_made(parts, network):
    dataset, _ = parts
    everyone = torch.ones(len(dataset.labels), dtype=torch.bool)
    nobody = (
        us.LabelBallots(dataset.num_classes).freeze(dataset.graph, known=dataset.labels).keep(seen=everyone)
    )
    with pytest.raises(UnsoundModel, match="shaped by links of 300 of the targets"):
        us.Smoothed(nobody, None, dataset.graph)
