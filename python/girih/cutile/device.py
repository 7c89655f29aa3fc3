"""The device that programs see when they ask, the same to PyTorch and CuPy as to cuTile."""

import os

NAME = "Girih (CPU)"
# The driver reports the same capability; cuTile then offers every operation and type.
CAPABILITY = (10, 0)
VERSION = 13040
SHARED_MEMORY = 232448


def processors():
    """How many blocks run at once."""
    return int(os.environ.get("GIRIH_THREADS") or 0) or len(os.sched_getaffinity(0))


ATTRIBUTES = {"MaxThreadsPerBlock": 1024, "WarpSize": 32, "MaxSharedMemoryPerBlockOptin": SHARED_MEMORY}
