"""Every family keeps the protocol: one class of checks, run on each of them."""

import copy
import json
import pickle

import numpy as np
import pytest

import unswayed as us
from unswayed.certificates import About, Certified, Words
from unswayed.errors import InputError, StoreError, Unsupported
from unswayed.theory.ballots import Linear
from unswayed.theory.records import Several

COUNTS = [[9_990, 10, 0], [9_000, 900, 100], [4_000, 3_500, 2_500], [0, 10, 9_990]]
THREAT = {"threat": {"kind": "row", "words": us.Row.words.to_dict()}, "purpose": "certify"}


def votes_of(noise=None, counts=COUNTS, **provenance):
    return us.Votes.from_counts(
        counts,
        noise or us.AddDelete(p_add=0.01, p_delete=0.4),
        entries=[40, 30, 20, 9],
        ones=[3, 4, 5, 9],
        targets=[7, 11, 13, 17],
        provenance={**THREAT, **provenance},
    )


def smoothed():
    return us.certify(votes_of())


def top():
    return us.certify_top(votes_of(), 2)


def chosen():
    noises = (us.Flip(beta=0.8), us.AddDelete(p_add=0.02, p_delete=0.5))
    return us.best_of([us.certify(votes_of(noise), alpha=0.0005) for noise in noises])


def exact():
    rng = np.random.default_rng(6)
    record = Several.of([
        Linear.of_scores(rng.integers(-9, 9, (1, 3)), rng.integers(-3, 4, (1, n, 3)), np.arange(n)[None] < ones)
        for n, ones in ((40, 3), (30, 4), (20, 5), (9, 9))
    ])  # fmt: skip
    entries, ones = np.array([40, 30, 20, 9]), np.array([3, 4, 5, 9])
    return us.Proofs.of(record, About(np.array([7, 11, 13, 17]), entries, 3, ones, THREAT["threat"]))


@pytest.fixture(params=[smoothed, top, chosen, exact])
def certs(request):
    return request.param()


def same(one, other):
    assert type(one) is type(other)
    assert json.dumps(one.to_json()) == json.dumps(other.to_json())
    assert [one.statement(i) for i in range(len(one))] == [other.statement(i) for i in range(len(other))]
    assert not one.size.flags.writeable
    assert not other.size.flags.writeable


def test_copies_are_equal_and_frozen(certs):
    for copied in (pickle.loads(pickle.dumps(certs)), copy.deepcopy(certs), copy.copy(certs)):
        same(certs, copied)


def test_files_bring_everything_back(certs, tmp_path):
    named = certs.named(targets=list("abcd"), classes=["x", "y", "z"])
    named.save(tmp_path / "certs.npz")
    same(named, us.load(tmp_path / "certs.npz"))
    assert "Node a" in us.load(tmp_path / "certs.npz").statement(0)


@pytest.mark.parametrize("where", [1, -1, slice(1, 3), [2, 0], np.array([True, False, False, True])])
def test_picking_keeps_each_target_as_it_was(certs, where):
    picked = certs[where]
    rows = np.atleast_1d(np.arange(4)[where])
    assert type(picked) is type(certs)
    assert picked.targets.tolist() == certs.targets[rows].tolist()
    for i, row in enumerate(rows):
        assert picked.statement(i) == certs.statement(row)
    for change in ("any", "adds", "deletes"):
        assert picked.sizes(change).tolist() == certs.sizes(change)[rows].tolist()
    assert np.array_equal(picked.grid(3, 3), certs.grid(3, 3)[rows])


def test_iteration_gives_one_target_at_a_time(certs):
    assert [len(one) for one in certs] == [1] * 4
    assert [int(one.size[0]) for one in certs] == certs.size.tolist()
    with pytest.raises(IndexError):
        certs[4]
    with pytest.raises(InputError):
        certs["first"]


def test_sizes_are_those_of_the_grid_and_only_of_attacks_that_exist(certs):
    """Additions alone reach exactly as far as the first column of the grid, but no further than there are zeros."""
    grid = certs.grid(45, 45)
    zeros, ones = certs.about.zeros, certs.about.ones
    adds = np.where(certs.abstained, -1, np.minimum(grid[:, :, 0].sum(axis=1) - 1, zeros))
    deletes = np.where(certs.abstained, -1, np.minimum(grid[:, 0].sum(axis=1) - 1, ones))
    assert certs.sizes("adds").tolist() == adds.tolist()
    assert certs.sizes("deletes").tolist() == deletes.tolist()
    assert certs.sizes("any").tolist() == certs.size.tolist()
    assert (np.minimum(certs.size, zeros) <= certs.sizes("adds")).all()
    with pytest.raises(InputError, match="change must be"):
        certs.sizes("toggles")


@pytest.mark.parametrize("verb", [us.certify, lambda votes: us.certify_top(votes, 2)])
def test_noise_that_depends_on_the_degree_goes_the_same_way(verb):
    """With Keep the number of ones decides, and deletions are not monotone: the grid still agrees with the sizes."""
    certs = verb(votes_of(us.Keep(kept=2, seats=8)))
    grid = certs.grid(45, 9)
    assert (certs.sizes("adds") > 0).any()
    for i in np.flatnonzero(~certs.abstained):
        zeros, ones = int(certs.about.zeros[i]), int(certs.about.ones[i])
        assert certs.sizes("adds")[i] == grid[i, : zeros + 1, 0].sum() - 1
        assert certs.sizes("deletes")[i] == grid[i, 0, : ones + 1].sum() - 1
        assert (np.diff(grid[i].astype(int), axis=0) <= 0).all()


def test_every_cell_of_an_attack_within_k_is_proven(certs):
    grid = certs.grid(12, 12)
    for i, size in enumerate(certs.size):
        for a in range(min(int(certs.about.zeros[i]), 12) + 1):
            for r in range(min(int(certs.about.ones[i]), 12) + 1):
                assert grid[i, a, r] or a + r > size


def test_accuracy_and_recall_count_by_hand(certs):
    y = np.array([0, 0, 0, 1])
    for change in ("any", "adds", "deletes"):
        sizes, most = (
            certs.sizes(change),
            {"adds": certs.about.zeros, "deletes": certs.about.ones}.get(change),
        )
        for k in (0, 1, 2, 5, 60):
            # nobody deletes more than there is
            most_changes = [k] * 4 if most is None else [min(k, m) for m in most]
            right = [certs.label[i] == y[i] and sizes[i] >= most_changes[i] for i in range(4)]
            assert certs.accuracy(y, at=k, change=change) == np.mean(right)
            assert certs.recall(y, positive=0, at=[k], change=change)[0] == np.mean(right[:3])
    assert certs.recall(y, at=0) == 0
    with pytest.raises(InputError, match="No target has the label 2"):
        certs.recall(y, positive=2)
    with pytest.raises(InputError, match="labels have shape"):
        certs.accuracy([0, 1])


def test_json_frame_and_page_show_every_target(certs):
    document = json.loads(json.dumps(certs.to_json(), allow_nan=False))
    assert [row["target"] for row in document["targets"]] == ["7", "11", "13", "17"]
    assert [row["adds"] for row in document["targets"]] == certs.sizes("adds").tolist()
    assert document["confidence"] == certs.confidence
    assert certs.to_frame()["deletes"].tolist() == certs.sizes("deletes").tolist()
    assert "<table" in certs._repr_html_()
    evil = certs.named(targets=["<b>"] * 4)
    assert "<b>" not in evil._repr_html_()


def test_explanations_are_json_and_name_what_they_rest_on(certs):
    for i in range(4):
        found = certs.explanation(i)
        assert json.loads(json.dumps(found.to_json(), allow_nan=False))["size"] == certs.size[i]
        assert found.statement == certs.statement(i)
        assert sum(bar.share for bar in found.bars) == pytest.approx(1)


def test_sharing_is_refused_until_a_family_knows_it(certs):
    with pytest.raises(Unsupported):
        certs.shared(3)


def test_ceilings_are_never_passed(certs):
    assert certs.ceiling is None or certs.size.max() <= certs.ceiling


def test_picking_after_looking_does_not_sharpen_a_family():
    """The best of many, taken out and certified again as a family of one, still pay for all."""
    family = us.certify(votes_of(), family=True)
    picked = family[[0]]
    assert us.certify(picked.votes, family=True).p_top[0] == family.p_top[0]
    assert picked.level == family.level
    assert us.certify(picked[[0]].votes, family=True).p_top[0] == family.p_top[0]


def test_picking_after_looking_does_not_lower_the_doubt():
    many = us.Votes.from_counts([[1_000, 0]] * 300, us.Flip(beta=0.7), 9)
    certs = us.certify(many)
    assert certs.doubtful == 5
    assert certs[:5].doubtful == 5
    assert certs[:2].doubtful == 2


@pytest.mark.parametrize("verb", [us.certify, lambda votes: us.certify_top(votes, 2)])
def test_noise_that_may_have_trained_the_model_certifies_nothing(verb):
    with pytest.raises(InputError, match="train"):
        verb(votes_of(purpose="train"))


@pytest.mark.parametrize("verb", [us.certify, lambda votes: us.certify_top(votes, 2)])
def test_votes_drawn_for_choosing_promise_nothing(verb):
    certs = verb(votes_of(purpose="select"))
    assert certs.confidence == 0
    assert "99.9%" not in certs.statement(0)
    assert "drawn for choosing" in certs.statement(0)
    assert "99.9%" not in certs.settings()["Confidence"]
    assert certs.doubtful == len(certs)
    assert certs.to_json()["caveat"]


def test_the_published_bounds_say_how_much_less_they_hold_with():
    """Three labels: five limits at alpha/3 each, so 1 − 5/3 alpha."""
    certs = us.certify(votes_of(), bounds="paper")
    assert certs.confidence == pytest.approx(1 - 0.001 * 5 / 3)
    assert "With confidence 99.83333333%" in certs.assurance()
    assert "fixed before the votes" in certs.statement(0)
    strict = us.certify(votes_of(), alpha=0.001 * 5 / 3)
    assert certs.p_top.tolist() == pytest.approx(strict.p_top.tolist(), rel=1e-12)


def test_the_audit_is_told_wherever_the_certificate_is():
    from dataclasses import replace

    silent = us.certify(votes_of())
    audit = {"asked": 300, "agreed": 300, "ties": 0, "heard": [[0.1, 2, 3, 0, "same"]]}
    heard = us.certify(replace(votes_of(), notes={"engine": "row", "audit": audit}))
    assert "not audited" in silent.statement(0)
    assert silent.to_json()["notes"]["audit"] is None
    assert "300 agreed" in heard.statement(0)
    assert heard.to_json()["notes"] == {"engine": "row", "audit": {"asked": 300, "agreed": 300, "ties": 0}}
    assert "300 agreed" in heard.settings()["Audit"]
    assert heard.settings()["Note: engine"] == "row"


def test_unknown_threats_are_never_guessed():
    certs = us.certify(us.Votes.from_counts([[990, 10]], us.Flip(beta=0.7), 9))
    assert certs.unit == "target"
    assert Words().attack(4) == "changes up to 4 of its entries"
    assert certs.statement(0).startswith("Target 0: ")
    odd = Words.of({"kind": "odd", "words": {"unit": "row", "many": 3}})
    assert (odd.unit, odd.many) == ("row", Words().many)


def test_words_stay_grammatical():
    words = us.Row.words
    assert words.attack(1) == "adds or deletes one of the node's links"
    assert words.attack(1, "adds") == "adds one of the node's missing links"
    assert words.attack(12, "deletes") == "deletes up to 12 of the node's links"
    assert words.attack(1, "deletes") == "deletes one of the node's links"


def test_a_file_of_an_unknown_family_is_refused(tmp_path):
    certs = smoothed()
    certs.save(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = json.loads(str(arrays.pop("about")))
    for changed, words in (({"kind": "none"}, "'none'"), ({"certificates": 99}, "another version")):
        np.savez(tmp_path / "b.npz", about=np.array(json.dumps({**header, **changed})), **arrays)
        with pytest.raises(StoreError, match=words):
            us.load(tmp_path / "b.npz")
    del header["about"]
    np.savez(tmp_path / "b.npz", about=np.array(json.dumps(header)), **arrays)
    with pytest.raises(StoreError, match="not a readable"):
        us.load(tmp_path / "b.npz")


def test_impossible_certificates_are_refused():
    about = About(np.arange(2), np.array([5, 5]), classes=2)

    class Plain(Certified):
        method, confidence = "plain", None

        def grid(self, adds, deletes):
            raise NotImplementedError

        def sizes(self, change="any"):
            return self.size

    assert Plain(np.array([0, -1]), np.array([5, -1]), about).statement(0) == (
        "Target 0: proven, no change of its 5 attackable entries, however large, moves the answer off label 0. "
        "Everything but the attackable entries is taken as fixed."
    )
    for label, size in (([0, 1], [6, 0]), ([0, -1], [2, 2]), ([0], [1])):
        with pytest.raises(InputError):
            Plain(np.array(label), np.array(size), about)
    with pytest.raises(InputError, match="names"):
        About(np.arange(2), np.array([5, 5]), classes=2, target_names=("a",))


def test_large_numbers_are_written_alike():
    certs = us.certify(us.Votes.from_counts([[1000, 0]] * 1_200, us.Flip(beta=0.9), 9))
    assert repr(certs).startswith("Certificates(1,200 targets, 1,200 certified")
