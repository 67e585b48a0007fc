"""The audit: some of the answers that were counted are asked again, one graph at a time, of the classifier itself.

A tripwire, not part of the proof: whatever made a counted answer (an engine, a batch, a worker, another device) is held
against the one function that a certificate is about. 300 answers miss a fault in 2% of all of them once in 400 polls.
"""

import time
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from unswayed.notes import OTHER, PENDING, SAME, TIE, Audit, Heard
from unswayed.sampling.engines.asking.alone import Alone
from unswayed.sampling.question import Question
from unswayed.sampling.threads import threads

TOLERANCE = (
    1e-4  # of the largest logit: rounding differs between ways of adding up, real differences are larger
)
SHARE = 100  # one answer in so many may hang on rounding


def asked_again(question: Question, audit: Audit, advance: Callable[[int], None]) -> Audit:
    """The audit with a verdict on every answer that was pending."""
    pending = [answer for answer in audit.heard if answer.verdict == PENDING]
    if not pending:
        return audit
    begin = time.perf_counter()
    with threads(1):  # the classifier times its own; around it there is only small work
        verdicts = _heard_again(Alone(_here(question)), pending, advance)
    return audit.judged(verdicts, time.perf_counter() - begin)


def _heard_again(alone: Alone, pending: list[Heard], advance: Callable[[int], None]) -> list[str]:
    said: dict[Heard, Tensor] = {}
    for answer in sorted(pending, key=lambda answer: (answer.target, answer.sample)):
        said[answer] = alone.answer(answer.sample, answer.target).cpu()
        advance(1)
    return _verdicts(alone, pending, [said[answer] for answer in pending])


def _here(question: Question) -> Question:
    """The question on a device of this machine: a cluster's cards may not be here."""
    missing = torch.device(question.device).type == "cuda" and not torch.cuda.is_available()
    return replace(question, device="cpu") if missing else question


def _verdicts(alone: Alone, pending: list[Heard], said: list[Tensor]) -> list[str]:
    usual = torch.stack([_largest(answer) for answer in said]).median()
    labels = [int(alone.classifier.votes(answer[None])[0]) for answer in said]
    return [
        SAME if label == counted.label else _tie(answer, label, counted.label, usual)
        for counted, answer, label in zip(pending, said, labels, strict=True)
    ]


def _tie(answer: Tensor, label: int, counted: int, usual: Tensor) -> str:
    """Whether both labels have the same logit, but for rounding."""
    if not answer.is_floating_point() or min(label, counted) < 0:
        return OTHER
    gap = (answer[label] - answer[counted]).double()
    allowed = max(TOLERANCE, 8 * torch.finfo(answer.dtype).eps) * torch.maximum(_largest(answer), usual)
    return TIE if bool(gap <= allowed) else OTHER


def _largest(answer: Tensor) -> Tensor:
    return answer.double().nan_to_num(0, 0, 0).abs().max()


def complaint(audit: Audit, engine: str) -> str | None:
    """Why the votes cannot be used, in one sentence; None where they can."""
    asked, ties = audit.number(SAME, TIE, OTHER), audit.number(TIE)
    other = next((answer for answer in audit.heard if answer.verdict == OTHER), None)
    if other is not None:
        return (
            f"{audit.number(OTHER)} of {asked} answers asked again one at a time were not what the {engine} engine had counted "
            f"(sample {other.sample}, target at position {other.target}, counted {other.label}), so these votes are refused; "
            "ask the same samples again with engine='generic', batch_size=1."
        )
    if ties > max(1, asked // SHARE):
        return (
            f"{ties} of {asked} answers asked again one at a time hang on rounding (logits that tie), so these votes are refused; "
            "use a model in double precision (model.double()), or one whose classes do not tie."
        )
    return None
