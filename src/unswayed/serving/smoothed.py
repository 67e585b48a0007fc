"""Smoothed: a model checked once, asked many times."""

import copy
import os
from typing import Any

import torch
from torch import nn

from unswayed.ballots.links import in_one_order
from unswayed.certificates.predicted import Labels
from unswayed.certificates.protocol import Certified
from unswayed.errors import InputError
from unswayed.polling import AUDIT
from unswayed.sampling.digest import share_state
from unswayed.sampling.flagged import flagged
from unswayed.sampling.threats import Row, Threat
from unswayed.serving import files
from unswayed.serving.exact import Exact
from unswayed.serving.sampled import Sampled
from unswayed.serving.settings import Settings
from unswayed.serving.still import Still
from unswayed.spelling import spelled
from unswayed.theory.noise import Noise


class Smoothed:
    """A model in a service: labels that hold with confidence 1 − `alpha`, and sizes K that no attacker below them can undo.

    The engine is chosen, tried and audited here, once; requests only draw noise and ask. Model and graph are copied: what
    happens to the originals afterwards changes nothing. (A function, or a module that cannot be copied or holds a function with a
    network of its own, is compared by its hash in every request, and refused once it has changed.) With `noise=None` the model must be one that `prove` takes (a
    `BallotNetwork`, `LabelBallots`, `Hashed`): the same calls then answer exactly, without noise or confidence.

    `nodes` in all calls are nodes of the graph (their own rows may be attacked), or nodes that arrive, `Row.new(data, x,
    neighbours)`, or any threat. `samples` are drawn for every request. `classes` is how many labels there are, or their names, where the model does
    not say. `threshold` is for models that answer one number, which are then served (and loaded) as `flagged(model, threshold)`. `audit` answers are asked again one graph at a time
    before the first request; 0 leaves that out.
    """

    @spelled()
    def __init__(
        self,
        model: Any,
        noise: Noise | None,
        data: Any,
        *,
        threshold: float | None = None,
        samples: int = 1_000,
        alpha: float = 0.001,
        bounds: str = "strict",
        rivals: str = "all",
        classes: Any = None,
        device: str | None = None,
        engine: str = "auto",
        batch_size: int | None = None,
        audit: int = AUDIT,
        progress: bool | None = None,
    ) -> None:
        settings = Settings(
            noise, samples, alpha, bounds, rivals, classes, device, engine, batch_size, progress
        )
        self._open(model if threshold is None else flagged(model, threshold), settings, Still.of(data))
        if audit:
            self.audit(answers=audit)

    def _open(self, model: Any, settings: Settings, graph: Still) -> None:
        given, model = model, _own_copy(model)
        own = model is not given and not share_state(model, given)
        self.settings, self.graph = settings, graph
        if settings.noise is None:
            self._asked: Sampled | Exact = Exact(model, graph, settings.names(model), own)
            return
        everyone = Row(graph, torch.ones(graph.num_nodes, dtype=torch.bool))  # a number might be a name
        self._asked = Sampled(model, everyone, settings, own)

    @property
    def about(self) -> dict[str, Any]:
        """What answers: the engine for each threat asked about so far and why none is faster, the last audit that passed, why every
        request is refused (None where none is), the settings."""
        return {
            "engines": self._asked.about,
            "audit": dict(self._asked.audited),
            "refused": self._asked.refusal,
            "settings": self.settings.told(),
        }

    def predict(self, nodes: Any, *, seed: int | None = None, samples: int | None = None) -> Labels:
        """int64[nodes]: the smoothed classifier's labels, −1 where it abstains; each that is given is wrong with probability ≤ α.

        `.answer` are the same by name, None where it abstains. Noise is fresh and secret unless `seed` is given, which reproduces an answer;
        `.seed` says which it was.
        """
        return self._asked.predict(self._threat(nodes), seed, samples)

    def certify(
        self, nodes: Any, *, seed: int | None = None, samples: int | None = None, family: bool = False
    ) -> Certified:
        """Labels with their certified sizes, from fresh secret noise unless `seed` is given; without noise, proofs."""
        return self._asked.certify(self._threat(nodes), seed, samples, family)

    def audit(self, nodes: Any = None, *, answers: int = AUDIT) -> dict[str, Any]:
        """How many of so many random answers, asked again one graph at a time, agreed; refuses every request if one did not."""
        return self._asked.audit(None if nodes is None else self._threat(nodes), answers)

    def _threat(self, nodes: Any) -> Threat:
        if not isinstance(nodes, Threat):
            return Row(self.graph, nodes)
        if not all(_same(graph, self.graph, self._asked.reads_data) for graph in _graphs(nodes)):
            raise InputError(
                "These nodes are of another graph than the service's; make a new service for it."
            )
        return _on(nodes, self.graph)

    def arriving(self, x: Any, neighbours: Any) -> Threat:
        """Nodes that arrive in the service's own graph, each alone: what `Row.new` makes, without reading the graph again."""
        return Row.new(self.graph, x, neighbours)

    def __reduce__(self) -> Any:
        raise InputError(
            "A service is neither pickled nor copied: save it, and open it where it is needed by Smoothed.load(path, model)."
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph, the settings and the model's hash to one file; the model itself you keep yourself."""
        files.save(path, self.graph, {"settings": self.settings.to_dict(), **self._asked.saved()})

    @classmethod
    def load(cls, path: str | os.PathLike[str], model: Any, *, audit: int = 0) -> "Smoothed":
        """The service that `save` wrote, with the same model, which is compared by its hash; equal seeds give equal answers.

        The engine is chosen and tried again, on this machine; the audit is the stored one, unless one is asked for.
        """
        header, graph = files.load(path)
        self = cls.__new__(cls)
        self._open(model, Settings.from_dict(header["settings"]), graph)
        files.same_model(path, header["model"], self._asked.described)
        self._asked.audited = dict(header["audited"])
        if audit:
            self.audit(answers=audit)
        return self

    def __repr__(self) -> str:
        how = (
            "exact"
            if self.settings.noise is None
            else f"{self.settings.noise}, {self.settings.samples:,} samples"
        )
        return f"Smoothed({self.graph.num_nodes:,} nodes, {how})"


def _own_copy(model: Any) -> Any:
    """A copy that nobody else trains; the model itself where it cannot be copied."""
    if not isinstance(model, nn.Module):
        return model
    try:
        return copy.deepcopy(model).eval()
    except Exception:  # anything a user's module does not let be copied
        return model


def _graphs(threat: Threat) -> list[Any]:
    """The graphs that a threat is about."""
    return getattr(threat, "graphs", None) or [
        graph for graph in [getattr(threat, "graph", None)] if graph is not None
    ]


def _same(graph: Any, own: Still, reads_data: bool) -> bool:
    """Whether a threat's graph is the service's: its links, features and which data edges carry, what nodes are called where both say it;
    for a model that is given the data as a whole, everything in it."""
    if graph is own:
        return True
    if (
        not in_one_order(graph.names, own.names)
        or graph.edge_data != own.edge_data
        or graph.digest() != own.digest()
    ):
        return False
    beyond, known = ((one.left_out, one.kind, one.constants()) for one in (graph, own))
    return not reads_data or beyond == known


def _on(threat: Threat, graph: Still) -> Threat:
    """The threat on the service's copy of its graph, of which everything is known."""
    if all(one is graph for one in _graphs(threat)):
        return threat
    other = copy.copy(threat)
    held = {"graph": graph, "graphs": [graph] * len(_graphs(threat))}
    vars(other).update({name: value for name, value in held.items() if name in vars(threat)})
    return other
