import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import unswayed as us
from unswayed.report.advice import advice
from unswayed.report.summary import summarise
from unswayed.report.words import aim, attack, confidence, headline, reading, staying, verdict
from unswayed.rounding import percent


def threat_of(kind):
    threats = {threat.kind: threat for threat in (us.Row, us.AllPairs, us.Pairs, us.Bits)}
    return {"kind": kind, "words": threats[kind].words.to_dict()} if kind in threats else {"kind": kind}


def certify(counts, truth=None, kind="row", **about):
    votes = us.Votes.from_counts(counts, us.Flip(beta=0.7), 99, provenance={"threat": threat_of(kind)})
    return summarise(us.certify(votes), truth=truth, **about)


SURE, SPLIT = [10_000, 0], [5_000, 5_000]


def test_headline_counts_what_is_proven_and_right():
    summary = certify([SURE, SURE, SURE, SPLIT], truth=[0, 0, 1, 0])
    assert headline(summary).startswith("2 of 4 nodes provably keep their right answer")
    assert f"up to {summary.certs.size[0]} of the node's links" in headline(summary)
    assert verdict(summary).startswith("The other 2: 1 just as provably wrong, 1 without an answer.")


def test_headline_without_truth_counts_what_is_proven():
    assert headline(certify([SURE, SURE, SURE, SPLIT])).startswith("3 of 4 nodes provably keep their answer")


def test_headline_when_nothing_is_proven():
    assert headline(certify([SPLIT, SPLIT])).startswith("Nothing can be promised: no label is proven")
    assert "against a single change" in headline(certify([[5_500, 4_500]] * 2))
    assert "right answer" in headline(certify([SURE, SURE], truth=[1, 1]))


def test_a_model_that_says_the_same_to_all_is_exposed():
    half = [0, 1] * 10
    assert "tells nothing apart" in verdict(certify([SURE] * 20, truth=half))
    assert "tells nothing apart" in verdict(certify([SURE] * 20))
    assert "tells nothing apart" not in verdict(certify([SURE, [0, 10_000]] * 10, truth=half))
    assert "tells nothing apart" not in verdict(certify([SURE] * 20, truth=[0] * 20))


def test_what_was_done_is_not_advised():
    half, trained = [0, 1] * 10, "a model trained under noise"
    assert trained in verdict(certify([SURE] * 20, truth=half, settings={"Recipe": "clean"}))
    told = verdict(certify([SURE] * 20, truth=half, settings={"Recipe": "noise"}))
    assert trained not in told
    assert "Less noise, or another model, may help." in told


def test_a_headline_of_one_label_for_all_is_not_proud():
    told = headline(certify([SURE] * 20, truth=[0, 1] * 10))
    assert told.startswith("10 of 20 nodes provably keep their right answer if an attacker ")
    assert told.endswith("; but every answer is the one label 0.")
    assert "one label" in headline(certify([SURE] * 20))
    assert "one label" not in headline(certify([SURE] * 20, truth=[0] * 20))
    assert "one label" not in headline(certify([SURE, [0, 10_000]] * 10, truth=[0, 1] * 10))


@pytest.mark.parametrize("spare", [0, 4])
def test_proofs_are_not_told_to_take_less_noise_or_more_samples(spare):
    """Twenty graphs of which every group of edges says the same: at the ceiling, or below it."""

    def same(x, edge_index):
        said = torch.zeros(1, 2)
        said[0, int(spare > 0 and edge_index.shape[1] < spare)] = 1
        return said

    ring = torch.stack([torch.arange(9), (torch.arange(9) + 1) % 9])
    graph = Data(x=torch.ones(9, 1), edge_index=torch.cat([ring, ring.flip(0)], dim=1))
    proofs = us.prove(us.Hashed(same, groups=5), us.AllPairs([graph] * 20))
    for floor in (None, 0.9):
        summary = summarise(proofs, truth=[0, 1] * 10, floor=floor)
        told = verdict(summary) + advice(summary)
        assert "tells nothing apart" in told
        assert "noise" not in told
        assert "samples" not in told
        assert ("more groups; most reach K = 2" in told) == (floor is None and spare == 0)


def test_asymmetric_noise_speaks_of_deletions_where_only_they_are_proven():
    votes = us.Votes.from_counts(
        [SURE, SURE, SPLIT],
        us.AddDelete(p_add=0.00001, p_delete=0.4),
        99,
        provenance={"threat": threat_of("row")},
    )
    summary = summarise(us.certify(votes), truth=[0, 1, 0])
    assert summary.certs.size.tolist() == [0, 0, -1]
    proven = int(summary.deletes[0])
    assert proven > 1
    assert headline(summary) == (
        "1 of 3 nodes provably keeps its right answer: no attacker who only deletes up to "
        f"{proven} of the node's links can change it."
    )
    assert verdict(summary).startswith("The other 2: 1 just as provably wrong, 1 without an answer.")


def test_one_target_reads_like_one():
    assert headline(certify([SPLIT])).endswith("no label is proven for the one node.")
    assert "for the one node no answer is proven" in headline(certify([[5_500, 4_500]]))
    assert headline(certify([SURE])).startswith("1 of 1 node provably keeps its answer")


@pytest.mark.parametrize(
    ("floor", "words"),
    [
        (0.9, "more right than is proven here at any size"),
        (0.4, "the certified model is better for attacks of up to"),
    ],
)
def test_the_floor_decides_the_verdict(floor, words):
    assert words in verdict(certify([SURE, SURE, SPLIT] * 7, truth=[0] * 21, floor=floor))


def test_better_only_without_attack():
    weak = [[6_000, 4_000]] * 20
    assert "only against no change at all" in verdict(certify(weak, truth=[0] * 20, floor=0.5))


def test_no_truth_no_claim_of_accuracy():
    assert "says nothing about how many" in verdict(certify([SURE]))


@pytest.mark.parametrize(
    ("kind", "word"), [("row", "links"), ("all-pairs", "edges"), ("pairs", "pairs"), ("bits", "entries")]
)
def test_each_threat_has_its_words(kind, word):
    summary = certify([SURE], kind=kind)
    assert word in attack(summary, 3)
    assert "3" in attack(summary, 3)
    assert "one" in attack(summary, 1)


def test_unknown_threats_are_never_guessed():
    summary = certify([SURE, SURE], kind="odd")
    assert headline(summary).startswith(
        "2 of 2 targets provably keep their answer: no attacker who changes up to "
    )
    assert "of its entries can change it" in headline(summary)


def test_confidence_says_what_the_band_means():
    assert "all 10 of them hold at once" in confidence(certify([SURE] * 10))
    assert "at most 1 of the 100 is wrong" in confidence(certify([SURE] * 100))


def test_percent_never_rounds_up_to_certainty():
    assert percent(0.9999) == "99.9%"
    assert percent(1.0) == "100%"
    assert (percent(0.0), percent(0.001), percent(0.0042)) == ("0%", "0.1%", "0.5%")


def test_reading_explains_attacks_only_where_there_are_some():
    without = certify([SURE])
    found = certify([SURE], attacked=np.array([20]))
    assert "Attack found" not in dict(reading(without))
    assert "Attack found" in dict(reading(found))


def test_where_nothing_stays_flagged_precision_says_nothing():
    import unswayed as us
    from unswayed.report.summary import summarise

    votes = us.Votes.from_counts([[1_000, 0], [1_000, 0]], us.Flip(0.7), 9, classes=["ok", "fraud"])
    summary = summarise(us.certify(votes), truth=["ok", "fraud"], positive="fraud")
    assert "truly fraud is not provably flagged" in headline(summary)
    assert "at least" not in headline(summary) + staying(summary)
    assert summary.precision_shown([0, 1], 2) == ["–", "–"]
    assert summary.precision_told([0, 1]) == [None, None]
    assert "No votes could be clearer" in summary.certs.statement(0)


def flagging(floor):
    from types import SimpleNamespace

    votes = us.Votes.from_counts(
        [[0, 1_000]] * 2 + [[1_000, 0]] * 7, us.Flip(0.7), 9, classes=["ok", "fraud"]
    )
    told = SimpleNamespace(accuracy=floor, name="majority")
    return summarise(us.certify(votes), truth=["fraud"] * 3 + ["ok"] * 6, positive="fraud", floor=told)


def test_a_floor_of_one_label_is_said_to_flag_nobody():
    assert staying(flagging(6 / 9)).endswith("The model that ignores the structure (majority) flags none.")
    assert "flags none" not in staying(flagging(3 / 9))  # it flags everybody


def test_the_share_that_stays_flagged_is_that_of_the_tables():
    assert "67% are flagged without an attack, and 67% stay flagged" in staying(flagging(6 / 9))


def test_no_headline_praises_what_is_below_the_floor_by_one_kind_of_change(certs_of):
    certs, truth = certs_of(targets=30, noise=us.AddDelete(p_add=0.02, p_delete=0.4))
    told = summarise(certs, truth=truth, floor=0.999)
    change, size, _ = aim(told)
    assert told.below_floor(size, change)
    assert "whatever anybody does" in headline(told)
    assert "no attacker who" not in headline(told)


def test_what_nobody_knows_is_not_wrong():
    assert "provably wrong" not in verdict(certify([SURE] * 3, truth=[0, -1, 0]))
    told = verdict(certify([SURE, SURE, SURE, SPLIT], truth=[0, 1, -1, -1]))
    assert told.startswith(
        "The other one is just as provably wrong. Of 2 more the true label is unknown; 1 of them keeps its answer just as provably."
    )


def test_shares_are_of_those_whose_truth_is_known():
    summary = certify([SURE, SURE, SURE, SPLIT], truth=[0, 1, -1, -1])
    assert float(summary.share(0)) == 0.5
    assert headline(summary).startswith("1 of 2 nodes whose true label is known provably keeps")
    assert float(certify([SURE] * 3, truth=[-1] * 3).share(0)) == 1.0  # then it is the share certified


def test_what_is_at_least_so_much_is_cut_off():
    """Of three that may be flagged two are right: 66.67%, which is not at least 67%."""
    summary = certify([SURE, SURE, SURE, [0, 10_000]], truth=[0, 0, 1, 1], positive=0)
    assert summary.precision([0])[0] == 2 / 3
    assert "at least 66% is 0" in staying(summary)
    assert summary.precision_shown([0], 2) == ["0.66"]


def test_a_model_that_ignores_the_structure_is_said_to():
    """Graphs of 4 to 13 nodes; K is all pairs of each, and differs with the size of the graph alone."""
    graphs = [Data(x=torch.ones(n, 1), edge_index=torch.tensor([[0, 1], [1, 0]])) for n in range(4, 14)]
    silent = us.PairBallots(1, 2)
    for weight in silent.voice.parameters():
        torch.nn.init.zeros_(weight)
    proofs = us.prove(silent, us.AllPairs(graphs))
    summary = summarise(proofs, truth=proofs.label)
    assert (proofs.size == [n * (n - 1) // 2 for n in range(4, 14)]).all()
    assert "the model ignores the structure" in verdict(summary)
    assert headline(summary).startswith("10 of 10 graphs")
    assert summary.share([0, 60, 10**6]).tolist() == [1.0, 1.0, 1.0]  # beyond all there are it is the same
    wrong = summarise(proofs, truth=[1 - proofs.label[0], *proofs.label[1:]])  # of the smallest
    assert "The other one is just as provably wrong." in verdict(wrong)
    assert "ignores the structure" not in verdict(certify([SURE, SPLIT] * 5, truth=[0, 1] * 5))


def test_flags_are_spoken_of_as_attacked_one_by_one():
    """Three neighbours lose one link each, and the fraud is no longer flagged, although it withstands two changes of its own links."""
    pairs = torch.tensor([[0, 1], [0, 2], [0, 3], [1, 4], [2, 5], [3, 6], [7, 8]]).T
    known, targets, truth = [-1, -1, -1, -1, 1, 1, 1, -1, 0], [0, 7], [1, 0]

    def proved(kept):
        data = Data(edge_index=torch.cat([kept, kept.flip(0)], dim=1), num_nodes=9)
        return us.prove(us.LabelBallots(2).freeze(data, known=known), us.Row(data, targets))

    proofs = proved(pairs)
    assert (proofs.label[0], proofs.size[0]) == (1, 2)
    assert proofs.precision(truth, 1, at=1) == 1
    assert proved(pairs[:, [0, 1, 2, 6]]).label[0] == 0
    said = staying(summarise(proofs, truth=truth, positive=1))
    assert "Each node attacked by itself, of all that is flagged then at least 50% is 1." in said


def test_terms_are_explained_only_where_they_are_shown():
    bare = dict(reading(certify([SURE, SPLIT])))
    assert "Floor" not in bare
    assert "right" not in bare["Share certified at k"]
    full = dict(reading(certify([SURE, SPLIT], truth=[0, 1], floor=0.5)))
    assert "Floor" in full
    assert "right" in full["Certified accuracy at k"]


def test_what_a_model_without_links_gains_is_no_gain_from_links():
    data = Data(x=torch.eye(2)[torch.arange(20) % 2], edge_index=torch.tensor([[0, 1], [1, 0]]))
    silent = us.BallotNetwork(2, 2).freeze(data, known=[-1] * 20)
    with torch.no_grad():
        silent.label_weight.zero_()
        silent.voice_weight.zero_()
    proofs = us.prove(silent.freeze(data, known=[-1] * 20), us.Row(data, range(20)))
    told = verdict(summarise(proofs, truth=proofs.label, floor=0.85))
    assert "the model ignores the structure" in told
    assert "the certified model is better, but through features, not through links" in told
    assert "for attacks of up to" not in told
