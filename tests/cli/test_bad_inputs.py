"""Whatever is wrong: one sentence on stderr, no traceback, nothing on stdout, and an exit code that says whose fault it is."""

import json

import numpy as np
import pytest

import unswayed as us
from unswayed.errors import WorldError

from .words import CERTIFY, one_sentence


def put(name, text):
    return lambda folder: (folder / name).write_text(text)


def replace(name, old, new):
    return lambda folder: (folder / name).write_text((folder / name).read_text().replace(old, new, 1))


def header_only(name):
    return lambda folder: (folder / name).write_text((folder / name).read_text().splitlines()[0] + "\n")


def save_weights(**shapes):
    def write(folder):
        import torch
        from safetensors.torch import save_file

        save_file(
            {name.replace("_", "."): torch.zeros(shape) for name, shape in shapes.items()},
            folder / "W.safetensors",
        )

    return write


def store_of(settings=None, record=None, archive=None):
    def write(folder):
        (folder / "run").mkdir()
        for name, content in (("settings.json", settings), ("run.json", record), ("votes.npz", archive)):
            if content is not None:
                (folder / "run" / name).write_bytes(content)

    return write


def votes_only(folder):
    (folder / "run").mkdir()
    us.Votes.from_counts([[9, 1]], us.Flip(beta=0.7), 5).save(folder / "run" / "votes.npz")


def nothing(folder):
    pass


# name: (what is done to the folder, the command line, a word the sentence must have)
BAD = {
    "no data named": (nothing, "certify", "--dataset"),
    "both dataset and files": (nothing, f"{CERTIFY} --dataset cora", "not both"),
    "two of three files": (nothing, "certify --edges E.csv --features X.csv", "--labels"),
    "unknown dataset": (nothing, "certify --dataset coral", "cora"),
    "missing edges file": (nothing, CERTIFY.replace("E.csv", "none.csv"), "none.csv"),
    "missing features file": (nothing, CERTIFY.replace("X.csv", "none.csv"), "none.csv"),
    "missing labels file": (nothing, CERTIFY.replace("Y.csv", "none.csv"), "none.csv"),
    "a folder as file": (lambda folder: (folder / "D.csv").mkdir(), CERTIFY.replace("E.csv", "D.csv"), "D.csv"),
    "wrong edge column": (replace("E.csv", "source", "from"), CERTIFY, "source"),
    "wrong label column": (replace("Y.csv", "label", "class"), CERTIFY, "label"),
    "no node column in features": (replace("X.csv", "node", "id"), CERTIFY, "node"),
    "no feature columns": (put("X.csv", "node\n0\n1\n"), CERTIFY, "feature"),
    "a word among the features": (replace("X.csv", "0,1,0", "0,one,0"), CERTIFY, "one"),
    "NaN features": (replace("X.csv", "0,1,0", "0,nan,0"), CERTIFY, "number"),
    "infinite features": (replace("X.csv", "0,1,0", "0,inf,0"), CERTIFY, "infinite"),
    "a node twice in features": (replace("X.csv", "\n1,", "\n0,"), CERTIFY, "twice"),
    "edge to an absent node": (replace("E.csv", "\n3,4", "\n3,99"), CERTIFY, "99"),
    "label of an absent node": (replace("Y.csv", "\n3,", "\n99,"), CERTIFY, "99"),
    "negative label": (replace("Y.csv", "3,1", "3,-1"), CERTIFY, "range"),
    "huge label": (replace("Y.csv", "3,1", "3,999999999"), CERTIFY, "range"),
    "empty label": (replace("Y.csv", "3,1", "3,"), CERTIFY, "node '3' of train has no label"),
    "one class": (put("Y.csv", "node,label\n" + "".join(f"{n},0\n" for n in range(12))), CERTIFY, "class"),
    "unknown split": (replace("Y.csv", "test", "exam"), CERTIFY, "exam"),
    "split without test": (
        lambda folder: (folder / "Y.csv").write_text((folder / "Y.csv").read_text().replace("test", "val")),
        CERTIFY,
        "test",
    ),
    "too few labels to split": (put("Y.csv", "node,label\n0,0\n1,1\n2,0\n"), CERTIFY, "split"),
    "empty edges": (header_only("E.csv"), CERTIFY, "no rows"),
    "empty graph": (header_only("X.csv"), CERTIFY, "no rows"),
    "not a CSV": (lambda folder: (folder / "E.csv").write_bytes(b"\xff\xfe\x00\x80"), CERTIFY, "E.csv"),
    "a file of zero bytes": (put("E.csv", ""), CERTIFY, "E.csv"),
    "node id absent": (nothing, f"{CERTIFY} --nodes 3,99", "99"),
    "nobody without a label": (nothing, f"{CERTIFY} --nodes unlabelled", "names none"),
    "node id negative": (nothing, f"{CERTIFY} --nodes -3", "-3"),
    "no node named": (nothing, f"{CERTIFY} --nodes ,", "no target"),
    "node twice": (nothing, f"{CERTIFY} --nodes 3,3", "twice"),
    "beta 1": (nothing, f"{CERTIFY} --beta 1", "beta"),
    "beta 0": (nothing, f"{CERTIFY} --beta 0", "beta"),
    "beta above 1": (nothing, f"{CERTIFY} --beta 1.7", "beta"),
    "beta NaN": (nothing, f"{CERTIFY} --beta nan", "beta"),
    "beta a word": (nothing, f"{CERTIFY} --beta much", "--beta"),
    "beta too near to 1": (nothing, f"{CERTIFY} --beta 0.99999999999", "beta"),
    "beta and p-add": (nothing, f"{CERTIFY} --beta 0.7 --p-add 0.1 --p-delete 0.1", "not both"),
    "p-add alone": (nothing, f"{CERTIFY} --p-add 0.1", "--p-delete"),
    "no noise at all": (nothing, f"{CERTIFY} --p-add 0 --p-delete 0", "p_delete"),
    "alpha 0": (nothing, f"{CERTIFY} --alpha 0", "alpha"),
    "alpha 1": (nothing, f"{CERTIFY} --alpha 1", "alpha"),
    "confidence given as alpha": (nothing, f"{CERTIFY} --alpha 0.95", "alpha=0.05"),
    "too few samples to prove anything": (nothing, f"{CERTIFY} --samples 5", "--samples 11"),
    "a report into no folder": (nothing, f"{CERTIFY} --report none/r.html", "none"),
    "a report that is a folder": (lambda folder: (folder / "r").mkdir(), f"{CERTIFY} --report r", "r/report.html"),
    "a stored report into no folder": (nothing, "report run --out none/r.html", "none"),
    "a proved report into no folder": (nothing, "prove --dataset karate --report none/r.html", "none"),
    "a demo into no folder": (nothing, "demo --dataset blocks --out none/r.html", "none"),
    "attacks of fewer than no entries": (nothing, "attack --dataset karate --most -1", "--most"),
    "attacks judged by too few": (nothing, "attack --dataset karate --judge-samples 3", "--judge-samples"),
    "alpha NaN": (nothing, f"{CERTIFY} --alpha nan", "alpha"),
    "no samples": (nothing, f"{CERTIFY} --samples 0", "samples"),
    "negative samples": (nothing, f"{CERTIFY} --samples -5", "samples"),
    "samples a fraction": (nothing, f"{CERTIFY} --samples 1.5", "--samples"),
    "negative seed": (nothing, f"{CERTIFY} --seed -1", "seed"),
    "batch size 0": (nothing, f"{CERTIFY} --batch-size 0", "batch-size"),
    "negative audit": (nothing, f"{CERTIFY} --audit -1", "audit"),
    "audit of millions": (nothing, f"{CERTIFY} --audit 9999999", "audit"),
    "unknown bounds": (nothing, f"{CERTIFY} --bounds loose", "loose"),
    "unknown engine": (nothing, f"{CERTIFY} --engine warp", "warp"),
    "unknown device": (nothing, f"{CERTIFY} --device toaster", "toaster"),
    "absent device": (nothing, f"{CERTIFY} --device cuda:77", "cuda:77"),
    "address without ray": (nothing, f"{CERTIFY} --address auto", "--runner ray"),
    "unknown built-in model": (nothing, CERTIFY.replace("mine.py:build", "transformer"), "transformer"),
    "no such model file": (nothing, CERTIFY.replace("mine.py", "yours.py"), "yours.py"),
    "a model file without its factory": (nothing, CERTIFY.replace("mine.py:build", "mine.py"), "mine.py:build"),
    "numbers of nodes that have names": (
        lambda folder: [
            (folder / name).write_text((folder / name).read_text().replace("\n", "\nv").removesuffix("v"))
            for name in ("X.csv", "Y.csv")
        ] + [(folder / "E.csv").write_text("source,target\nv0,v1\n")],
        f"{CERTIFY} --nodes 3,17", "v0, v1"),
    "no such factory": (nothing, CERTIFY.replace(":build", ":create"), "create"),
    "a model file with a syntax error": (put("mine.py", "def build(:\n"), CERTIFY, "mine.py"),
    "a model file that ends the program": (put("mine.py", "raise SystemExit(3)\n"), CERTIFY, "SystemExit"),
    "a file without its factory, to be proved": (nothing, "prove --dataset karate --model mine.py", "mine.py:build"),
    "fewer than no changes in all": (nothing, f"{CERTIFY} --shared -1", "--shared"),
    "a negative wanted size": (nothing, f"{CERTIFY} --want-size -1", "--want-size"),
    "a feature that no float holds": (replace("X.csv", "0,1,0", "0,1e300,0"), CERTIFY, "too large"),
    "an edge without an end": (replace("E.csv", "\n3,4", "\n3,"), CERTIFY, "without a target"),
    "attack on no store": (nothing, "attack --store none", "no store none"),
    "a factory that wants more": (nothing, CERTIFY.replace(":build", ":needy"), "secret"),
    "a factory that fails": (nothing, CERTIFY.replace(":build", ":broken"), "luck"),
    "a factory that returns no model": (nothing, CERTIFY.replace(":build", ":text"), "str"),
    "output with too few rows": (nothing, CERTIFY.replace(":build", ":short"), "shape"),
    "output of one dimension": (nothing, CERTIFY.replace(":build", ":flat"), "threshold=0 for a logit"),
    "output with too many columns": (nothing, CERTIFY.replace(":build", ":wide"), "4"),
    "a model that answers at random": (nothing, CERTIFY.replace(":build", ":random"), "differently"),
    "a model that always drops": (nothing, CERTIFY.replace(":build", ":dropping"), "differently"),
    "a model that raises": (nothing, CERTIFY.replace(":build", ":raising"), "forward"),
    "missing weights file": (nothing, f"{CERTIFY} --weights none.safetensors", "none.safetensors"),
    "weights of another format": (put("W.safetensors", "no weights"), f"{CERTIFY} --weights W.safetensors", "safetensors"),
    "weights of another shape": (save_weights(read_weight=(2, 5), read_bias=(2,)), f"{CERTIFY} --weights W.safetensors", "(2, 5)"),
    "weights that lack one": (save_weights(read_bias=(2,)), f"{CERTIFY} --weights W.safetensors", "read.weight is missing"),
    "weights with one too many": (
        save_weights(read_weight=(2, 3), read_bias=(2,), more_bias=(2,)), f"{CERTIFY} --weights W.safetensors", "more.bias"),
    "store is a file": (put("run", "x"), f"{CERTIFY} --store run", "folder"),
    "store below a file": (put("run", "x"), f"{CERTIFY} --store run/a/b", "run is a file"),
    "no features": (nothing, "certify --edges E.csv --labels Y.csv", "--features missing (where nothing is known of a node, give each the same number)"),
    "fake nodes without noise that hides": (nothing, f"{CERTIFY} --threat inject", "--hide 0.5/0.5"),
    "an unknown threat": (nothing, f"{CERTIFY} --threat rows", "'--threat': 'rows' is not one of 'row'"),
    "store of other votes": (votes_only, f"{CERTIFY} --store run", "run"),
    "no such store": (nothing, "report run", "run"),
    "an empty store": (store_of(), "report run", "settings.json"),
    "damaged settings": (store_of(settings=b"{oops"), "report run", "damaged"),
    "settings without votes": (store_of(settings=b'{"format": 2}'), "report run", "no votes"),
    "damaged votes": (store_of(settings=b'{"format": 2}', archive=b"PK\x03\x04nonsense"), "report run", "votes.npz"),
    "explain without data": (nothing, "explain 3", "--dataset"),
    "explain two nodes": (nothing, "explain 3,4 --edges E.csv --features X.csv --labels Y.csv", "one node"),
    "noise for proofs": (nothing, "explain 3 --dataset karate --model label-ballots --beta 0.7", "without noise"),
    "a network with a typo": (nothing, "frontier --dataset karate --model gnc", "no model 'gnc'"),
    "noise for label ballots": (nothing, "frontier --dataset karate --model label-ballots", "unswayed prove --model label-ballots"),
    "noise for trained ballots": (nothing, "certify --dataset karate --model ballots", "unswayed prove --model ballots"),
    "noise for a stored run": (nothing, "explain 3 --store run --beta 0.7", "as it was made: leave --beta out"),
    "fake nodes that labels repeat": (nothing, "prove --dataset karate --threat inject", "--voters features"),
    "one group": (nothing, "prove --dataset karate --model hashed:gcn --groups 1", "2 or more"),
    "explain without a node": (nothing, "explain", "NODE"),
    "frontier with words for betas": (nothing, "frontier --dataset cora --betas high,low", "high"),
    "frontier with no betas": (nothing, "frontier --dataset cora --betas ,", "no value"),
    "frontier with half a sweep": (nothing, "frontier --dataset cora --p-adds 0.1", "--p-deletes"),
    "frontier with a beta of 1": (nothing, "frontier --dataset cora --betas 0.7,1", "beta"),
    "frontier for no targets": (nothing, "frontier --dataset cora --count 0", "--count"),
    "until a negative size": (nothing, f"{CERTIFY} --until-size -1", "--until-size"),
    "until a size with bounds for one look": (nothing, f"{CERTIFY} --until-size 3 --bounds tight", "tight"),
    "frontier for fewer than no deletions": (nothing, "frontier --dataset cora --want-deletes -1", "--want-deletes"),
    "reproduce on no such device": (nothing, "reproduce figure1 --device tpu", "--device cpu"),
    "reproduce of no experiment": (nothing, "reproduce payng", "paying"),
    "reproduce with half a block": (nothing, "reproduce figure1 --samples 1500", "multiple of 1000"),
    "bench of no model": (nothing, "bench --only transformer", "gcn-mean"),
    "unknown command": (nothing, "certifye", "certifye"),
    "unknown option": (nothing, "certify --nodse 3", "--nodse"),
    "an option without its value": (nothing, "certify --dataset", "--dataset"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input(here, call, case):
    spoil, command, word = BAD[case]
    spoil(here)
    code, out, err = call(*command.split())
    assert (code, out) == (2, ""), err
    assert word in one_sentence(err)


def test_row_threat_on_graphs(call, monkeypatch):
    import torch
    from torch_geometric.data import Data

    from unswayed.cli import inputs
    from unswayed.datasets import Dataset

    graph = Data(x=torch.ones(3, 3), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0]))
    many = Dataset("toy", "graph", 3, 2, graphs=tuple(graph.clone() for _ in range(20)))
    monkeypatch.setattr(inputs, "fetch", lambda name: many)
    code, _, err = call("certify", "--dataset", "toy", "--threat", "row", "--model", "mine.py:build")
    assert code == 2
    assert "all-pairs" in one_sentence(err)


def test_there_are_at_least_forty():
    assert len(BAD) >= 40


def test_a_store_of_another_run_names_the_difference(call, own, here):
    assert call("certify", *own, "--store", "run")[0] == 0
    record = (here / "run" / "run.json").read_bytes()
    for change, word in (
        (["--beta", "0.8"], "another noise (Flip(beta=0.9), now Flip(beta=0.8))"),
        (["--nodes", "3"], "target"),
        (["--seed", "4"], "seed"),
    ):
        code, _, err = call("certify", *own, *change, "--store", "run")
        assert code == 2
        assert word in one_sentence(err)
    assert (here / "run" / "run.json").read_bytes() == record


def test_a_damaged_record_is_named(call, own, here):
    call("certify", *own, "--store", "run")
    for content in (b"{", b"[]", json.dumps({"format": 1}).encode()):
        (here / "run" / "run.json").write_bytes(content)
        code, _, err = call("report", "run")
        assert code == 2
        assert "run.json is damaged" in one_sentence(err)


def test_no_network_is_the_worlds_fault(call, monkeypatch, tmp_path):
    from unswayed.cli import inputs

    def offline(*_, fetch=False, **__):
        raise WorldError("cora could not be fetched: no network.")

    monkeypatch.setattr(inputs, "find", lambda entry: None)
    monkeypatch.setattr(inputs, "load", offline)
    code, _, err = call("certify", "--dataset", "cora")
    assert code == 1
    assert "no network" in one_sentence(err)


def test_a_crash_says_how_to_see_more(call, own, monkeypatch):
    def crash(*_, **__):
        raise KeyError("boom")

    monkeypatch.setattr("unswayed.cli.plan.poll", crash)
    code, _, err = call("certify", *own)
    assert code == 1
    assert "UNSWAYED_TRACEBACK=1" in one_sentence(err)
    monkeypatch.setenv("UNSWAYED_TRACEBACK", "1")
    with pytest.raises(KeyError):
        call("certify", *own)


def test_out_of_memory(call, own, monkeypatch):
    def greedy(*_, **__):
        raise MemoryError

    monkeypatch.setattr("unswayed.cli.plan.poll", greedy)
    code, _, err = call("certify", *own)
    assert code == 1
    assert "memory" in one_sentence(err)


def test_an_interrupt_says_that_nothing_is_lost(call, own, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("unswayed.cli.plan.poll", stop)
    code, _, err = call("certify", *own)
    assert code == 130
    assert "--store" in one_sentence(err)


def test_votes_that_are_no_votes(call, here):
    (here / "run").mkdir()
    (here / "run" / "settings.json").write_text('{"format": 2}')
    np.savez(here / "run" / "votes.npz", about=np.array("{}"))
    code, _, err = call("report", "run")
    assert code == 2
    assert "votes.npz" in one_sentence(err)


@pytest.mark.parametrize("bad", ["5", "5/", "/50", "6/5", "a/b", "5/50/7"])
def test_kept_seats_are_two_numbers(call, own, bad):
    at = own.index("--beta")
    code, _, err = call("certify", *own[:at], *own[at + 2 :], "--keep", bad)
    assert code == 2
    assert "seats" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--hide", "0.9"), "written as 0.9/0.5"),
        (("--hide", "0.9/0.5"), "not for row"),
        (("--hide", "0.9/0.5", "--keep", "2/5"), "not several of them"),
        (("--links", "2"), "--threat inject"),
        (("--threat", "inject"), "Hide"),
        (("--rivals", "labels", "--top", "1"), "--rivals all"),
    ],
)
def test_words_that_do_not_go_together_are_refused(call, own, words, said):
    at = own.index("--beta") if "--beta" in own else len(own)
    code, _, err = call("certify", *own[:at], *own[at + 2 :], *words)
    assert code == 2
    assert said in " ".join(err.split())
