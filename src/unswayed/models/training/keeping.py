"""What every recipe shares: the seed that decides everything, and keeping the weights that were best on validation."""

import contextlib
import copy
import os
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from unswayed.models.training.stepping import Diary, at_work, paced

Progress = Callable[[int, int, str], None]


def threads_in_words(device: str, kept: Diary) -> str:
    """With how many threads something was trained, and why that changes no weight."""
    if torch.device(device).type == "cuda":
        return "on the card, sums in a fixed order, so that equal seeds give equal weights"
    return f"{kept.words}; equal seeds give equal weights with any number"


def telling(progress: Progress | None) -> Progress | None:
    """The same, which also tells how many threads are at work."""
    if progress is None:
        return None

    def told(step: int, steps: int, message: str) -> None:
        progress(step, steps, f"{message}, threads: {number}" if (number := at_work()) else message)

    return told


@contextlib.contextmanager
def seeded(seed: int, device: str) -> Iterator[None]:
    """Whatever torch draws and adds up inside depends on the seed alone, and the caller's generators are left as they were.

    Steps that `descend` does take as many threads as are fastest, and have the bits of one thread whatever their number. On a card, sums
    in a fixed order in place of atomic ones.
    """
    devices = [torch.device(device).index or 0] if torch.device(device).type == "cuda" else []
    fixed, warns = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    if devices:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it matrix products may vary
        torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with torch.random.fork_rng(devices=devices), paced(device):
            torch.manual_seed(seed)
            yield
    finally:
        torch.use_deterministic_algorithms(fixed, warn_only=warns)


def accuracy(logits: Tensor, labels: Tensor, importance: Tensor | None = None) -> float:
    """The share of rows whose largest logit is the label; `importance` [C] is how much a row of each label counts."""
    right = (logits.argmax(dim=1) == labels).float()
    if importance is None:
        return float(right.mean())
    return float((right * importance[labels]).sum() / importance[labels].sum())


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
