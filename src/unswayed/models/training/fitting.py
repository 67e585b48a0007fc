"""`fit`: one call for every recipe, protocol and task."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from unswayed.datasets import Dataset, Split
from unswayed.errors import InputError
from unswayed.models.building import build
from unswayed.models.ensembles import Ensemble
from unswayed.models.training.asked import check_asked
from unswayed.models.training.clean import CLEAN_GAT, fit_clean
from unswayed.models.training.graphs import CLEAN, GraphSettings, fit_graphs
from unswayed.models.training.keeping import Progress, seeded, telling
from unswayed.models.training.noisy import fit_noisy
from unswayed.models.training.stepping import asking
from unswayed.models.training.teacher import soft_labels
from unswayed.models.training.together import EnsembleSettings, fit_ensemble
from unswayed.models.training.view import View, view
from unswayed.sampling.modes import evaluating
from unswayed.sampling.signatures import forward_names
from unswayed.sampling.threads import threads
from unswayed.theory.noise import Noise
from unswayed.watching import steps_shown

RECIPES = ("clean", "noise", "distill")
# What must withstand noise on every pair of a graph, by whether its nodes have features: hyper-parameters of five small
# GINs, chosen by cross-validation inside development graphs (MUTAG and PROTEINS; IMDB-MULTI).
NOISY_GIN = {
    True: EnsembleSettings(weight_decay=1e-2, steps=500, copies=3, consistency=10.0),
    False: EnsembleSettings(weight_decay=1e-4, steps=600, copies=4, consistency=1.0),
}
# Attention shares its weight out among all neighbours, so under noise a node's own state needs a way past it.
NOISY_GAT = {"residual": True, "drop": 0.0}


def untrained(model_name: str, dataset: Dataset, recipe: str, *, seed: int = 0) -> nn.Module:
    """The network that this recipe trains, before training: what stored weights are loaded back into."""
    noisy = recipe != "clean"
    name = "ensemble" if noisy and (dataset.task, model_name) == ("graph", "gin") else model_name
    sizes = NOISY_GAT if noisy and (dataset.task, model_name) == ("node", "gat") else {}
    return build(name, dataset.num_features, dataset.num_classes, task=dataset.task, seed=seed, **sizes)


@threads(1)
def fit(
    model_name: str | nn.Module,
    dataset: Dataset,
    split: Split,
    *,
    recipe: str = "clean",
    noise: Noise | None = None,
    protocol: str = "transductive",
    seed: int = 0,
    device: str = "cpu",
    progress: Progress | None = None,
    settings: Any = None,
    teacher: Tensor | None = None,
    threads: int | None = None,
) -> nn.Module:
    """A trained model in eval mode on `device`; the seed decides everything, and no test label is ever read.

    `clean` learns the training labels on the clean graph; `noise` learns them under fresh noise at every step; `distill`
    learns a clean-graph teacher's soft labels under fresh noise. Under the inductive protocol the test nodes, their
    features and their edges are absent from all training. Early stopping looks at validation targets only; a graph network
    under `noise` (five small GINs) never stops early and learns the validation graphs' labels too. `progress` is called
    with (step, steps, message); without it, a line in a terminal or a notebook moves on. Equal seeds give equal weights, bit for bit on the same kind of machine, whatever the number of
    threads: one and all of torch's are timed step by step, again when steps get slow, more than one share out only what they cannot
    change, and `progress` tells what was chosen. `threads` is a number to take in place of timing.
    `model_name` may be a module of your own, `forward(x, edge_index)` (for graphs with `batch`), which is then trained as it is.
    `teacher` gives the soft labels of every visible node where they are already known. The model "ballots" is a
    `BallotNetwork` trained against the worst changes of a row and frozen on the whole graph, for graphs `PairBallots`, ready
    for `prove`; it knows no recipes, and `settings=BallotSettings(attack_size=2)` says what it is to withstand.
    """
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise InputError(f"threads must be a whole number from 1 up, or None (timed), not {threads!r}.")
    with asking(threads), steps_shown("training", progress) as told:
        return _fit(
            model_name, dataset, split, recipe, noise, protocol, seed, device, telling(told), settings, teacher
        )  # fmt: skip


def _fit(
    model_name: str | nn.Module,
    dataset: Dataset,
    split: Split,
    recipe: str,
    noise: Noise | None,
    protocol: str,
    seed: int,
    device: str,
    progress: Progress | None,
    settings: Any,
    teacher: Tensor | None,
) -> nn.Module:
    check_asked(dataset, split, protocol=protocol, seed=seed, device=device, teacher=teacher)
    if model_name == "ballots" and (recipe != "clean" or noise is not None):
        raise InputError(
            "Ballot networks are trained without noise and know no recipes; leave recipe= and noise= away."
        )
    if model_name == "ballots" and dataset.task == "graph":
        from unswayed.models.training.pairs import fit_pairs

        return fit_pairs(dataset, split, seed=seed, device=device, settings=settings, progress=progress)
    if model_name == "ballots":
        from unswayed.models.training.ballots import fit_ballots

        return fit_ballots(
            dataset, split, protocol=protocol, seed=seed, device=device, settings=settings, teacher=teacher,
            progress=progress,
        )  # fmt: skip
    if recipe not in RECIPES:
        raise InputError(f"recipe must be one of {', '.join(RECIPES)}, not {recipe!r}.")
    if recipe != "clean" and noise is None:
        raise InputError(
            f"The recipe {recipe!r} trains under noise: say which with noise=, for example Flip(beta=0.7)."
        )
    if isinstance(model_name, nn.Module):
        _check_own(model_name, dataset, split, protocol)
    if dataset.task == "graph":
        return _fit_graph_model(model_name, dataset, split, recipe, noise, seed, device, progress, settings)
    seen = view(dataset, split, protocol).to(device)
    model = _start(model_name, dataset, recipe, seed).to(device)
    if recipe == "clean":
        usual = CLEAN_GAT if model_name == "gat" else None
        with seeded(seed, device):
            return fit_clean(model, seen, settings=settings or usual, progress=progress)
    assert noise is not None
    targets, pool = _lesson(recipe, seen, dataset.num_classes, seed, device, teacher)
    with seeded(seed, device):
        return fit_noisy(model, seen, noise, targets, pool, seed=seed, settings=settings, progress=progress)


def _start(model: str | nn.Module, dataset: Dataset, recipe: str, seed: int) -> nn.Module:
    return model if isinstance(model, nn.Module) else untrained(model, dataset, recipe, seed=seed)


def _check_own(model: nn.Module, dataset: Dataset, split: Split, protocol: str) -> None:
    """Refuse a module that cannot be trained by these recipes; it is tried on what training may see, since it may remember that."""
    names = forward_names(model)
    needed = "batch" if dataset.task == "graph" else "edge_index"
    if "edge_index" not in names or needed not in names:
        raise InputError(
            f"A module that is trained here needs forward(x, edge_index{', batch' * (needed == 'batch')}), not forward({', '.join(names)})."
        )
    graphs = dataset.task == "graph"
    graph = dataset.graphs[int(split.train[0])] if graphs else view(dataset, split, protocol).data
    more = {"batch": torch.zeros(graph.num_nodes, dtype=torch.int64)} if needed == "batch" else {}
    with evaluating(model), torch.no_grad():
        out = model.cpu()(graph.x, graph.edge_index, **more)
    if out.ndim != 2 or out.shape[1] != dataset.num_classes:
        raise InputError(
            f"A module that is trained here answers one column for each of the {dataset.num_classes} classes, not shape {tuple(out.shape)}."
        )


def _lesson(
    recipe: str, seen: View, classes: int, seed: int, device: str, teacher: Tensor | None
) -> tuple[Tensor, Tensor]:
    """(soft labels, nodes to learn them on): every visible node from a teacher, or the training nodes' own labels."""
    if recipe == "distill":
        soft = soft_labels(seen, classes, seed=seed, device=device) if teacher is None else teacher.to(device)
        return soft, torch.arange(len(soft), device=device)
    labels = functional.one_hot(seen.data.y.clamp(min=0), classes).float()
    return labels, seen.train


def _fit_graph_model(
    name: str | nn.Module,
    dataset: Dataset,
    split: Split,
    recipe: str,
    noise: Noise | None,
    seed: int,
    device: str,
    progress: Progress | None,
    settings: Any,
) -> nn.Module:
    """Graph datasets have no unlabelled pool: `distill` is refused, and test graphs are never seen by any recipe."""
    if recipe == "distill":
        raise InputError(
            "The recipe 'distill' needs unlabelled nodes to learn on; for graphs use the recipe 'noise'."
        )
    model = _start(name, dataset, recipe, seed).to(device)
    if isinstance(model, Ensemble):
        learnt, how = torch.cat([split.train, split.val]), settings or NOISY_GIN[dataset.num_features > 0]
        with seeded(seed, device):
            return fit_ensemble(
                model, dataset, learnt, noise, seed=seed, device=device, settings=how, progress=progress
            )
    chosen = settings or (CLEAN if recipe == "clean" else GraphSettings())
    under = noise if recipe == "noise" else None
    with seeded(seed, device):
        return fit_graphs(
            model, dataset, split, under, seed=seed, device=device, settings=chosen, progress=progress
        )
