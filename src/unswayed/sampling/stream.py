"""Random words that are a pure function of (seed, purpose, sample number, entry[, target]).

Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011) encrypts a counter, so
neither the batch, the device, the order of blocks nor the number of workers can change a word. One call of the cipher
gives the words of four consecutive sample numbers at one entry:

    word(sample, entry) = Philox(counter=(entry, sample // 4, target + 1 or 0, purpose), key=seed)[sample % 4]

Sharing the words across targets (`target=None`) leaves each target's law as it is, hence each certificate and the union
bound over them; only the failures of different targets become dependent.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from unswayed.errors import InputError
from unswayed.theory.noise import WORD, Noise

Words = npt.NDArray[np.uint64]

NAME = "philox4x32-10/2"  # goes into the provenance; another layout of the counter must get another name
PURPOSES = {"certify": 0, "select": 1, "train": 2}

MASK = WORD - 1
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
LANES = 4
ROUNDS = 10
CPU_CHUNK = 2**15  # cipher calls at a time: the working arrays stay in a core's cache
CPU_WIDTH = 2**10  # entries of a chunk: with many rows, the first rounds are shared along rows and columns
CUDA_CHUNK = 2**22

# (stream, start, stop, entries, thresholds, target, device) -> (from_zero, from_one); set where a fused kernel exists
FLIP_KERNELS: dict[str, Callable[..., tuple[Tensor, Tensor]]] = {}


def philox(counter: tuple[Any, Any, Any, Any], key: tuple[int, int]) -> tuple[Any, Any, Any, Any]:
    """The four words of Philox 4x32-10, for numpy uint64 or torch int64 arrays that broadcast against each other.

    The first rounds cost little: until it is mixed, each part of the counter keeps its own small shape.
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for left in reversed(range(ROUNDS)):
        p0, p1 = c0 * MULTIPLIERS[0], c2 * MULTIPLIERS[1]
        c0, c2 = ((p1 >> 32) & MASK) ^ (c1 ^ k0), ((p0 >> 32) & MASK) ^ (c3 ^ k1)
        c1, c3 = p1 & MASK, p0 & MASK
        k0, k1 = (k0 + WEYL[0]) & MASK, (k1 + WEYL[1]) & MASK
        if isinstance(c0, np.ndarray) and c0.shape == c1.shape == c2.shape == c3.shape:
            _in_place(c0, c1, c2, c3, (k0, k1), left)
            break
    return c0, c1, c2, c3


def _in_place(c0: Words, c1: Words, c2: Words, c3: Words, key: tuple[int, int], rounds: int) -> None:
    """The last rounds, in arrays that are all of one shape by now; half of the time would go to new memory."""
    (k0, k1), p0, p1 = key, np.empty_like(c0), np.empty_like(c2)
    for _ in range(rounds):
        np.multiply(c0, MULTIPLIERS[0], out=p0)
        np.multiply(c2, MULTIPLIERS[1], out=p1)
        c1 ^= k0
        c3 ^= k1
        np.bitwise_xor(np.right_shift(p1, 32, out=c0), c1, out=c0)
        np.bitwise_xor(np.right_shift(p0, 32, out=c2), c3, out=c2)
        np.bitwise_and(p1, MASK, out=c1)
        np.bitwise_and(p0, MASK, out=c3)
        k0, k1 = (k0 + WEYL[0]) & MASK, (k1 + WEYL[1]) & MASK


@dataclass(frozen=True)
class Stream:
    """Uniform 32-bit words for one seed and purpose; equal arguments give equal bits everywhere, for ever.

    >>> Stream(seed=0).words(5, 7, 3).tolist() == Stream(seed=0).words(0, 9, 8)[5:7, :3].tolist()
    True
    """

    seed: int
    purpose: str = "certify"
    name: ClassVar[str] = NAME

    def __post_init__(self) -> None:
        if isinstance(self.seed, bool) or not isinstance(self.seed, int | np.integer):
            raise InputError(f"seed must be a whole number, not {self.seed!r}.")
        object.__setattr__(self, "seed", int(self.seed))
        if not 0 <= self.seed < 2**64:
            raise InputError(f"seed must lie between 0 and 2^64 - 1, not {self.seed}.")
        if self.purpose not in PURPOSES:
            raise InputError(f"purpose must be one of {', '.join(PURPOSES)}, not {self.purpose!r}.")

    @property
    def key(self) -> tuple[int, int]:
        """The two 32-bit halves of the seed."""
        return self.seed & MASK, self.seed >> 32

    def counter_tail(self, target: int | None) -> tuple[int, int]:
        """The last two words of the counter: the target (0 where noise is shared) and the purpose."""
        return (0 if target is None else int(target) + 1), PURPOSES[self.purpose]

    def words(
        self,
        start: int,
        stop: int,
        entries: int,
        *,
        target: int | None = None,
        device: str | torch.device = "cpu",
    ) -> Tensor:
        """int64[stop - start, entries] in [0, 2^32): the words of these sample numbers."""
        _check_place(start, stop, entries)
        out = torch.empty((stop - start, entries), dtype=torch.int64, device=device)
        for rows, columns, word in self._chunks(start, stop, entries, target, out.device):
            out[rows, columns] = torch.as_tensor(
                word.view(np.int64) if isinstance(word, np.ndarray) else word
            )
        return out

    def flips(
        self,
        start: int,
        stop: int,
        entries: int,
        noise: Noise,
        *,
        target: int | None = None,
        device: str | torch.device = "cpu",
    ) -> tuple[Tensor, Tensor]:
        """Two bool[stop - start, entries]: whether an entry flips if it is 0, and if it is 1.

        Both are the same tensor where the two probabilities are equal. Never holds words for more than one chunk.
        """
        _check_place(start, stop, entries)
        device = torch.device(device)
        if (kernel := FLIP_KERNELS.get(device.type)) is not None:
            return kernel(self, start, stop, entries, noise.thresholds, target, device)
        thresholds = sorted(set(noise.thresholds))
        outs = [torch.empty((stop - start, entries), dtype=torch.bool, device=device) for _ in thresholds]
        into = [out.numpy() if device.type == "cpu" else out for out in outs]
        for rows, columns, word in self._chunks(start, stop, entries, target, device):
            for out, threshold in zip(into, thresholds, strict=True):
                out[rows, columns] = word < threshold
        from_zero, from_one = (outs[thresholds.index(threshold)] for threshold in noise.thresholds)
        return from_zero, from_one

    def _chunks(
        self, start: int, stop: int, entries: int, target: int | None, device: torch.device
    ) -> Iterator[tuple[slice, slice, Any]]:
        """(rows, columns, words) of the output, chunk by chunk; rows of one lane are every fourth sample."""
        if entries == 0 or start == stop:
            return
        first, last = start // LANES, (stop + LANES - 1) // LANES
        chunk, most = (CPU_CHUNK, CPU_WIDTH) if device.type == "cpu" else (CUDA_CHUNK, CUDA_CHUNK)
        width = -(-entries // -(-entries // most))  # equal columns
        height = max(1, chunk // width)
        for quad in range(first, last, height):
            quads = range(quad, min(quad + height, last))
            for left in range(0, entries, width):
                columns = range(left, min(left + width, entries))
                for lane, words in enumerate(self._cipher(quads, columns, target, device)):
                    samples = range(quads.start * LANES + lane, quads.stop * LANES, LANES)
                    yield from _kept(samples, words, columns, start, stop)

    def _cipher(
        self, quads: range, columns: range, target: int | None, device: torch.device
    ) -> tuple[Any, ...]:
        """The four lanes for these quadruples of samples (rows) and entries (columns)."""
        tail = self.counter_tail(target)
        if device.type == "cpu":
            # numpy's uint64 arithmetic is about twice as fast as torch's int64 on one core
            entry, sample = (np.arange(span.start, span.stop, dtype=np.uint64) for span in (columns, quads))
            parts = [np.full((1, 1), part, dtype=np.uint64) for part in tail]
            return philox((entry[None, :], sample[:, None], parts[0], parts[1]), self.key)
        options: dict[str, Any] = {"dtype": torch.int64, "device": device}
        where, when = (torch.arange(span.start, span.stop, **options) for span in (columns, quads))
        rest = [torch.full((1, 1), part, **options) for part in tail]
        return philox((where[None, :], when[:, None], rest[0], rest[1]), self.key)


def _check_place(start: int, stop: int, entries: int) -> None:
    if not (0 <= start <= stop <= LANES * WORD and 0 <= entries <= WORD):
        raise InputError(
            f"Samples {start} to {stop} of {entries} entries are outside the stream (at most 2^34 samples, 2^32 entries)."
        )


def _kept(
    samples: range, words: Any, columns: range, start: int, stop: int
) -> Iterator[tuple[slice, slice, Any]]:
    """The rows of one lane whose sample numbers were asked for, with their place in the output."""
    low = max(0, -(-(start - samples.start) // samples.step))
    high = min(len(samples), -(-(stop - samples.start) // samples.step))
    if low < high:
        begin = samples[low] - start
        rows = slice(begin, begin + (high - low - 1) * samples.step + 1, samples.step)
        yield rows, slice(columns.start, columns.stop), words[low:high]
