"""Kernels with a mistake each, and the launch that shows it; test_jit_errors.py compares what the user sees.

Each file of this folder has one subject; messages are written in the order of this import.
"""

from . import shapes, dtypes, control_flow, names, launches, compile_time, definitions, launch_arguments, habits  # noqa: F401, I001
from .collect import MISTAKES

__all__ = ["MISTAKES"]
