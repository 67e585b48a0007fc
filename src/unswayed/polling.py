"""The one loop: threat + noise + classifier + runner + store → Votes."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from unswayed.ballots.claims import check_order, check_unseen
from unswayed.errors import InputError, RefusedVotes, Unsupported
from unswayed.ledger import BLOCK, AdaptiveLedger, Ledger
from unswayed.runners import Block, Runner, SerialRunner, SeveralRunner
from unswayed.sampling.beforehand import (
    check_columns,
    check_features,
    check_instance,
    check_surroundings,
    named_classes,
)
from unswayed.sampling.digest import describe_model
from unswayed.sampling.engines.machine.room import hand_back
from unswayed.sampling.flagged import flagged
from unswayed.sampling.question import Question
from unswayed.sampling.signatures import style_of
from unswayed.sampling.threats import Threat
from unswayed.sampling.until import Rule, gaps, looks
from unswayed.spelling import spelled
from unswayed.store import Store
from unswayed.theory.bounds import ceiling
from unswayed.theory.noise import Noise
from unswayed.votes import Votes
from unswayed.watching import watching

IntArray = npt.NDArray[np.int64]

MAX_SAMPLES = 10**9  # more would fill the memory with the list of blocks alone
ALPHA = 0.001  # the level that `certify` takes unless it is told another
AUDIT = 300  # answers of a poll that are asked again: they miss a fault in 2% of all once in 400 polls


@spelled()
def poll(
    model: Any,
    threat: Threat,
    noise: Noise,
    *,
    samples: int = 10_000,
    seed: int = 0,
    device: str | None = None,
    devices: Sequence[str] | None = None,
    engine: str = "auto",
    runner: Runner | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    classes: int | Sequence[Any] | None = None,
    batch_size: int | None = None,
    shared: bool = True,
    purpose: str = "certify",
    draws: str = "auto",
    until: Rule | None = None,
    audit: int = AUDIT,
    threshold: float | None = None,
) -> Votes:
    """The votes of sample numbers 0 .. samples - 1: the same for every batch size, device, runner and interruption.

    `model` is a torch module `forward(x, edge_index[, batch])`, `forward(data)` or `forward(x, adj)`, a callable, or for
    `Bits` anything with `predict`. `device` defaults to the model's own; "cuda" is all cards of this machine, and `devices`
    are several that count at the same time, such as ["cuda:0", "cuda:1"]. `engine` is "auto", "generic" or "fast".
    With `store`, what is counted is kept in that folder about once a second and a later call draws only what is missing. What takes
    more than two seconds is said, with engine, speed and time left, in terminals and notebooks; `progress` True says it anywhere and of short polls too, False never. `classes` is needed where the classifier answers labels instead of logits: their number, or
    their names in order, which certificates then speak of (scikit-learn's `classes_` are known). `shared`
    draws one noise for all targets, which leaves each target's guarantee as it is. `purpose` separates the noise that
    trains or selects a model from the noise that certifies it. `draws` picks between two streams of the same law: "dense"
    draws every entry, "sparse" only what changes (`Row` and `AllPairs(data, nodes)` with shared noise), "auto" the cheaper one.
    `until` (`UntilSize(size=…)`, `Budget(seconds=…)`, or both joined by `|`) stops before `samples`, each target as soon as the
    rule has settled it; such votes are adaptive, and only `certify(..., bounds="anytime")` takes them. `audit` answers,
    drawn at random from all that were counted, are asked again of the model itself, one graph at a time; if one of them
    differs (but for logits that tie within rounding), all votes are refused. `votes.notes["audit"]` says how many agreed.
    `threshold` is for models that answer one number: class 1 above it, else class 0 (0 for a logit, 0.5 after a sigmoid).
    """
    samples = whole_samples(samples)
    who, device = _counting(runner, device, devices)
    check_instance(model)
    check_surroundings()
    model = model if threshold is None else flagged(model, threshold)
    count, names = named_classes(model, classes)
    question = Question(
        model=model,
        threat=threat,
        noise=noise,
        seed=seed,
        purpose=purpose,
        shared=bool(shared),
        classes=count,
        device=device or device_of(model),
        engine=engine,
        batch_size=batch_size,
        draws=draws,
        audit=audit,
    )
    check_columns(model, threat)
    check_order(model, threat)
    check_unseen(model, threat)
    check_features(threat)
    words = {"words": {"classes": names}} if names else {}
    settings = describe(question) | words | ({} if until is None else {"adaptive": True})
    kept = Store(store) if store is not None else None
    if kept is not None:
        kept.open({**settings, "noise": question.noise.to_dict()})
        question = _after_refusal(kept, question)
    known = kept.votes() if kept is not None else None
    if until is not None:
        return _poll_until(AdaptiveLedger(question, settings, kept, known), who, until, samples, progress)
    return counted(Ledger(question, settings, kept, known), who, samples, progress)


def _counting(
    runner: Runner | None, device: str | None, devices: Sequence[str] | None
) -> tuple[Runner, str | None]:
    """Who counts, and the device on which answers are asked again."""
    if devices is not None:
        if runner is not None or device is not None:
            raise InputError("Give devices alone: without device, and without a runner, which has its own.")
        return SeveralRunner(devices), devices[0]
    if runner is None and device == "cuda" and (cards := torch.cuda.device_count()) > 1:
        return SeveralRunner([f"cuda:{number}" for number in range(cards)]), "cuda:0"
    return runner or SerialRunner(), device


def counted(ledger: Ledger, runner: Runner, samples: int, progress: bool | None) -> Votes:
    """The ledger's votes of sample numbers 0 .. samples - 1, once what is missing was counted and some of it asked again."""
    todo, ledger.edge = missing(ledger.votes, samples), samples
    answers = sum(block.stop - block.start for block in todo) * len(ledger.question.threat)
    with watching(progress, answers, reach=partial(reach, ledger.question, samples, "strict")) as watch:
        ledger.fill(runner, todo, watch)
    _ask_again(ledger, runner, progress)
    return ledger.first(samples)


def _ask_again(ledger: Ledger, runner: Runner, progress: bool | None) -> None:
    """Some of what was counted is asked again, once the engine that counted it has made room."""
    if isinstance(runner, SerialRunner | SeveralRunner):
        runner.rest()
    ledger.audit(partial(watching, progress, title="asking again"))
    hand_back()


def reach(question: Question, samples: int, bounds: str, engine: Any) -> str:
    """How far certificates of so many samples can reach at the usual level, in a sentence; nothing where that is not known."""
    threat, classes = question.threat, question.classes or getattr(engine, "classes", None)
    if classes is None or question.purpose != "certify":
        return ""
    try:
        noise = threat.takes(question.noise)
        most = ceiling(noise, samples, ALPHA, classes, bounds, cap=threat.entries, ones=threat.ones)
    except Unsupported:  # sizes under this noise are computed elsewhere
        return ""
    if most < 0:
        return f" Even unanimous votes of {samples:,} samples prove nothing at alpha = {ALPHA:g}."
    return f" At alpha = {ALPHA:g} they can prove at most K = {most}."


def _after_refusal(store: Store, question: Question) -> Question:
    """The question as it may be asked into this store: one graph at a time, once votes in it were refused."""
    if (why := store.refusal) is None:
        return question
    if question.engine != "generic":
        raise RefusedVotes(
            f"The store {store.path} was refused ({why.partition(', so ')[0]}); engine='generic' asks the same samples again, "
            "one graph at a time."
        )
    return replace(question, batch_size=1)


def _poll_until(
    ledger: "AdaptiveLedger", runner: Runner, rule: Rule, samples: int, progress: bool | None
) -> Votes:
    """Look at the votes at fixed sample numbers and go on with the targets that the rule has not settled."""
    if not isinstance(rule, Rule):
        raise InputError(f"until must be UntilSize(size=…) or Budget(seconds=…), not {rule!r}.")
    rule, everyone = rule.begin(), np.arange(len(ledger.question.threat))
    told = partial(reach, ledger.question, samples, "anytime")
    with watching(progress, samples * len(everyone), reach=told) as watch:
        for start, stop in looks(samples):
            wanted = everyone
            if ledger.votes is not None:
                bare = replace(ledger.votes, notes={})  # the audit comes when all is counted
                wanted = everyone[~(rule.settled(bare, samples) | _left_out(ledger))]
                if rule.over() or not len(wanted):
                    break
            ledger.fill(runner, _pieces(gaps(ledger.votes, start, stop, wanted)), watch)
    _ask_again(ledger, runner, progress)
    assert ledger.votes is not None  # the first look is always taken
    return ledger.votes


def _left_out(ledger: AdaptiveLedger) -> npt.NDArray[np.bool_]:
    """Targets that were passed over in noise which others have answered: asking them now, knowing those answers, could
    choose what they say, and no anytime bound covers that. With noise of its own a target may be taken up again."""
    votes = ledger.votes
    assert votes is not None
    passed = np.any(~votes.polled, axis=0)
    return np.asarray(passed & ledger.question.shared, bool)


def _pieces(holes: list[tuple[int, int, IntArray]]) -> list[Block]:
    """Blocks of at most `BLOCK` samples, so that several workers share a look."""
    return [
        Block(at, min(at + BLOCK, stop), tuple(targets.tolist()))
        for start, stop, targets in holes
        for at in range(start, stop, BLOCK)
    ]


def describe(question: Question, model: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What was asked, JSON-ready: votes join, and stores resume, only where this is equal.

    `model` is the description of a model that nobody else can change, computed before.
    """
    threat = question.threat.describe()
    if style_of(question.model, question.threat) == "data":  # it may read what others never see
        threat["constants"] = question.threat.constants()
    return {
        "model": dict(model) if model is not None else describe_model(question.model),
        "threat": threat,
        "seed": question.stream.seed,
        "purpose": question.purpose,
        "shared": question.shared,
        "stream": question.stream_name,
    }


def device_of(model: Any) -> str:
    """Where the model's parameters lie; the CPU where it has none."""
    parameters = getattr(model, "parameters", None)
    first = next(iter(parameters()), None) if callable(parameters) else None
    return str(getattr(first, "device", "cpu"))


def missing(votes: Votes | None, samples: int) -> list[Block]:
    """The blocks still to be counted, so that sample numbers 0 .. samples - 1 are all covered and none twice.

    Blocks lie on the grid of `BLOCK`; of a stored block that straddles `samples` the first part is drawn again.
    """
    done = [] if votes is None else sorted(zip(votes.starts.tolist(), votes.stops.tolist(), strict=True))
    blocks, at = [], 0
    for start, stop in [*((a, b) for a, b in done if b <= samples), (samples, samples)]:
        while at < start:
            edge = min(start, (at // BLOCK + 1) * BLOCK)
            blocks.append(Block(at, edge))
            at = edge
        at = max(at, stop)
    return blocks


def whole_samples(value: Any) -> int:
    """A number of samples, checked."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= MAX_SAMPLES:
        raise InputError(f"samples must be a whole number from 1 up to {MAX_SAMPLES:,}, not {value!r}.")
    return int(value)
