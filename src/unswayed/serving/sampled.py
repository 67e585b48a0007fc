"""Sampled: any model, asked under noise; what was checked when it was made is not checked again for each request."""

import secrets
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from unswayed.ballots.claims import check_unseen
from unswayed.certificates import certify
from unswayed.certificates.predicted import Labels, predicted
from unswayed.certificates.protocol import Certified
from unswayed.errors import InputError, RefusedVotes
from unswayed.ledger import Ledger
from unswayed.notes import OTHER, SAME, TIE, Audit, Heard
from unswayed.polling import counted, describe, whole_samples
from unswayed.runners import SerialRunner
from unswayed.sampling.audit import asked_again, complaint
from unswayed.sampling.beforehand import check_surroundings
from unswayed.sampling.engines import Engine, choose
from unswayed.sampling.question import MOST, Question
from unswayed.sampling.signatures import style_of
from unswayed.sampling.threads import threads
from unswayed.sampling.threats import Threat
from unswayed.serving.settings import Settings
from unswayed.serving.unchanged import Watched
from unswayed.votes import Votes

EACH = 10  # samples of one target in an audit


class Sampled:
    """Answers from votes: labels and sizes hold with confidence 1 − α, by noise that is drawn anew for every request."""

    def __init__(self, model: Any, everyone: Threat, settings: Settings, own: bool = True) -> None:
        """`own` says that nobody else holds the model, so that it stays as it is."""
        self.settings, self.everyone = settings, everyone
        self.question = settings.question(model, everyone)
        self.watched, self.words = Watched(model, own), settings.words(model)
        self.engines: dict[str, Engine] = {}
        # one request at a time: the model's mode and torch's threads belong to all
        self.asking = threading.Lock()
        self.audited: dict[str, Any] = {}
        self.refusal: str | None = None
        with self.asking:
            self._engine(self.question)

    @property
    def reads_data(self) -> bool:
        """Whether the model is given the data as a whole, and may read anything in it."""
        return style_of(self.question.model, self.everyone) == "data"

    @property
    def described(self) -> Mapping[str, str]:
        """The model's name and hash."""
        return self.watched.described

    @property
    def about(self) -> dict[str, Any]:
        """The engines in use and why none is faster, by threat."""
        return {kind: {"engine": engine.name, "why": engine.why} for kind, engine in self.engines.items()}

    def predict(self, threat: Threat, seed: int | None, samples: int | None) -> Labels:
        """Labels, or −1 where the votes do not prove one."""
        votes = self.votes(threat, seed, samples)
        return predicted(votes, alpha=self.settings.alpha, rivals=self.settings.rivals)

    def certify(self, threat: Threat, seed: int | None, samples: int | None, family: bool) -> Certified:
        """Certificates of fresh votes."""
        told = self.settings
        votes = self.votes(threat, seed, samples)
        return certify(votes, alpha=told.alpha, bounds=told.bounds, family=family, rivals=told.rivals)

    def votes(self, threat: Threat, seed: int | None, samples: int | None) -> Votes:
        """The votes that `poll` would count with this seed."""
        if self.refusal is not None:
            raise RefusedVotes(self.refusal)
        self._check_model()
        check_unseen(self.question.model, threat)
        question = replace(self.question, threat=threat, seed=fresh() if seed is None else seed)
        number = self.settings.samples if samples is None else whole_samples(samples)
        with self.asking, threads(1):  # the engine has timed its own; around it there is only small work
            engine = self._engine(question).moved(question)
            asked = describe(question, self.described) | self.words
            ledger = Ledger(engine.question, asked, None, None)
            votes = counted(ledger, SerialRunner(engine), number, self.settings.progress)
        return replace(votes, notes={**votes.notes, "service": self.audited})

    def _check_model(self) -> None:
        check_surroundings()
        self.watched.check()

    def _engine(self, question: Question) -> Engine:
        """The engine for this kind of threat: chosen and tried when the first of its kind comes, or for one that it does not fit."""
        kind = question.threat.kind
        if question.threat.nodes is None:
            kind += ", as a whole"  # an engine for nodes would read a graph's answer as theirs
        if question.threat.rows_apart() is not None and len(question.threat) == 1:
            kind += ", alone"  # an engine for one graph would not know several
        if kind not in self.engines:
            self.engines[kind] = choose(question)
        engine = self.engines[kind]
        return engine if engine.fits(question) else choose(question)

    def audit(self, threat: Threat | None, answers: int) -> dict[str, Any]:
        """Ask random answers again, one graph at a time; from a disagreement on, every request is refused."""
        if isinstance(answers, bool) or not isinstance(answers, int) or not 1 <= answers <= MOST:
            raise InputError(f"answers must be a whole number from 1 to {MOST:,}, not {answers!r}.")
        self._check_model()
        threat = self.everyone if threat is None else threat
        question = replace(self.question, threat=threat, seed=fresh())
        with self.asking, threads(1):
            engine = self._engine(question).moved(question)
            found = asked_again(question, self._heard(engine, question, answers), lambda done: None)
        self.refusal = complaint(found, engine.name)
        if self.refusal is not None:
            raise RefusedVotes(self.refusal)
        self.audited = {
            "asked": found.number(SAME, TIE, OTHER),
            "agreed": found.number(SAME),
            "ties": found.number(TIE),
            "seconds": round(found.seconds, 3),
        }
        return dict(self.audited)

    def _heard(self, engine: Engine, question: Question, answers: int) -> Audit:
        """Answers of the engine for targets drawn at random, to be asked again."""
        rng, many = np.random.default_rng(fresh()), -(-answers // EACH)
        targets = rng.choice(len(question.threat), min(many, len(question.threat)), replace=False)
        each = -(-answers // len(targets))
        labels = engine.ask(0, each, tuple(targets.tolist())).T.tolist()
        heard = [
            Heard(float(i * each + sample), sample, int(target), label)
            for i, (target, row) in enumerate(zip(targets, labels, strict=True))
            for sample, label in enumerate(row)
        ]
        return Audit(answers, len(heard), heard=tuple(heard[:answers]))

    def saved(self) -> Mapping[str, Any]:
        """What a file keeps beside the settings."""
        return {"model": self.described, "audited": self.audited}


def fresh() -> int:
    """A seed that nobody can foresee, and that has not been used before but by a chance of one in 2⁶⁴."""
    return secrets.randbits(64)
