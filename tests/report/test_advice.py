"""Base, certified, floor, what next: a result below its floor is never praised, and one sentence says what to try."""

from types import SimpleNamespace

import numpy as np
import torch
from torch_geometric.data import Data

import unswayed as us
from unswayed.report.advice import advice
from unswayed.report.alone import median_of, shown
from unswayed.report.html import render
from unswayed.report.summary import summarise
from unswayed.report.words import headline, staying, verdict
from unswayed.votes import Votes

SURE, TORN = [999, 1], [520, 480]


def summary(counts, **about):
    votes = Votes.from_counts(counts, us.Flip(beta=0.7), entries=100)
    about = {"truth": np.zeros(len(counts), int), **about}
    return summarise(us.certify(votes), **about)


def test_a_headline_below_the_floor_names_the_floor():
    proud = summary([SURE] * 30 + [TORN] * 10, floor=0.5)
    assert "no attacker who" in headline(proud)
    modest = summary([SURE] * 30 + [TORN] * 10, floor=0.9)
    assert headline(modest).startswith("30 of 40 targets provably keep their right answer if an attacker ")
    assert headline(modest).endswith(
        "a model that ignores the structure has 36 right, whatever anybody does."
    )
    assert "no attacker who" not in headline(modest)


def test_as_good_as_the_floor_is_not_praised_and_not_called_worse():
    even = summary([SURE] * 30 + [TORN] * 10, floor=0.75)
    assert headline(even).endswith("a model that ignores the structure has 30 right, whatever anybody does.")
    assert "as much right as is proven here" in verdict(even)
    assert verdict(even).endswith("so under this attack the structure brings nothing.")
    worse = verdict(summary([SURE] * 30 + [TORN] * 10, floor=0.8))
    assert "more right than is proven here" in worse
    assert worse.endswith("so under this attack the structure costs more than it brings.")
    few = verdict(summary([SURE, TORN], floor=0.5))
    assert few.endswith("2 targets are too few to compare models by.")
    assert "costs more" not in few


def test_one_answer_is_spoken_of_as_one():
    votes = Votes.from_counts([SURE, TORN], us.AddDelete(0.1, 0.6), entries=100, ones=20)
    one = summarise(us.certify(votes), truth=np.zeros(2, int), positive=0)
    assert "The right answer withstands" in verdict(one)
    assert "The other one is " in verdict(one)
    alone = summarise(us.certify(votes), truth=np.array([0, 1]), positive=1)
    assert headline(alone).startswith(
        "The one target that is truly 1 is not provably flagged, even without an attack; --precision"
    )
    held = summarise(
        us.certify(Votes.from_counts([[520, 480], [250, 750]], us.Flip(beta=0.7), entries=100)),
        truth=np.array([0, 1]),
        positive=1,
    )
    assert (
        "The one target that is truly 1 is flagged without an attack, and does not provably stay"
        in staying(held)
    )


def test_the_model_itself_stands_beside_both():
    told = summary([SURE] * 30 + [TORN] * 10, floor=0.5, base=0.95)
    assert (
        "Without smoothing and without an attack the model is right on 95%; 75% are right and proven"
        in verdict(told)
    )
    page = render(told)
    assert "the model itself, not smoothed, not attacked" in page
    assert "What next: " in page


def test_whoever_wants_flags_is_not_sent_to_a_model_that_flags_nobody():
    truth = np.array([1] * 4 + [0] * 36)
    flags = {"truth": truth, "floor": SimpleNamespace(accuracy=0.9, name="majority")}
    counts = [SURE[::-1]] * 12 + [SURE] * 28  # eight false alarms, and less right than the majority
    assert "use a model that ignores the structure (majority)" in advice(summary(counts, **flags))
    assert "ignores the structure" not in advice(summary(counts, **flags, positive=1))


def test_a_model_that_flags_nobody_is_not_sent_to_more_samples():
    truth = np.array([1] * 4 + [0] * 36)
    nobody = summary([[1000, 0]] * 40, truth=truth, positive=1)
    assert headline(nobody) == (
        "None of the 4 targets that are truly 1 is provably flagged, even without an attack; "
        "--precision trains a model that is asked to flag some."
    )
    assert "are flagged" not in staying(nobody)
    told = advice(nobody)
    assert "no target that is truly 1 is flagged here" in told
    assert "--positive 1 --precision" in told
    assert "more samples" not in told
    some = [[0, 1000], *[[1000, 0]] * 39]
    assert "more samples" in advice(summary(some, truth=truth, positive=1))


def test_where_no_change_moves_anything_no_attack_is_to_be_looked_at():
    ring = torch.tensor([[0, 1, 2], [1, 2, 0]])
    data = Data(x=torch.eye(3), edge_index=torch.cat([ring, ring.flip(0)], dim=1))
    silent = us.BallotNetwork(3, 2, voters="two-hop")
    with torch.no_grad():
        silent.label_weight.fill_(0.0)
        silent.own_weight.fill_(1.0)
    proofs = us.prove(silent.eval().freeze(data), us.Row(data, [0, 1, 2]))
    assert proofs.size.tolist() == [2, 2, 2]
    assert "no change moves any of these answers" in advice(summarise(proofs))
    ballots = us.LabelBallots(2).freeze(data, known=torch.tensor([0, 1, 1]))
    proofs = us.prove(ballots, us.Row(data, [0, 1, 2]))
    shown = advice(summarise(proofs, command="unswayed prove --dataset x", names=["a", "b c", "d"]))
    assert shown.startswith("What next: look at the weakest nodes; proved with --store FOLDER, ")
    assert "unswayed explain 'b c' --store FOLDER shows the cheapest attack on one" in shown
    for nowhere in (None, "unswayed demo"):  # which keep no store
        assert advice(summarise(proofs, command=nowhere)) == "What next: look at the weakest nodes."


def test_a_model_that_reads_no_link_is_not_said_to_lose_by_links():
    """Whatever it is right about less than the floor, it loses by features, or by chance."""
    ring = torch.tensor([list(range(20)), [*range(1, 20), 0]])
    data = Data(x=torch.eye(20), edge_index=torch.cat([ring, ring.flip(0)], dim=1))
    deaf = us.BallotNetwork(20, 2, voters="two-hop")
    with torch.no_grad():
        deaf.label_weight.fill_(0.0)
        deaf.own_weight.fill_(1.0)
    proofs = us.prove(deaf.eval().freeze(data), us.Row(data, range(20)))
    truth = proofs.label.copy()
    truth[:2] = 1 - truth[:2]
    told = summarise(proofs, truth=truth, floor=0.95)
    assert verdict(told).endswith("so links neither bring nor cost it anything.")
    assert "(--model label-ballots) or a smaller --attack-size may hear it" in advice(told)


def test_who_asks_for_flags_is_not_told_how_often_a_model_that_flags_nobody_is_right():
    truth = np.array([1] * 4 + [0] * 36)
    flags = summary([[1, 999]] * 4 + [TORN] * 6 + [SURE] * 30, truth=truth, positive=1, floor=0.9)
    assert headline(flags).startswith("4 of 4 targets that are truly 1 provably stay flagged")
    assert "costs more than it brings" not in verdict(flags)
    assert verdict(flags).endswith("how many stay flagged is another question than how many are right.")


def test_one_sentence_says_what_to_try():
    assert "use a model that ignores the structure, which" in advice(
        summary([SURE] * 6 + [TORN] * 14, floor=0.9)
    )
    assert "more targets; 10 are too few" in advice(summary([SURE] * 3 + [TORN] * 7, floor=0.9))
    assert "smoothing itself costs 20%" in advice(summary([SURE] * 30 + [[1, 999]] * 10, base=0.95))
    assert "more samples; 50% have no proven label" in advice(summary([SURE] * 5 + [TORN] * 5))
    assert "most reach K" in advice(summary([[1000, 0]] * 10))
    assert "another noise" in advice(summary([[900, 100]] * 10))


def test_who_withstands_everything_needs_no_more_samples():
    """Two entries, and unanimous votes prove both: more samples would prove nothing more."""
    votes = Votes.from_counts([[1000, 0]] * 30, us.Flip(beta=0.6), entries=2)
    told = summarise(us.certify(votes), truth=np.zeros(30, int))
    assert told.certs.size.tolist() == [2] * 30
    assert "noise closer to none" in advice(told)
    assert "more samples" in advice(summary([[1000, 0]] * 30))


def test_deletions_beyond_those_that_exist_are_not_counted_against_k():
    """Two links and K = 14: every deletion that there can be is covered, so it is no smaller number than K."""
    votes = Votes.from_counts(
        [[10_000, 0]] * 3 + [[5_050, 4_950]], us.Flip(beta=0.7), entries=[99] * 4, ones=[2, 2, 50, 2]
    )
    told = summarise(us.certify(votes), truth=np.zeros(4, int))
    assert told.certs.size.tolist() == [14, 14, 14, -1]
    assert [shown(told, "deletes", place) for place in range(4)] == ["all 2", "all 2", "14", "-"]
    assert [shown(told, "adds", place) for place in range(4)] == ["14", "14", "14", "-"]
    assert (median_of(told, "deletes"), median_of(told, "adds")) == (None, 14)
    assert median_of(told, "deletes", told.certs.about.ones == 50) == 14
    assert "14 and all" in render(told)


def test_where_a_flag_was_asked_for_the_headline_speaks_of_it():
    truth = np.array([1] * 4 + [0] * 36)
    flags = summary([[1, 999]] * 3 + [TORN] + [SURE] * 36, truth=truth, positive=1, floor=0.9)
    assert headline(flags).startswith("3 of 4 targets that are truly 1 provably stay flagged if an attacker ")
    assert verdict(flags).startswith("39 of 40 targets provably keep their right answer")
    plain = summary([[1, 999]] * 3 + [TORN] + [SURE] * 36, truth=truth, floor=0.9)
    assert headline(plain).startswith("39 of 40 targets")
    assert not verdict(plain).startswith("39 of 40 targets")
