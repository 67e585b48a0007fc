"""The user's own graph from three files: every mistake in them is one sentence that names the file."""

import re
import warnings
import zipfile
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from unswayed.datasets.csv_text import check_size, read_table
from unswayed.datasets.loading import Dataset
from unswayed.datasets.splits import Split
from unswayed.errors import DoubtfulSetting, InputError

if TYPE_CHECKING:
    import pandas as pd

MAX_VALUES = 2**31  # numbers in the feature table
MAX_UNPACKED = 2**33  # bytes of an .npz file once unpacked
MAX_CLASSES = 10_000
PARTS = ("train", "val", "test")
MISSING = {"", "nan", "NaN"}  # no label, as tables write it
UNKNOWN = {"-1", "?", "n/a", "unknown", "unlabelled", "unlabeled"}  # as people write it
SEVERAL = 5  # nodes of one class; where no class has as many, one of a class is nothing odd
WHOLE = re.compile(r"-?(0|[1-9][0-9]*)(\.0)?")  # 01 and 1 are two names

AnyPath = str | PathLike[str]


def read_csv(
    edges: AnyPath, features: AnyPath, labels: AnyPath, *, directed: bool = False
) -> tuple[Dataset, Split | None]:
    """The graph described by three files, and its split where the labels file has a split column.

    `edges`: columns source, target. `features`: a node column, then numbers; or an .npz file, either with arrays
    `x` and (optionally) `nodes`, or a scipy sparse matrix. `labels`: columns node, label[, split], split one of train,
    val, test; an empty label is unknown. Nodes are numbered in the order of the features file. Edges are made undirected,
    unless they are `directed`, from source to target.
    """
    names, x = _features(Path(features))
    number = {name: i for i, name in enumerate(names)}
    if "" in number:  # every edge whose end is missing would lead there
        raise InputError(f"{features} has a row without a node; give it a name or drop the row.")
    if len(number) != len(names):
        raise InputError(f"{features} lists node {_repeated(names)} twice; keep one row a node.")
    edge_index = _edges(Path(edges), number)
    y, class_names, split = _labels(Path(labels), number)
    links = edge_index if directed else to_undirected(edge_index, num_nodes=len(names))
    data = Data(x=x, edge_index=links, y=y)
    classes = len(class_names)
    dataset = Dataset(
        "own", "node", x.shape[1], classes, data=data, node_names=names, class_names=class_names
    )
    return dataset, split


def _column(table: "pd.DataFrame", name: str, path: Path) -> list[str]:
    if name not in table.columns:
        seen = ", ".join(map(str, table.columns[:10]))
        raise InputError(f"{path} has no column {name!r}; its columns are {seen}.")
    return [value.strip() for value in table[name]]


def _repeated(names: "tuple[str, ...] | list[str]") -> str:
    seen: set[str] = set()
    return next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]


def _features(path: Path) -> tuple[tuple[str, ...], Tensor]:
    names, values = _npz_features(path) if path.suffix == ".npz" else _csv_features(path)
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
        raise InputError(
            f"{path} has a feature that is NaN, infinite or far too large for node {names[row]}; fill it or drop the node."
        )
    return names, torch.tensor(values)  # a copy: what pandas lends may be read-only


def _csv_features(path: Path) -> tuple[tuple[str, ...], np.ndarray]:
    import pandas as pd

    table = read_table(path)
    names = tuple(_column(table, "node", path))
    numbers = table.drop(columns="node")
    if numbers.shape[1] == 0:
        raise InputError(f"{path} has no feature columns beside 'node'.")
    for name in numbers.columns:
        column = pd.to_numeric(numbers[name], errors="coerce")
        if column.isna().any():
            row = int(np.flatnonzero(column.isna())[0])
            text = numbers[name].iloc[row]
            raise InputError(
                f"{path}, column {name!r}: {text!r} of node {names[row]} is not a number; fill what is missing, and give words a "
                "column of 0 and 1 each (pandas.get_dummies does)."
            )
    with np.errstate(over="ignore"):  # what is too large is refused by name
        return names, numbers.to_numpy(dtype=np.float32)


def _npz_features(path: Path) -> tuple[tuple[str, ...], np.ndarray]:
    check_size(path)
    try:
        with zipfile.ZipFile(path) as packed:
            if sum(item.file_size for item in packed.infolist()) > MAX_UNPACKED:
                raise InputError(f"{path} unpacks to more than {MAX_UNPACKED // 2**30} GB.")
        with np.load(path, allow_pickle=False) as archive:
            parts = {name: archive[name] for name in archive.files}
        values = _dense(parts)
    except InputError:
        raise
    except Exception as error:  # a damaged archive can fail anywhere in zip or npy reading
        raise InputError(
            f"{path} is not a readable .npz file with an array 'x' or a scipy sparse matrix."
        ) from error
    if values.ndim != 2 or not values.size:
        raise InputError(f"{path}: features must be a table of nodes by numbers.")
    names = parts.get("nodes", np.arange(len(values)))
    if len(names) != len(values):
        raise InputError(f"{path} names {len(names)} nodes but has {len(values)} rows of features.")
    return tuple(str(name) for name in names), values


def _dense(parts: dict[str, Any]) -> np.ndarray:
    if "x" in parts:
        return np.asarray(parts["x"], dtype=np.float32)
    if str(parts.get("format", np.array(b"csr")).astype(str)) != "csr":
        raise InputError(
            "A sparse feature table must be in csr form; save it with scipy.sparse.save_npz(path, x.tocsr())."
        )
    rows, columns = (int(side) for side in parts["shape"])
    if rows * columns > MAX_VALUES:
        raise InputError(
            f"A feature table of {rows} by {columns} is too large; keep the most useful columns."
        )
    # by numpy, which looks before it writes: scipy follows damaged indices out of the table
    counts, where = np.diff(parts["indptr"].astype(np.int64)), parts["indices"].astype(np.int64)
    fits = counts.shape == (rows,) and where.ndim == 1 and where.shape == parts["data"].shape
    if not fits or min(counts.min(initial=0), where.min(initial=0)) < 0 or counts.max(initial=0) > where.size:
        raise ValueError("not a csr matrix")
    if counts.sum() != where.size:
        raise ValueError("not a csr matrix")
    row = np.repeat(np.arange(rows), counts)
    values = np.zeros((rows, columns), dtype=np.float32)
    np.add.at(values, (row, where), parts["data"])
    return values


def _edges(path: Path, number: dict[str, int]) -> Tensor:
    table = read_table(path)
    ends = []
    for side in ("source", "target"):
        names = _column(table, side, path)
        unknown = next((name for name in names if name not in number), None)
        if unknown == "":
            raise InputError(f"{path} has a row without a {side}; fill it or drop the row.")
        if unknown is not None:
            raise InputError(f"{path}: {side} {unknown!r} is not a node of the features file.")
        ends.append([number[name] for name in names])
    if unread := [str(name) for name in table.columns if name not in ("source", "target")]:
        told = ", ".join(map(repr, unread))
        warnings.warn(
            f"{path}: an edge is there or not, so {told} {'is' if len(unread) == 1 else 'are'} not read; a model that reads weights gets them "
            "by --edge-attr (edge_attr= in Python).",
            DoubtfulSetting,
            stacklevel=3,
        )
    return torch.tensor(ends)


def _labels(path: Path, number: dict[str, int]) -> tuple[Tensor, tuple[str, ...], Split | None]:
    table = read_table(path)
    nodes, texts = _column(table, "node", path), _column(table, "label", path)
    unknown = next((name for name in nodes if name not in number), None)
    if unknown is not None:
        raise InputError(f"{path}: node {unknown!r} is not a node of the features file.")
    if len(set(nodes)) != len(nodes):
        raise InputError(f"{path} lists node {_repeated(nodes)} twice; keep one label a node.")
    classes, values = _classes(texts, path)
    _warn_of_misspelt(classes, values, path)
    where = torch.tensor([number[name] for name in nodes])
    y = torch.full((len(number),), -1)
    y[where] = torch.tensor(values)
    if "split" not in table.columns:
        return y, classes, None
    parts = _column(table, "split", path)
    for name, value, part in zip(nodes, values, parts, strict=True):
        if value < 0 and part in ("train", "val"):
            raise InputError(
                f"{path}: node {name!r} of {part} has no label to learn from; fill it, or leave its split empty."
            )
    return y, classes, _split(parts, where, path)


def _classes(texts: list[str], path: Path) -> tuple[tuple[str, ...], list[int]]:
    """Whole numbers (2, or 2.0 as tables write them) are class numbers from 0; anything else is a class name, numbered in sorted order.

    What is missing is unknown, −1.
    """
    told = [text for text in texts if text not in MISSING]
    if not all(map(WHOLE.fullmatch, told)):
        names = tuple(sorted(set(told)))
        number = {name: place for place, name in enumerate(names)}
    else:
        number = {text: int(text.removesuffix(".0")) for text in told}
        wrong = next((value for value in number.values() if not 0 <= value < MAX_CLASSES), None)
        if wrong is not None:
            raise InputError(
                f"{path}: label {wrong} is out of range; number classes from 0 up to {MAX_CLASSES - 1}, and leave a label empty where it is unknown."
            )
        names = tuple(map(str, range(max(number.values(), default=-1) + 1)))
    if len(names) < 2:
        seen = "one class only" if names else "no labels"
        raise InputError(f"{path} has {seen}; a classifier needs at least two classes.")
    return names, [-1 if text in MISSING else number[text] for text in texts]


def _warn_of_misspelt(names: tuple[str, ...], values: list[int], path: Path) -> None:
    """A slip of the pen makes a class of its own, which nobody would notice; so does a word for what is not known."""
    for name in names:
        if len(names) > 2 and name.casefold() in UNKNOWN:
            _doubt(
                f"{path}: {name!r} is taken for a class of its own; leave a label empty that is not known."
            )
    folded: dict[str, list[str]] = {}
    for name in names:
        folded.setdefault("".join(name.casefold().split()), []).append(name)
    alike = [same for same in folded.values() if len(same) > 1]
    for same in alike:
        told = " and ".join(map(repr, same))
        _doubt(
            f"{path}: the labels {told} differ only in case or blank space, and are classes of their own; write them alike if they are one."
        )
    counts = np.bincount([value for value in values if value >= 0], minlength=len(names))
    twins = {name for same in alike for name in same}
    alone = [name for name, number in zip(names, counts, strict=True) if number == 1 and name not in twins]
    if alone and counts.max() >= SEVERAL:
        told = ", ".join(map(repr, alone[:5])) + (", …" if len(alone) > 5 else "")
        each = "label" if len(alone) == 1 else "labels"
        _doubt(
            f"{path}: a single node has the {each} {told}; is it misspelt? If not, little can be learnt of it."
        )


def _doubt(words: str) -> None:
    warnings.warn(words, DoubtfulSetting, stacklevel=5)


def _split(parts: list[str], where: Tensor, path: Path) -> Split:
    wrong = next((part for part in parts if part not in (*PARTS, "")), None)
    if wrong is not None:
        raise InputError(f"{path}: split {wrong!r} is not one of train, val, test.")
    chosen = {part: where[torch.tensor([own == part for own in parts])] for part in PARTS}
    empty = next((part for part in PARTS if not len(chosen[part])), None)
    if empty is not None:
        raise InputError(f"{path} has a split column but no {empty} row.")
    return Split(**chosen)
