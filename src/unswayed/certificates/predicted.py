"""A label from votes alone, without a size: what a service answers when nobody asks how safe it is."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from unswayed.certificates.checking import certifiable
from unswayed.naming import Name, in_words, plain
from unswayed.theory.bounds import check_level
from unswayed.theory.ranking import leads
from unswayed.votes import Votes


class Labels(np.ndarray[Any, np.dtype[np.int64]]):
    """int64[targets]: the numbers of labels, −1 where it abstains, that also know what the labels are called, and the seed of the
    noise that decided them (None where there was none).

    >>> said = Labels([1, -1], ("fine", "fraud"))
    >>> said.tolist(), said.answer.tolist(), (said == 1).tolist()
    ([1, -1], ['fraud', None], [True, False])
    """

    class_names: tuple[Name, ...]
    seed: int | None

    def __new__(cls, labels: npt.ArrayLike, names: Iterable[Any] = (), seed: int | None = None) -> Self:
        """An array of these numbers; `names` are those of all classes, in order."""
        made = np.array(labels, np.int64).view(cls)
        made.class_names, made.seed = plain(names), seed
        return made

    def __array_finalize__(self, other: Any) -> None:
        self.class_names, self.seed = getattr(other, "class_names", ()), getattr(other, "seed", None)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else np.asarray(array)  # what is computed of labels is no label

    def __reduce__(self) -> Any:
        return type(self), (np.asarray(self), self.class_names, self.seed)

    @property
    def answer(self) -> npt.NDArray[Any]:
        """The label of each target as the classifier names it, or its number where it names none; None where it abstains."""
        return in_words(self, self.class_names)


def predicted(votes: Votes, *, alpha: float = 0.001, rivals: str = "all") -> Labels:
    """For each target the smoothed classifier's label, or −1: a label that is given is another with probability ≤ `alpha`.

    Needs fewer votes than a certificate: the most voted label must beat the next outcome in an exact test of the two counts.

    >>> from unswayed import Flip
    >>> predicted(Votes.from_counts([[60, 30], [60, 40]], Flip(beta=0.7), entries=9, samples=100), alpha=0.01)
    Labels([ 0, -1])
    """
    certifiable(votes, "strict")
    check_level(alpha)
    counts = votes.counts
    order = np.sort(counts, axis=1)
    silent = votes.no_answer if rivals == "all" else np.zeros_like(votes.no_answer)
    sure = leads(order[:, -1], np.maximum(order[:, -2], silent), alpha)
    label = np.where(sure, counts.argmax(axis=1), -1)
    return Labels(label, votes.class_names, votes.provenance.get("seed"))
