"""The tests run with Girih as Triton's backend, on tensors of the CPU."""

import os
import sys

os.environ["GIRIH_TRITON"] = "1"
# Do not use kernels that Triton compiled before, for another Girih.
os.environ.setdefault("TRITON_ALWAYS_COMPILE", "1")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import girih.triton  # noqa: F401, E402  (offers the backend)
