"""One thread a process: two OpenMP threads on a busy machine can be a hundred times slower than one."""

import os

from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
settings.register_profile("patient", deadline=None)  # a busy machine is no bug
settings.load_profile("patient")
