"""Attack every certified target: within its size, where nothing may succeed, and beyond, for an upper bound."""

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from unswayed.attack.judge import Judge
from unswayed.attack.proposals import KINDS, Field
from unswayed.attack.scorers import Scorers
from unswayed.certificates import Certificates
from unswayed.errors import DoubtfulSetting, InputError, Unsupported
from unswayed.notes import wordless
from unswayed.polling import describe, device_of
from unswayed.sampling.modes import evaluating
from unswayed.sampling.question import Question
from unswayed.sampling.threats import Threat

IntArray = npt.NDArray[np.int64]

PRUNED = 16  # attacks of up to this many entries are tried without each of them


@dataclass(frozen=True)
class Breach:
    """An attack within the certified size that succeeded: the certificate, or this package, is wrong."""

    target: int
    kind: str
    entries: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Attacks:
    """What the attacks found, one row a target of the certificates.

    `attempts[t, k]` attacks of kind `kinds[k]` stayed within the certified size, and those that succeeded are in
    `breaches`. `attacked[t]` is the size of the smallest attack that provably changed the smoothed label, −1 where none
    was found; `by[t]` is its kind. `rebuilt` of the `judged` verdicts came from an engine made for the attacked graph. The true robust size of t lies between `certs.size[t]` and `attacked[t] − 1`.
    """

    certs: Certificates
    kinds: tuple[str, ...]
    attempts: IntArray
    breaches: tuple[Breach, ...]
    attacked: IntArray
    by: tuple[str, ...]
    judged: int = 0
    rebuilt: int = 0

    @property
    def sound(self) -> bool:
        """Whether no attack within a certified size succeeded."""
        return not self.breaches

    @property
    def gap(self) -> IntArray:
        """For targets with an attack found: how many sizes lie between the certified one and the attack."""
        found = self.attacked >= 0
        return self.attacked[found] - 1 - self.certs.size[found]


def attack(
    model: Any,
    threat: Threat,
    certs: Certificates,
    *,
    kinds: Sequence[str] | None = None,
    attempts: int = 1,
    beyond: bool = True,
    most: int | None = None,
    samples: int = 10_000,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Attacks:
    """Try to move the smoothed label of every certified target, and say how far that succeeded.

    Each of `kinds` (None: every kind that this model admits; a gradient needs layers that the fast engines know) gets `attempts` attacks of exactly the certified size; each verdict rests on up to `samples` fresh votes of
    the attacked structure and is wrong with probability at most 1e-6. With `beyond`, larger attacks of up to `most`
    entries (by default all) follow until one succeeds, which is then shrunk. `certs` must be the certificates of this
    model and threat.
    """
    if unknown := [kind for kind in kinds or () if kind not in KINDS]:
        raise InputError(f"There is no attack {unknown[0]!r}; choose among {', '.join(KINDS)}.")
    if attempts < 0 or samples < 100:
        raise InputError("attempts must not be negative, and samples must be at least 100.")
    if most is not None and most < 1:
        raise InputError(f"most must be at least 1, the smallest attack there is, not {most}.")
    if not hasattr(certs, "rivals") or certs.about.counts_nodes:
        raise InputError(
            f"Attacks are tried on certificates that certify made, of a label against changed entries, not on {type(certs).__name__}."
        )
    if not threat.undirected or threat.edge_function is not None:
        raise Unsupported("Attacks are tried on undirected edges without attributes alone.")
    if not np.array_equal(certs.targets, threat.targets):
        raise InputError("The certificates are about other targets than the threat.")
    question = Question(
        model, threat, certs.noise, seed=seed, classes=certs.votes.classes, device=device_of(model)
    )
    if question.device != "cpu":
        raise InputError("Attacks run on the CPU; move the model there first (model.cpu()).")
    _check_same(describe(question), certs.votes.provenance)
    with evaluating(model):
        siege = _Siege(question, certs, kinds, attempts, samples)
        for target in range(len(certs)):
            siege.within(target)
            if beyond:
                siege.beyond(target, most)
            if progress is not None:
                progress(target + 1)
    return siege.result()


def _check_same(asked: Mapping[str, Any], told: Mapping[str, Any]) -> None:
    """Refuse certificates of another model or threat; those of votes that were collected elsewhere do not say what they are of."""
    for name in {"model", "threat"} & {*told}:
        mine, theirs = (wordless(about[name]) for about in (asked, told))
        # targets may have been picked since; they were compared
        if any(mine.get(part) != theirs.get(part) for part in {*mine, *theirs} - {"number", "targets"}):
            raise InputError(
                f"The certificates are of another {name} than the one given, so attacks on it would say nothing of them."
            )


class _Siege:
    """The state of one run of attacks."""

    def __init__(
        self,
        question: Question,
        certs: Certificates,
        kinds: Sequence[str] | None,
        attempts: int,
        samples: int,
    ) -> None:
        self.question, self.certs, self.repeats = question, certs, attempts
        self.scorers = Scorers(question)
        obstacle = self.scorers.obstacle
        if obstacle is not None and "gradient" in (kinds or ()):
            raise Unsupported(f"No gradient attack: {obstacle} Use the greedy and random ones.")
        if obstacle is not None and kinds is None:
            warnings.warn(f"No gradient attack is tried: {obstacle}", DoubtfulSetting, stacklevel=4)
            kinds = [kind for kind in KINDS if kind != "gradient"]
        self.kinds = tuple(KINDS if kinds is None else kinds)
        self.judge = Judge(question, samples, certs.rivals)
        self.attempts = np.zeros((len(certs), len(self.kinds)), np.int64)
        self.breaches: list[Breach] = []
        self.attacked = np.full(len(certs), -1, np.int64)
        self.by = [""] * len(certs)

    def within(self, target: int) -> None:
        """Attacks of the certified size; each success is a breach."""
        size = int(self.certs.size[target])
        if size < 1:
            return
        for place, kind in enumerate(self.kinds):
            for attempt in range(self.repeats):
                entries = KINDS[kind](self._field(target, kind, attempt), size)
                self.attempts[target, place] += bool(len(entries))
                if self._changed(target, entries):
                    self._note(target, kind, entries)
                    self.breaches.append(
                        Breach(int(self.certs.targets[target]), kind, tuple(entries.tolist()))
                    )

    def beyond(self, target: int, most: int | None) -> None:
        """Attacks of doubling size, the first success of each kind shrunk by bisection."""
        size = int(self.certs.size[target])
        if size < 0:
            return
        # the gradient first: what it finds bounds the more expensive searches
        for kind in sorted(self.kinds):
            limit = min(int(self.certs.votes.entries[target]), most or sys.maxsize)
            if self.attacked[target] >= 0:
                limit = min(limit, int(self.attacked[target]) - 1)
            budget = min(2 * size + 1, limit)
            while budget > size:
                entries = KINDS[kind](self._field(target, kind, -budget), budget)
                if self._changed(target, entries):
                    self._note(target, kind, self._shrunk(target, entries, size))
                    break
                budget = min(2 * budget, limit) if budget < limit else 0

    def _shrunk(self, target: int, entries: torch.Tensor, low: int) -> torch.Tensor:
        """Part of a successful attack that still succeeds; more than `low` entries, which are certified not to."""
        certified, high = low, len(entries)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._changed(target, entries[:middle]) else (middle, high)
        return self._pruned(target, entries[:high], certified)

    def _pruned(self, target: int, entries: torch.Tensor, low: int) -> torch.Tensor:
        """Without the entries that a small attack does not need."""
        for entry in entries.tolist() if len(entries) <= PRUNED else ():
            rest = entries[entries != entry]
            if len(rest) > low and self._changed(target, rest):
                entries = rest
        return entries

    def _changed(self, target: int, entries: torch.Tensor) -> bool:
        return self.judge.changed(target, int(self.certs.label[target]), entries)

    def _note(self, target: int, kind: str, entries: torch.Tensor) -> None:
        if self.attacked[target] < 0 or len(entries) < self.attacked[target]:
            self.attacked[target], self.by[target] = len(entries), kind

    def _field(self, target: int, kind: str, attempt: int) -> Field:
        """The target with noise of its own for this attempt."""
        threat, number = self.question.threat, int(self.certs.targets[target])
        clean, free = threat.clean(target), threat.free(target)
        numbers = [self.question.seed, number, sorted(KINDS).index(kind), attempt + 2**31]
        seed = int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])
        stream = replace(self.question, seed=seed, purpose="train").stream
        random = torch.Generator().manual_seed(seed % 2**63)
        label = int(self.certs.label[target])
        return Field(self.scorers.of(target), clean, free, label, self.question.noise, stream, number, random)

    def result(self) -> Attacks:
        """Everything found so far."""
        return Attacks(
            self.certs,
            self.kinds,
            self.attempts,
            tuple(self.breaches),
            self.attacked,
            tuple(self.by),
            self.judge.asked,
            self.judge.rebuilt,
        )
