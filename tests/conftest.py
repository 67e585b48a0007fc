"""One thread a process: two OpenMP threads on a busy machine can be a hundred times slower than one."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
settings.register_profile("patient", deadline=None)  # a busy machine is no bug
settings.load_profile("patient")


@pytest.fixture
def two() -> Iterator[None]:
    """Two threads to choose from."""
    import torch  # here, where the number of threads is already set

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)
