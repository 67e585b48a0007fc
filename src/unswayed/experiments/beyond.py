"""Whole graphs under asymmetric noise: train, poll every test node, and keep the counts.

    python -m unswayed.experiments.beyond poll --device cuda --data DIR --out DIR      (a machine with a GPU)
    python -m unswayed.experiments.beyond report --votes DIR --out docs/results        (anywhere)

`poll` needs numpy, scipy, torch and torch_geometric alone and writes two files, votes.npz and runs.json, anew after each
training, so what was counted before an interruption is kept.
"""

import argparse
import io
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unswayed.datasets import Dataset, Split, load, split
from unswayed.files import write_atomically
from unswayed.models import build
from unswayed.models.floors import Floor, floors
from unswayed.models.training.keeping import seeded
from unswayed.models.training.teacher import soft_labels
from unswayed.models.training.view import view
from unswayed.models.training.whole import WholeSettings, fit_whole
from unswayed.polling import poll
from unswayed.sampling.threats import AllPairs
from unswayed.theory.noise import AddDelete
from unswayed.votes import Votes

COMMAND = "python -m unswayed.experiments.beyond"
# (p_add, p_delete): the more is deleted and added, the larger the attack that can be ruled out
LEVELS = {
    "cora": ((1e-3, 0.6), (1e-3, 0.8), (1e-4, 0.95), (3e-3, 0.9), (1e-2, 0.9)),
    "citeseer": ((1e-3, 0.6), (1e-3, 0.8), (1e-4, 0.95), (3e-3, 0.9), (1e-2, 0.9)),
    "pubmed": ((1e-4, 0.8), (1e-3, 0.9)),
}


@dataclass(frozen=True)
class Case:
    """One training: everything that decides the weights."""

    dataset: str
    per_class: int
    seed: int
    protocol: str = "transductive"
    steps: int = 600
    model: str = "sage"

    @property
    def noises(self) -> list[AddDelete]:
        """The levels it is trained under and polled with."""
        return [AddDelete(p_add=a, p_delete=r) for a, r in LEVELS[self.dataset]]


def cases(seeds: int, datasets: tuple[str, ...], protocols: tuple[str, ...], steps: int) -> Iterator[Case]:
    """Seeds outermost, so that an interrupted run has all settings for fewer seeds; PubMed once, with 20 labels."""
    for seed in range(seeds):
        for protocol in protocols:
            for name in datasets:
                if name == "pubmed" and (seed or protocol != protocols[0]):
                    continue
                for per_class in (20,) if name == "pubmed" else (20, 50):
                    yield Case(name, per_class, seed, protocol, steps)


def train(case: Case, dataset: Dataset, parts: Split, device: str) -> tuple[nn.Module, list[Floor]]:
    """A student of clean-graph teachers that has seen whole-graph noise of every level, and the floors beside it."""
    seen = view(dataset, parts, case.protocol).to(device)
    targets = soft_labels(seen, dataset.num_classes, seed=case.seed, device=device)
    beside = floors(dataset, parts, protocol=case.protocol, seed=case.seed, device=device, teacher=targets)
    student = build(case.model, dataset.num_features, dataset.num_classes, seed=case.seed).to(device)
    settings = WholeSettings(steps=case.steps)
    with seeded(case.seed, device):
        fit_whole(student, seen, targets, case.noises, seed=case.seed, settings=settings)
    return student, beside


def right(model: nn.Module, dataset: Dataset, parts: Split, edges: Tensor, device: str) -> float:
    """Accuracy on the test nodes of one answer on a graph with these edges."""
    with torch.no_grad():
        answer = model(dataset.graph.x.to(device), edges.to(device)).argmax(dim=1).cpu()
    return float((answer == dataset.graph.y)[parts.test].float().mean())


def run(case: Case, samples: int, device: str) -> Iterator[tuple[dict[str, Any], Votes]]:
    """Train once, then poll all test nodes at every level: a description and the votes of each."""
    dataset = load(case.dataset)
    parts = split(dataset, case.seed, test="rest", per_class=case.per_class)
    begin = time.perf_counter()
    student, beside = train(case, dataset, parts, device)
    trained = time.perf_counter() - begin
    edges = dataset.graph.edge_index
    shared = {
        **asdict(case),
        "clean_accuracy": right(student, dataset, parts, edges, device),
        "accuracy_edgeless": right(student, dataset, parts, edges[:, :0], device),
        "floor": max(beside, key=lambda floor: floor.validation).accuracy,
        "floors": {floor.name: floor.accuracy for floor in beside},
        "train_seconds": trained,
        "device": device_name(device),
    }
    for noise in case.noises:
        begin = time.perf_counter()
        votes = poll(student, AllPairs(dataset.graph, parts.test), noise, samples=samples, device=device)
        seconds = time.perf_counter() - begin
        yield {**shared, "noise": noise.to_dict(), "samples": samples, "seconds": seconds}, votes


def device_name(device: str) -> str:
    """What the work ran on, in words."""
    if torch.device(device).type == "cuda":
        return str(torch.cuda.get_device_name(torch.device(device)))
    return f"CPU, {torch.get_num_threads()} thread(s)"


def write(out: Path, runs: list[dict[str, Any]], kept: dict[str, Any]) -> None:
    """Both files, whole at every moment."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **kept)
    write_atomically(out / "votes.npz", buffer.getvalue())
    write_atomically(out / "runs.json", json.dumps({"runs": runs}, indent=1).encode())


def keep(run: dict[str, Any], votes: Votes, kept: dict[str, Any]) -> None:
    """Put the counts and what else certifying them takes beside the others."""
    key = f"{len(kept):03d}"
    kept[key] = votes.counts.astype(np.int32)
    assert votes.ones is not None
    sizes = {"entries": int(votes.entries[0]), "ones": int(votes.ones[0])}
    run.update(key=key, provenance=dict(votes.provenance), **sizes)


def poll_all(options: argparse.Namespace) -> None:
    """Every case in turn; the files are written after each."""
    if options.data:
        os.environ["UNSWAYED_DATA"] = str(options.data)
    options.out.mkdir(parents=True, exist_ok=True)
    runs: list[dict[str, Any]] = []
    kept: dict[str, Any] = {}
    begin = time.perf_counter()
    chosen = cases(options.seeds, tuple(options.datasets), tuple(options.protocols), options.steps)
    for case in chosen:
        if time.perf_counter() - begin > options.stop_after:
            print("out of time: the remaining cases are left out", flush=True)
            break
        for about, votes in run(case, options.samples, options.device):
            keep(about, votes, kept)
            runs.append(about)
            noise = f"({about['noise']['p_add']:.0e}, {about['noise']['p_delete']:.2f})"
            print(
                f"{case} {noise}: {about['seconds']:.1f} s, trained in {about['train_seconds']:.1f} s",
                flush=True,
            )
        write(options.out, runs, kept)


def parser() -> argparse.ArgumentParser:
    """The command line of this experiment."""
    top = argparse.ArgumentParser(prog=COMMAND, description=__doc__.splitlines()[0])
    verbs = top.add_subparsers(required=True)
    ask = verbs.add_parser("poll", help="train and poll; needs no more than torch and torch_geometric")
    ask.add_argument("--device", default="cpu")
    ask.add_argument("--data", type=Path, help="the folder with the benchmark datasets")
    ask.add_argument("--out", type=Path, required=True)
    ask.add_argument("--seeds", type=int, default=3)
    ask.add_argument("--samples", type=int, default=10_000)
    ask.add_argument("--steps", type=int, default=600)
    ask.add_argument("--datasets", nargs="+", default=["cora", "citeseer", "pubmed"], choices=list(LEVELS))
    ask.add_argument("--protocols", nargs="+", default=["transductive"])
    ask.add_argument("--stop-after", type=float, default=230.0, help="seconds after which no new case begins")
    ask.set_defaults(go=poll_all)
    show = verbs.add_parser("report", help="certify the counts and write tables and plots")
    show.add_argument("--votes", type=Path, required=True)
    show.add_argument("--out", type=Path, required=True)
    show.add_argument("--alpha", type=float, default=0.001)
    show.set_defaults(go=_report)
    return top


def _report(options: argparse.Namespace) -> None:
    from unswayed.experiments.beyond_report import (
        report_all,
    )  # tables and plots are not needed where votes are counted

    report_all(options.votes, options.out, options.alpha)


if __name__ == "__main__":
    chosen = parser().parse_args()
    chosen.go(chosen)
