"""One thread a process: two OpenMP threads on a busy machine can be a hundred times slower than one."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
