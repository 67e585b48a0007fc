"""A label from votes alone, without a size: what a service answers when nobody asks how safe it is."""

import numpy as np
import numpy.typing as npt

from unswayed.certificates.checking import certifiable
from unswayed.theory.bounds import check_level
from unswayed.theory.ranking import leads
from unswayed.votes import Votes


def predicted(votes: Votes, *, alpha: float = 0.001, rivals: str = "all") -> npt.NDArray[np.int64]:
    """For each target the smoothed classifier's label, or −1: a label that is given is another with probability ≤ `alpha`.

    Needs fewer votes than a certificate: the most voted label must beat the next outcome in an exact test of the two counts.

    >>> from unswayed import Flip
    >>> predicted(Votes.from_counts([[60, 30], [60, 40]], Flip(beta=0.7), entries=9, samples=100), alpha=0.01)
    array([ 0, -1])
    """
    certifiable(votes, "strict")
    check_level(alpha)
    counts = votes.counts
    order = np.sort(counts, axis=1)
    silent = votes.no_answer if rivals == "all" else np.zeros_like(votes.no_answer)
    sure = leads(order[:, -1], np.maximum(order[:, -2], silent), alpha)
    return np.where(sure, counts.argmax(axis=1), -1).astype(np.int64)
