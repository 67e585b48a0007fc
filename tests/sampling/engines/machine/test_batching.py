"""Finding a batch size: what no longer fits is too large, whenever that turns out."""

import pytest
import torch

from unswayed.sampling.engines.machine.batching import fastest

CPU = torch.device("cpu")


class Memory:
    """Holds so many graphs at a time, and after some calls fewer."""

    def __init__(self, room: int, later: int, calls: int) -> None:
        self.room, self.later, self.calls = room, later, calls

    def __call__(self, size: int) -> None:
        self.calls -= 1
        if size > (self.room if self.calls >= 0 else self.later):
            raise torch.OutOfMemoryError("CUDA out of memory.")


def test_sizes_that_do_not_fit_are_not_chosen():
    assert fastest(Memory(8, 8, 100), CPU) <= 8


def test_a_size_that_fitted_when_others_left_more_room_is_not_chosen():
    sizes = 2 * 5  # 1, 2, 4, 8 fit, each asked twice, and 16 does not
    assert fastest(Memory(8, 2, sizes), CPU) <= 2


def test_where_nothing_fits_any_more_the_smallest_of_the_best_is_tried():
    assert fastest(Memory(8, 0, 10), CPU) <= 2


def test_other_errors_are_the_askers_own():
    def ask(size: int) -> None:
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        fastest(ask, CPU)
