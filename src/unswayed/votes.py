"""Votes: how often each label was answered, per block of sample numbers, and what exactly was asked.

The counts are integers kept per block of sample numbers, so resuming, merging and using fewer samples are additions
and subtractions of whole blocks; nothing random happens after this point.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from unswayed.errors import InputError, StoreError
from unswayed.files import damaged, read_arrays, write_arrays
from unswayed.naming import plain
from unswayed.notes import frozen, joined, wordless
from unswayed.theory.checks import check_count, per_target, whole_numbers
from unswayed.theory.noise import Noise, noise_from_dict

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

FORMAT = 2
WHAT = "vote file"


@dataclass(frozen=True, eq=False)
class Votes:
    """Counts of answers of a smoothed classifier, with everything needed to certify them and to refuse a wrong merge.

    `blocks[b, t, c]` counts the samples numbered `starts[b] .. stops[b] - 1` in which target `t` was given label `c`.
    Samples without an answer are in no class but stay in `samples`. `polled[b, t]` is False where an adaptive run had
    already settled target `t`. `entries[t]` is the length of the structure vector, `ones[t]` how many of its entries
    are 1 (None where unknown). `provenance` says what was asked; votes join only if it is equal. `notes` say what
    happened (engine, device, versions, audit); they are never compared, and join with the votes.
    """

    blocks: IntArray
    starts: IntArray
    stops: IntArray
    noise: Noise
    entries: IntArray
    ones: IntArray | None = None
    targets: IntArray = None  # type: ignore[assignment]  # 0, 1, 2, … unless given
    polled: BoolArray = None  # type: ignore[assignment]  # all, unless given
    provenance: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "blocks", whole_numbers(self.blocks, "blocks", 3))
        put(self, "starts", whole_numbers(self.starts, "starts", 1))
        put(self, "stops", whole_numbers(self.stops, "stops", 1))
        blocks, targets, classes = self.blocks.shape
        if classes < 2:
            raise InputError(
                f"Votes need at least two classes, not {classes}; name all classes the model can answer."
            )
        put(self, "entries", per_target(self.entries, "entries", targets))
        if self.ones is not None:
            put(self, "ones", per_target(self.ones, "ones", targets))
        named = np.arange(targets) if self.targets is None else self.targets
        put(self, "targets", whole_numbers(named, "targets", 1))
        polled = np.ones((blocks, targets), bool) if self.polled is None else np.array(self.polled, bool)
        polled.flags.writeable = False
        put(self, "polled", polled)
        put(self, "provenance", frozen(self.provenance))
        put(self, "notes", frozen(self.notes))
        self._check()

    def _check(self) -> None:
        blocks, targets, _ = self.blocks.shape
        if self.starts.shape != (blocks,) or self.stops.shape != (blocks,):
            raise InputError("Every block of votes needs one start and one stop.")
        if self.targets.shape != (targets,) or self.polled.shape != (blocks, targets):
            raise InputError("targets and polled must fit the shape of the blocks.")
        if np.any(self.starts >= self.stops):
            raise InputError("A block of votes must hold at least one sample.")
        order = np.argsort(self.starts)
        if np.any(self.stops[order][:-1] > self.starts[order][1:]):
            raise InputError("Blocks of votes overlap: the same sample numbers would count twice.")
        room = (self.stops - self.starts)[:, None] * self.polled
        if np.any(self.blocks.sum(axis=2) > room):
            raise InputError("A block holds more votes than samples.")
        if self.ones is not None and np.any(self.ones > self.entries):
            raise InputError("ones cannot exceed entries.")
        if not isinstance(self.noise, Noise):
            raise InputError(f"noise must be a noise such as Flip or AddDelete, not {self.noise!r}.")

    @classmethod
    def from_counts(
        cls,
        counts: npt.ArrayLike,
        noise: Noise,
        entries: npt.ArrayLike,
        *,
        samples: int | None = None,
        ones: npt.ArrayLike | None = None,
        targets: npt.ArrayLike | None = None,
        classes: Sequence[Any] | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> Self:
        """Votes collected elsewhere: `counts[t, c]` samples of target `t` were answered `c`.

        `samples` is how many were drawn for each target; without it, every target must have the same number of votes. `classes`
        are names for the columns.

        >>> from unswayed.theory.noise import Flip
        >>> Votes.from_counts([[95, 5]], Flip(beta=0.7), entries=40).samples
        array([100])
        """
        table = whole_numbers(counts, "counts", 2)
        sums = table.sum(axis=1)
        drawn = int(sums.max(initial=0)) if samples is None else check_count(samples, "samples")
        if samples is None and np.any(sums != drawn):
            raise InputError(
                "The rows of counts have different sums; say how many samples were drawn with samples=."
            )
        if drawn < 1:
            raise InputError("There are no votes to certify: every count is 0.")
        words = {} if classes is None else {"words": {"classes": list(plain(classes))}}
        return cls(
            blocks=table[None],
            starts=np.array([0]),
            stops=np.array([drawn]),
            noise=noise,
            entries=entries,  # type: ignore[arg-type]
            ones=ones,  # type: ignore[arg-type]
            targets=targets,  # type: ignore[arg-type]
            provenance={**(provenance or {"collected": "elsewhere"}), **words},
        )

    @property
    def counts(self) -> IntArray:
        """int64[targets, classes]: the sum of `blocks` over blocks."""
        total: IntArray = self.blocks.sum(axis=0)
        return total

    @property
    def samples(self) -> IntArray:
        """int64[targets]: how many samples were drawn, answered or not."""
        drawn: IntArray = ((self.stops - self.starts)[:, None] * self.polled).sum(axis=0)
        return drawn

    @property
    def no_answer(self) -> IntArray:
        """int64[targets]: samples in which the classifier gave no label (NaN logits, or -1)."""
        silent: IntArray = self.samples - self.counts.sum(axis=1)
        return silent

    @property
    def polled_together(self) -> int:
        """How many targets were polled in one go: more than `len` where some were picked afterwards."""
        return max(len(self), int(self.provenance.get("picked_from", 0)))

    @property
    def classes(self) -> int:
        """How many labels the classifier can answer."""
        return int(self.blocks.shape[2])

    @property
    def class_names(self) -> tuple[Any, ...]:
        """What the classifier calls its labels, text or numbers; empty where it has no names for them."""
        words = self.provenance.get("words")
        return tuple(words.get("classes", ())) if isinstance(words, Mapping) else ()

    @property
    def adaptive(self) -> bool:
        """Whether sampling stopped on what the votes said; then only anytime bounds are valid."""
        return bool(self.provenance.get("adaptive", False))

    def __len__(self) -> int:
        return int(self.blocks.shape[1])

    def __repr__(self) -> str:
        drawn = self.samples.tolist()
        ends = sorted({min(drawn, default=0), max(drawn, default=0)})
        span = " to ".join(str(end) for end in ends)
        return f"Votes({len(self)} target{'s' * (len(self) != 1)}, {self.classes} classes, {span} samples, {self.noise})"

    def __eq__(self, other: object) -> bool:
        """Equal when they hold the same samples and counts of the same question, however cut into blocks."""
        if not isinstance(other, Votes):
            return NotImplemented
        return (
            self.difference(other) is None
            and np.array_equal(self.counts, other.counts)
            and np.array_equal(self.samples, other.samples)
        )

    __hash__ = None  # type: ignore[assignment]

    def difference(self, other: "Votes") -> str | None:
        """What keeps these votes from being about the same question, in words; None when nothing does."""
        if self.noise != other.noise:
            return f"the noise ({self.noise} and {other.noise})"
        if self.blocks.shape[1:] != other.blocks.shape[1:]:
            return "the number of targets or classes"
        for name in ("entries", "ones", "targets"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if (mine is None) != (theirs is None) or (mine is not None and not np.array_equal(mine, theirs)):
                return f"the {name} of the targets"
        keys = sorted(set(self.provenance) | set(other.provenance))
        mine, theirs = wordless(self.provenance), wordless(other.provenance)
        unequal = [key for key in keys if mine.get(key) != theirs.get(key)]
        return f"the provenance ({', '.join(unequal)})" if unequal else None

    def __add__(self, other: "Votes") -> "Votes":
        """Both sets of votes together; refused if any sample number would count twice or the questions differ."""
        if not isinstance(other, Votes):
            return NotImplemented
        if (unlike := self.difference(other)) is not None:
            raise InputError(f"These votes cannot be added: they differ in {unlike}.")
        starts = np.concatenate([self.starts, other.starts])
        order = np.argsort(starts, kind="stable")
        return replace(
            self,
            blocks=np.concatenate([self.blocks, other.blocks])[order],
            starts=starts[order],
            stops=np.concatenate([self.stops, other.stops])[order],
            polled=np.concatenate([self.polled, other.polled])[order],
            notes=joined(self.notes, other.notes),
        )

    def first(self, samples: int) -> "Votes":
        """The votes of sample numbers below `samples`, which must fall on the edge of a block."""
        keep = self.stops <= samples
        if int((self.stops - self.starts)[keep].sum()) != samples:
            edges = sorted(int(stop) for stop in self.stops)
            raise InputError(
                f"There is no block that ends at sample {samples}; these votes have blocks up to {edges}."
            )
        return replace(
            self,
            blocks=self.blocks[keep],
            starts=self.starts[keep],
            stops=self.stops[keep],
            polled=self.polled[keep],
        )

    def take(self, index: IntArray) -> "Votes":
        """The votes of the targets at these positions; they remember among how many those were picked."""
        return replace(
            self,
            blocks=self.blocks[:, index],
            polled=self.polled[:, index],
            entries=self.entries[index],
            ones=None if self.ones is None else self.ones[index],
            targets=self.targets[index],
            provenance={**self.provenance, "picked_from": self.polled_together},
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).restore, (self.arrays(), self.header())

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays of a vote file."""
        names = ("blocks", "starts", "stops", "entries", "targets", "polled", "ones")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def header(self) -> dict[str, Any]:
        """The rest of a vote file, JSON-ready."""
        told = {"provenance": dict(self.provenance), "notes": dict(self.notes)}
        return {"format": FORMAT, "noise": self.noise.to_dict(), **told}

    @classmethod
    def restore(cls, arrays: Mapping[str, Any], header: Mapping[str, Any]) -> Self:
        """The votes of which `arrays` and `header` are these."""
        if header["format"] != FORMAT:
            raise StoreError(
                f"was written by another version of unswayed (vote format {header['format']}, here {FORMAT}), "
                "which may have counted other answers; poll again."
            )
        told = {name: header[name] for name in ("provenance", "notes")}
        return cls(noise=noise_from_dict(header["noise"]), **told, **arrays)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one npz file, atomically: a reader sees the old file or the new one, never a part."""
        write_arrays(path, self.header(), self.arrays())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The votes that `save` wrote; an altered, truncated or foreign file is refused. Never unpickles."""
        header, arrays = read_arrays(path, WHAT)
        return cls.from_file(path, header, arrays)

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, Any]
    ) -> Self:
        """The votes in a file that was read already."""
        try:
            return cls.restore(arrays, header)
        except StoreError as error:
            raise StoreError(f"{path} {error}") from error
        except Exception as error:  # a damaged header can fail anywhere
            raise damaged(path, WHAT) from error
