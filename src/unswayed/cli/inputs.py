"""From words on a command line to a dataset, a model, a noise, a threat; whatever is wrong is said in one sentence."""

import hashlib
import importlib.util
import inspect
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from unswayed.cli.common import note
from unswayed.cli.splitting import own_split, tell_classes, tell_split
from unswayed.datasets import Dataset, Split, load, read_csv, split
from unswayed.datasets.catalog import entry
from unswayed.datasets.sources import find
from unswayed.errors import InputError, WorldError
from unswayed.sampling.beforehand import check_device
from unswayed.sampling.inputs import update_hash
from unswayed.theory.hide import Hide
from unswayed.theory.keep import Keep
from unswayed.theory.noise import AddDelete, Flip, Noise


def read_dataset(
    name: str | None,
    edges: Path | None,
    features: Path | None,
    labels: Path | None,
    seed: int,
    *,
    directed: bool = False,
    nodes: str = "test",
) -> tuple[Dataset, Split]:
    """The data and its split, for the nodes that are asked about: a benchmark by name, or the user's three files."""
    if not 0 <= seed < 2**63:
        raise InputError(f"--seed must lie between 0 and 2^63 - 1, not {seed}.")
    files = {"--edges": edges, "--features": features, "--labels": labels}
    given = [flag for flag, path in files.items() if path is not None]
    if name is not None and given:
        raise InputError(f"Give --dataset or your own files, not both ({', '.join(given)}).")
    if name is not None:
        dataset = fetch(name)
        return dataset, own_split(dataset, seed) if name == KARATE else split(dataset, seed)
    if edges is None or features is None or labels is None:
        absent = [flag for flag, path in files.items() if path is None]
        plain = " (where nothing is known of a node, give each the same number)" if features is None else ""
        raise InputError(
            f"Your own graph needs all three files; {', '.join(absent)} missing{plain}."
            if given
            else "Say what to certify: --dataset cora, or --edges, --features and --labels."
        )
    dataset, own = read_csv(edges, features, labels, directed=directed)
    dataset = replace(dataset, name=edges.name)
    tell_classes(labels, dataset)
    if own is None:
        own = own_split(dataset, seed, nodes)
        tell_split(labels, dataset, own, seed)
    return dataset, own


CONTENT = "content of the files"  # among what is said of a run


def content_of(dataset: Dataset, parts: Split) -> dict[str, str | None]:
    """A short hash of what the user's own files say; None for a benchmark, whose files are those of everybody."""
    if dataset.node_names is None:
        return {CONTENT: None}
    hashed = hashlib.sha256(repr((dataset.node_names, dataset.class_names)).encode())
    data = dataset.graph
    for name, value in (("x", data.x), ("edges", data.edge_index), ("y", data.y), *vars(parts).items()):
        update_hash(hashed, name, value)
    return {CONTENT: hashed.hexdigest()[:16]}


def fetch(name: str) -> Dataset:
    """The benchmark, downloaded (and saying so) only where this machine does not have it yet."""
    if name == KARATE:
        return karate_club()
    if find(entry(name, KARATE)) is None:
        note(f"Fetching {name}, once …")
        return load(name, fetch=True)
    return load(name)


KARATE = "karate"


def karate_club() -> Dataset:
    """Zachary's karate club, a small real graph that needs no download: 34 members, 78 friendships, 4 groups."""
    from torch_geometric.datasets import KarateClub

    data = KarateClub()[0]
    return Dataset(
        KARATE, "node", int(data.num_features), 4, data=Data(x=data.x, edge_index=data.edge_index, y=data.y)
    )


def read_noise(
    beta: float | None,
    p_add: float | None,
    p_delete: float | None,
    keep: str | None = None,
    hide: str | None = None,
) -> Noise:
    """Flip noise, asymmetric noise where its two probabilities are given, or kept seats as "5/50"."""
    if keep is not None or hide is not None:
        if (beta, p_add, p_delete) != (None, None, None) or (keep is not None and hide is not None):
            raise InputError(
                "Give --keep, or --hide, or --beta, or --p-add with --p-delete, not several of them."
            )
        return read_hidden(hide) if keep is None else read_seats(keep)  # type: ignore[arg-type]
    if p_add is None and p_delete is None:
        return _said(Flip(beta=0.7 if beta is None else beta))
    if beta is not None:
        raise InputError("Give --beta, or --p-add with --p-delete, not both.")
    if p_add is None or p_delete is None:
        raise InputError("Asymmetric noise needs both --p-add and --p-delete.")
    return AddDelete(p_add=p_add, p_delete=p_delete)


def _said(noise: Flip) -> Flip:
    """The noise; one that flips more entries than it keeps is seldom meant."""
    if noise.beta < 0.5:
        note(
            f"beta is the probability that an entry keeps its value: {noise.beta:.6g} flips most of them, and proves exactly what "
            f"{1 - noise.beta:.6g} proves for the same votes, since K(β) = K(1 − β)."
        )
    return noise


def read_seats(words: str) -> Keep:
    """Kept seats and all seats, as "5/50"."""
    kept, slash, seats = words.partition("/")
    if not (slash and kept.strip().isdecimal() and seats.strip().isdecimal()):
        raise InputError(f"Kept seats are written as 5/50 (kept of all seats), not {words!r}.")
    return Keep(int(kept), int(seats))


def read_hidden(words: str) -> Hide:
    """How probably nodes are hidden and edges lost, as "0.9/0.5"."""
    try:
        nodes, edges = map(float, words.split("/"))
    except ValueError as error:
        raise InputError(
            f"What is hidden is written as 0.9/0.5 (nodes, then edges), not {words!r}."
        ) from error
    return Hide(nodes=nodes, edges=edges)


def read_device(device: str) -> str:
    """The device, if this machine has it."""
    try:
        check_device(device)
    except InputError as error:
        raise InputError(str(error).replace("device='cpu'", "--device cpu")) from error
    return str(torch.device(device))


NO_FACTORY = "--model {0} does not say which function of that file makes the model; write {0}:build if it is called build."


def load_factory(words: str, dataset: Dataset) -> Any:
    """The classifier that `file.py:factory` returns; the factory gets num_features and num_classes if it asks."""
    if words.endswith(".py"):
        raise InputError(NO_FACTORY.format(words))
    factory = load_function(words, "--model", "a built-in name or file.py:factory")
    offered = {"num_features": dataset.num_features, "num_classes": dataset.num_classes}
    try:
        wanted = inspect.signature(factory).parameters
        greedy = any(item.kind is item.VAR_KEYWORD for item in wanted.values())
        model = factory(**{key: value for key, value in offered.items() if greedy or key in wanted})
    except (Exception, SystemExit) as error:
        raise InputError(
            f"{words} failed: {type(error).__name__}: {error}; it is given num_features and num_classes, where it has parameters of "
            "these names."
        ) from error
    if not callable(model):
        raise InputError(f"{words} returned {type(model).__name__}, not a model that can be called.")
    return model.eval() if isinstance(model, nn.Module) else model


def load_function(words: str, flag: str, takes: str = "file.py:function") -> Any:
    """The function that `file.py:function` names."""
    place, _, name = words.rpartition(":")
    path = Path(place)
    if not path.is_file():
        raise InputError(f"There is no file {place or words}; {flag} takes {takes}.")
    function = getattr(_import_file(path), name, None)
    if not callable(function):
        raise InputError(f"{place} has no function {name!r}.")
    return function


def _import_file(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # workers find the classes of the model by this name
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # a script that ends itself is no module
        raise InputError(f"{path} could not be imported: {type(error).__name__}: {error}.") from error
    return module


def load_weights(model: Any, path: Path) -> None:
    """Put the weights of a safetensors file into the model, every one of them or none."""
    from safetensors.torch import load_file

    if not isinstance(model, nn.Module):
        raise InputError("--weights needs a torch module; this model is not one.")
    if not path.is_file():
        raise InputError(f"There is no weights file {path}.")
    try:
        state = load_file(path)
    except OSError as error:
        raise WorldError(f"{path} could not be read: {error}.") from error
    except Exception as error:
        raise InputError(
            f"{path} is not a safetensors file; save weights with safetensors.torch.save_file."
        ) from error
    if (misfit := _misfit(model.state_dict(), state)) is not None:
        raise InputError(f"The weights in {path} do not fit the model: {misfit}.")
    model.load_state_dict(state)


def _misfit(own: dict[str, Tensor], given: dict[str, Tensor]) -> str | None:
    for name, value in own.items():
        if name not in given:
            return f"{name} is missing"
        if given[name].shape != value.shape:
            return f"{name} has shape {tuple(given[name].shape)} where the model has {tuple(value.shape)}"
    extra = sorted(set(given) - set(own))
    return f"the model has no {extra[0]}" if extra else None
