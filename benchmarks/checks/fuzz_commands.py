"""Command lines and stored runs for the fuzzing run: exit code 0, or 2 with one sentence."""

import contextlib
import io
import json
import random
from pathlib import Path

from benchmarks.checks.fuzz_readers import STRANGE, dumps, mutate_bytes, mutate_json

# fmt: off
OPTIONS = [
    "--dataset", "--edges", "--features", "--labels", "--nodes", "--threat", "--model", "--weights", "--recipe", "--protocol",
    "--beta", "--p-add", "--p-delete", "--samples", "--alpha", "--bounds", "--family", "--want-size", "--seed", "--store",
    "--device", "--engine", "--runner", "--batch-size", "--no-floor", "--report", "--json", "--out", "--kind", "--attempts",
    "--most", "--help", "--version", "-o",
]
VALUES = [
    "karate", "cora", "nowhere", "test", "val", "all", "1,2", "1,1", "-1", "99", "row", "all-pairs", "gcn", "gcn-mean", "sage",
    "mlp", "gat", "no.py:f", ":", "x.py:", "clean", "noise", "transductive", "0.7", "0.5", "1", "0", "-0.1", "1.1", "nan",
    "inf", "1e-400", "10", "20", "strict", "paper", "anytime", "tight", "cpu", "cuda", "meta", "serial", "auto", "generic",
    "fast", "list",
]
# fmt: on


class CommandLines:
    """Every command with plausible and absurd arguments, in this process."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.folder, self.rng = folder, rng
        self.files = [str(folder / name) for name in ("e.csv", "absent", "dir", "w.safetensors")]
        (folder / "dir").mkdir()
        (folder / "here").mkdir()  # names without a folder end up here
        (folder / "e.csv").write_text("source,target\na,b\n")
        (folder / "w.safetensors").write_bytes(b"\x08\x00\x00\x00\x00\x00\x00\x00{}      ")

    def case(self) -> None:
        rng = self.rng
        command = rng.choice(
            ["certify", "certify", "certify", "explain", "report", "data", "attack", "nonsense"]
        )
        words = [command]
        if command in ("certify", "attack", "explain"):
            words += ["--dataset", "karate", "--samples", "20"] if rng.random() < 0.8 else ["--samples", "20"]
        if command == "attack":
            words += ["--nodes", "1", "--no-beyond", "--attempts", "1", "--judge-samples", "100"]
        for _ in range(rng.randrange(6)):
            words.append(rng.choice(OPTIONS))
            if rng.random() < 0.8:
                words.append(rng.choice([*VALUES, *VALUES, *STRANGE, *self.files]))
        self.last = [word.replace("\u0000", "") for word in words]
        with contextlib.chdir(self.folder / "here"):
            ask(self.last)


def run(words: list[str]) -> int:
    from unswayed.cli.main import main

    return main(words)


def ask(words: list[str]) -> None:
    """One command: exit code 0 or 2, and after a refusal exactly one line that says why."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = run(words)
        except SystemExit as left:
            code = int(left.code or 0)
    said = err.getvalue()
    assert code in (0, 2), f"{words} ended with {code}: {said[-300:]}"
    assert "Traceback" not in said + out.getvalue(), f"{words}: {said[-300:]}"
    if code == 2:
        assert "unswayed: " in said, f"{words} was refused without a sentence"
        assert said.strip().splitlines()[-1].startswith("unswayed: "), f"{words}: {said[-300:]}"
    elif (
        "--json" in words
        and "--help" not in words
        and "--version" not in words
        and words[0] in ("certify", "attack")
    ):
        json.loads(out.getvalue())


@contextlib.contextmanager
def quiet():
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def shortcuts() -> None:
    """Commands that get as far as a model use an untrained one: the arguments are under test, not the training."""
    from unswayed.cli import inputs, models
    from unswayed.datasets import load
    from unswayed.models import build

    def untrained(wanted):
        data = wanted.dataset
        return build(wanted.model, data.num_features, data.num_classes, task=data.task, seed=0).eval()

    # no downloads here
    inputs.fetch = lambda name: inputs.karate_club() if name == inputs.KARATE else load(name)
    models._train = untrained
    models.make_floor = lambda plan: None


class RecordFiles:
    """unswayed report on a store whose record, drawing or votes are damaged."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.folder, self.rng = folder, rng
        with quiet():
            code = run(
                [
                    "certify",
                    "--dataset",
                    "karate",
                    "--nodes",
                    "1,2",
                    "--samples",
                    "60",
                    "--no-floor",
                    "--store",
                    str(folder / "kept"),
                ]
            )
        assert code == 0
        self.files = {
            path: path.read_bytes()
            for path in (folder / "kept").iterdir()
            if path.suffix in (".json", ".npz")
        }

    def case(self) -> None:
        path = self.rng.choice(sorted(self.files))
        content = self.files[path]
        wild = path.suffix != ".json" or self.rng.random() < 0.5
        path.write_bytes(
            mutate_bytes(content, self.rng) if wild else dumps(mutate_json(json.loads(content), self.rng))
        )
        try:
            ask(["report", str(self.folder / "kept"), "--out", str(self.folder / "page.html")])
        finally:
            path.write_bytes(content)
