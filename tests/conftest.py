"""One thread a process: two OpenMP threads on a busy machine can be a hundred times slower than one."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
settings.register_profile("patient", deadline=None)  # a busy machine is no bug
settings.load_profile("patient")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first: begun last, one of them would keep a single worker busy in the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture
def two() -> Iterator[None]:
    """Two threads to choose from."""
    import torch  # here, where the number of threads is already set

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)
