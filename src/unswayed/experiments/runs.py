"""Train, poll, keep: one folder a training, with its weights, what is known of it, and votes for each noise level.

What several trainings of one split share, the teacher's soft labels and the floor, is found once and kept beside them. Needs numpy, scipy, torch and torch_geometric alone, so it runs where nothing else is installed; certifying comes later.
"""

import json
import os
import platform
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from unswayed.datasets import Dataset, Split, load, split
from unswayed.experiments.settings import BETA, Training
from unswayed.files import write_atomically
from unswayed.models.floors import floor
from unswayed.models.training import fit, untrained
from unswayed.models.training.keeping import Progress, threads_in_words
from unswayed.models.training.stepping import diary
from unswayed.models.training.teacher import soft_labels
from unswayed.models.training.view import view
from unswayed.polling import poll
from unswayed.sampling.threats import AllPairs, Row, Threat
from unswayed.store import VOTES, load_votes
from unswayed.theory.noise import Flip
from unswayed.votes import Votes

FACTS, WEIGHTS = "facts.json", "weights.safetensors"
Say = Callable[[str], None]
Working = Callable[[str], AbstractContextManager[Progress | None]]


def silent(what: str) -> AbstractContextManager[None]:
    """Shows nothing of the work."""
    return nullcontext()


class Run:
    """One training and its polls in one folder; whatever is there already is not done again.

    `working` opens something that shows how far a training is; polls show that by themselves.
    """

    def __init__(
        self, training: Training, folder: Path, device: str = "cpu", working: Working = silent
    ) -> None:
        self.training, self.device, self.working = training, device, working
        self.folder = folder / training.key

    def complete(self, betas: tuple[float, ...], samples: int, *, command: str, say: Say) -> None:
        """Train unless trained, poll what is missing, and write down what is known."""
        self.folder.mkdir(parents=True, exist_ok=True)
        dataset = load(self.training.dataset, fetch=True)
        parts = split(dataset, self.training.seed)
        model = self._weights(dataset, parts, command, say)
        for beta in betas:
            begin = time.perf_counter()
            poll(model, _threat(dataset, parts), Flip(beta=beta), samples=samples, store=self._store(beta))
            spent = time.perf_counter() - begin
            say(f"{self.training.key}: beta {beta} polled in {spent:.1f} s")
            self._note(f"poll-{beta}", spent)

    def polled(self, betas: tuple[float, ...], samples: int) -> bool:
        """Whether all votes of these noise levels are there."""
        stores = [self._store(beta) for beta in betas]
        return all(
            (store / VOTES).exists() and load_votes(store).samples.min() >= samples for store in stores
        )

    def votes(self, beta: float) -> Votes:
        """The votes of one noise level."""
        return load_votes(self._store(beta))

    def facts(self) -> dict[str, Any]:
        """What is known of the training: accuracies, floors, truth, device, command, commit, seconds."""
        facts: dict[str, Any] = json.loads((self.folder / FACTS).read_text())
        return facts

    def _store(self, beta: float) -> Path:
        return self.folder / f"beta-{beta}"

    def _weights(self, dataset: Dataset, parts: Split, command: str, say: Say) -> nn.Module:
        from safetensors.torch import load_file, save_file

        about = self.training
        if (self.folder / FACTS).exists():
            model = untrained(about.model, dataset, about.recipe)
            model.load_state_dict(load_file(self.folder / WEIGHTS))
            return model.to(self.device).eval()
        begin = time.perf_counter()
        noise = None if about.recipe == "clean" else Flip(beta=BETA)
        with self.working("teacher"):
            teacher = self._teacher(dataset, parts) if about.recipe == "distill" else None
        with self.working("training") as progress, diary() as kept:
            model = fit(
                about.model,
                dataset,
                parts,
                recipe=about.recipe,
                noise=noise,
                protocol=about.protocol,
                seed=about.seed,
                device=self.device,
                teacher=teacher,
                progress=progress,
            )
        spent = time.perf_counter() - begin
        say(f"{about.key}: trained in {spent:.1f} s ({threads_in_words(self.device, kept)})")
        save_file(
            {name: value.contiguous() for name, value in model.state_dict().items()}, self.folder / WEIGHTS
        )
        with self.working("structure-free floor"):
            floored = self._floor(dataset, parts)
        facts = {**_facts(model, dataset, parts, about, self.device), **floored}
        self._write({**facts, "command": command, "seconds": {"train": spent}})
        return model

    def _shared(self, what: str) -> Path:
        """Where something that every training of this split and protocol shares is kept."""
        about = self.training
        return self.folder.parent / f"{what}-{about.dataset}-{about.protocol}-{about.seed}"

    def _teacher(self, dataset: Dataset, parts: Split) -> Tensor:
        """What the teacher says of every node it may see."""
        from safetensors.torch import load, save

        path = self._shared("teacher").with_suffix(".safetensors")
        if not path.exists():
            seen = view(dataset, parts, self.training.protocol).to(self.device)
            soft = soft_labels(seen, dataset.num_classes, seed=self.training.seed, device=self.device)
            write_atomically(path, save({"soft": soft.contiguous()}))
        return load(path.read_bytes())["soft"].to(self.device)

    def _floor(self, dataset: Dataset, parts: Split) -> dict[str, Any]:
        """The accuracy and the name of the best structure-free model."""
        path = self._shared("floor").with_suffix(".json")
        if not path.exists():
            about = self.training
            teacher = self._teacher(dataset, parts) if dataset.task == "node" else None
            best = floor(
                dataset,
                parts,
                protocol=about.protocol,
                seed=about.seed,
                device=self.device,
                teacher=teacher,
            )
            found = {"floor": best.accuracy, "floor_name": best.name}
            write_atomically(path, json.dumps(found).encode())
        known: dict[str, Any] = json.loads(path.read_text())
        return known

    def _note(self, what: str, seconds: float) -> None:
        """Add to the time spent; polls that only found stored votes cost next to nothing and are not noted twice."""
        facts = self.facts()
        facts["seconds"].setdefault(what, seconds)
        self._write(facts)

    def _write(self, facts: dict[str, Any]) -> None:
        write_atomically(self.folder / FACTS, json.dumps(facts, indent=1).encode())


def _threat(dataset: Dataset, parts: Split) -> Threat:
    if dataset.task == "node":
        return Row(dataset.graph, parts.test)
    return AllPairs([dataset.graphs[int(place)] for place in parts.test])


def _facts(model: nn.Module, dataset: Dataset, parts: Split, about: Training, device: str) -> dict[str, Any]:
    truth = dataset.labels[parts.test].numpy()
    return {
        **asdict(about),
        "task": dataset.task,
        "truth": truth.tolist(),
        "degree": _degrees(dataset, parts),
        "clean_accuracy": _share(answers(model, dataset, parts, device), truth),
        "accuracy_edgeless": _share(answers(model, dataset, parts, device, edges=False), truth),
        "device": device_name(device),
        "commit": commit(),
    }


@torch.no_grad()
def answers(
    model: nn.Module, dataset: Dataset, parts: Split, device: str, *, edges: bool = True
) -> npt.NDArray[np.int64]:
    """One answer for each test target, on the clean graph or on the same graph without any edge."""

    def known(edge_index: Tensor) -> Tensor:
        return (edge_index if edges else edge_index[:, :0]).to(device)

    model.eval()
    if dataset.task == "node":
        logits = model(dataset.graph.x.to(device), known(dataset.graph.edge_index))[parts.test.to(device)]
    else:
        chosen = [dataset.graphs[int(place)] for place in parts.test]
        batch = Batch.from_data_list([Data(x=graph.x, edge_index=graph.edge_index) for graph in chosen]).to(
            device
        )
        logits = model(batch.x, known(batch.edge_index), batch=batch.batch)
    labels: npt.NDArray[np.int64] = logits.argmax(dim=1).cpu().numpy()
    return labels


def _share(answered: npt.NDArray[np.int64], truth: npt.NDArray[np.int64]) -> float:
    return float((answered == truth).mean())


def _degrees(dataset: Dataset, parts: Split) -> list[int]:
    """How many edges each test node has; of a graph, how many edges altogether."""
    if dataset.task == "graph":
        return [int(dataset.graphs[int(place)].edge_index.shape[1]) // 2 for place in parts.test]
    counts = torch.bincount(dataset.graph.edge_index[0], minlength=int(dataset.graph.num_nodes or 0))
    degrees: list[int] = counts[parts.test].tolist()
    return degrees


def device_name(device: str) -> str:
    """What the work ran on, in words."""
    if torch.device(device).type == "cuda":
        return str(torch.cuda.get_device_name(torch.device(device)))
    return f"CPU ({platform.machine()}, {os.cpu_count()} cores)"


def commit() -> str:
    """The commit of the checkout this runs from; `UNSWAYED_COMMIT` says it where there is no git."""
    if named := os.environ.get("UNSWAYED_COMMIT"):
        return named
    here = Path(__file__).parent
    try:
        found = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=here, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()
