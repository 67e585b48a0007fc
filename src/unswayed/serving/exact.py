"""Exact: a model made of ballots or votes, proved without noise; the same calls, no confidence needed."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unswayed.ballots.claims import UNTOUCHED
from unswayed.ballots.models import BallotModel
from unswayed.certificates.predicted import Labels
from unswayed.certificates.protocol import Certified
from unswayed.errors import RefusedVotes
from unswayed.proving import prove
from unswayed.sampling.beforehand import check_surroundings
from unswayed.sampling.threats import Row, Threat
from unswayed.serving.unchanged import Watched

OTHERWISE = "{} of {} nodes had another label or size when they were proved again, so nothing is answered; make a new service."


class Exact:
    """Answers that are proved: the nodes of the graph once for all, those who arrive when they are asked about.

    Nodes whose links have shaped the ballots can be no targets: whoever asks about them is told so.
    """

    def __init__(self, model: Any, graph: Any, names: Sequence[Any] = (), own: bool = True) -> None:
        """`own` says that nobody else holds the model, so that it stays as it is."""
        self.model, self.graph, self.names = model, graph, tuple(names)
        if own and isinstance(model, BallotModel):
            UNTOUCHED.add(model)
        told = provable(model, graph.num_nodes)
        self.everyone = Row(graph, told if told.any() else ~told)  # where all are refused, that is said
        self.proofs = self._proved(self.everyone)
        self.place = np.full(graph.num_nodes, -1)
        self.place[self.everyone.targets] = np.arange(len(self.everyone))
        self.watched = Watched(model, own)
        self.audited: dict[str, Any] = {}
        self.refusal: str | None = None

    @property
    def reads_data(self) -> bool:
        """What is proved reads features and links alone."""
        return False

    @property
    def described(self) -> Mapping[str, str]:
        """The model's name and hash."""
        return self.watched.described

    @property
    def about(self) -> dict[str, Any]:
        """No engine: nothing is sampled."""
        return {self.everyone.kind: {"engine": "proof", "why": ""}}

    def predict(self, threat: Threat, seed: int | None, samples: int | None) -> Labels:
        """The model's own labels."""
        proofs = self.certify(threat, seed, samples, False)
        return Labels(proofs.label, proofs.about.class_names)

    def certify(self, threat: Threat, seed: int | None, samples: int | None, family: bool) -> Certified:
        """Proofs; they hold together anyway."""
        if self.refusal is not None:
            raise RefusedVotes(self.refusal)
        self._check_model()
        if threat.kind == self.everyone.kind and getattr(threat, "graph", None) is self.graph:
            place = self.place[threat.targets]
            if (place >= 0).all():
                return self.proofs[place]
        return self._proved(threat)

    def _check_model(self) -> None:
        check_surroundings()
        self.watched.check()

    def _proved(self, threat: Threat) -> Certified:
        proofs = prove(self.model, threat)
        return proofs.named(classes=self.names) if self.names else proofs

    def audit(self, threat: Threat | None, answers: int) -> dict[str, Any]:
        """Prove everything anew, and compare; from a disagreement on, every request is refused."""
        self._check_model()
        again = prove(self.model, self.everyone)
        same = int(np.sum((again.label == self.proofs.label) & (again.size == self.proofs.size)))
        self.refusal = None if same == len(again) else OTHERWISE.format(len(again) - same, len(again))
        if self.refusal is not None:
            raise RefusedVotes(self.refusal)
        self.audited = {"asked": len(again), "agreed": same, "ties": 0}
        return dict(self.audited)

    def saved(self) -> Mapping[str, Any]:
        """What a file keeps beside the settings."""
        return {"model": self.described, "audited": self.audited}


def provable(model: Any, nodes: int) -> Tensor:
    """bool[n]: the nodes that may be targets."""
    shaped = model.seen if isinstance(model, BallotModel) else None
    return torch.ones(nodes, dtype=torch.bool) if shaped is None else ~shaped.cpu()
