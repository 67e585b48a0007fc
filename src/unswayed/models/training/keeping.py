"""What every recipe shares: the seed that decides everything, and keeping the weights that were best on validation."""

import contextlib
import copy
import os
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from unswayed.sampling.threads import Threads

Progress = Callable[[int, int, str], None]
_timed: ContextVar[Threads | None] = ContextVar("timed", default=None)  # who picks the threads of training


def threads_in_words(device: str) -> str:
    """How many threads `seeded` trains with, and why."""
    if torch.device(device).type == "cuda":
        return "on the card, sums in a fixed order, so that equal seeds give equal weights"
    return "one thread, so that equal seeds give equal weights on any number of cores"


@contextlib.contextmanager
def seeded(seed: int, device: str) -> Iterator[None]:
    """Whatever torch draws inside depends on the seed alone, and the caller's generators are left as they were.

    One thread, unless `timing` is on: torch adds up whole tensors, and gradients of what was looked up, in as many parts as there
    are threads, so that more of them change last bits; and on a busy machine two threads that wait for each other were five times
    slower than one. On a card, sums in a fixed order in place of atomic ones.
    """
    devices = [torch.device(device).index or 0] if torch.device(device).type == "cuda" else []
    threads, fixed = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    warns = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.set_num_threads(1)
    if devices:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it matrix products may vary
        torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with torch.random.fork_rng(devices=devices), _stepping(_timed.get()):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(fixed, warn_only=warns)


@contextlib.contextmanager
def timing(pick: Threads | None) -> Iterator[None]:
    """While it lasts, `seeded` trains with as many threads as `pick` finds fastest; with None, with one."""
    before = _timed.set(pick)
    try:
        yield
    finally:
        _timed.reset(before)


@contextlib.contextmanager
def _stepping(pick: Threads | None) -> Iterator[None]:
    """Every step of an optimiser is a piece of work: the next one is done with the number of threads that was fastest so far."""
    if pick is None:
        yield
        return
    number, since = pick.now, time.perf_counter()
    torch.set_num_threads(number)

    def stepped(*_: Any) -> None:
        nonlocal number, since
        pick.heard(number, time.perf_counter() - since, 1.0)
        number = pick.now
        torch.set_num_threads(number)
        since = time.perf_counter()

    hook = register_optimizer_step_post_hook(stepped)
    try:
        yield
    finally:
        hook.remove()


def accuracy(logits: Tensor, labels: Tensor) -> float:
    """The share of rows whose largest logit is the label."""
    return float((logits.argmax(dim=1) == labels).float().mean())


class Best:
    """Keeps the weights with the highest score so far; the later of two equal ones."""

    def __init__(self) -> None:
        self.score: Any = None
        self.weights: dict[str, Tensor] | None = None

    def offer(self, score: Any, model: nn.Module) -> None:
        """Keep the model's present weights if no earlier ones scored higher."""
        if self.score is None or score >= self.score:
            self.score, self.weights = score, copy.deepcopy(model.state_dict())

    def restore(self, model: nn.Module) -> nn.Module:
        """The model with the kept weights, in eval mode."""
        if self.weights is not None:
            model.load_state_dict(self.weights)
        return model.eval()


class ThinDropout:
    """Dropout of a fixed input that touches its non-zero entries only, a random byte for each: the same law, much less work.

    The rate is one of 256ths, the nearest; what stays is scaled by the rate that was drawn with.
    """

    def __init__(self, x: Tensor, rate: float) -> None:
        self.x, self.lost = x, round(256 * rate)
        self.where = x.flatten().nonzero()[:, 0]
        self.values = x.flatten()[self.where] * (256 / (256 - self.lost))

    def __call__(self) -> Tensor:
        """A fresh draw."""
        if self.lost == 0:
            return self.x
        words = torch.empty(len(self.values) // 8 + 1, dtype=torch.int64, device=self.x.device)
        stays = words.random_(-(2**63), None).view(torch.uint8)[: len(self.values)] >= self.lost
        dropped = torch.zeros_like(self.x)
        dropped.view(-1)[self.where] = self.values * stays
        return dropped
