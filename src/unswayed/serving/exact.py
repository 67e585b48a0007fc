"""Exact: a model made of ballots or votes, proved without noise; the same calls, no confidence needed."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unswayed.certificates.predicted import Labels
from unswayed.certificates.protocol import Certified
from unswayed.proving import prove
from unswayed.sampling.digest import describe_model
from unswayed.sampling.threats import Threat


class Exact:
    """Answers that are proved: the nodes of the graph once for all, those who arrive when they are asked about."""

    def __init__(self, model: Any, everyone: Threat, names: Sequence[Any] = ()) -> None:
        self.model, self.everyone, self.names = model, everyone, tuple(names)
        self.proofs = self._proved(everyone)
        self.described = describe_model(model)
        self.audited: dict[str, Any] = {}

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
        if threat.kind == self.everyone.kind and getattr(threat, "graph", None) is self.graph:
            return self.proofs[threat.targets]
        return self._proved(threat)

    def _proved(self, threat: Threat) -> Certified:
        proofs = prove(self.model, threat)
        return proofs.named(classes=self.names) if self.names else proofs

    @property
    def graph(self) -> Any:
        """The graph that everything was proved on."""
        return getattr(self.everyone, "graph", None)

    def audit(self, threat: Threat | None, answers: int) -> dict[str, Any]:
        """Prove everything anew, and compare."""
        again = prove(self.model, self.everyone)
        same = int(np.sum((again.label == self.proofs.label) & (again.size == self.proofs.size)))
        self.audited = {"asked": len(again), "agreed": same, "ties": 0}
        return dict(self.audited)

    def saved(self) -> Mapping[str, Any]:
        """What a file keeps beside the settings."""
        return {"model": self.described, "audited": self.audited}
