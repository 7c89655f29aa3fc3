"""What a loop of a kernel runs over."""

from __future__ import annotations

from ..frontend.control import KernelRange
from .core import builtin


@builtin
def static_range(*bounds):
    """`range` that is unrolled when the kernel is compiled; its bounds are constants.

    Example: `for i in girih.static_range(4): ...`
    """
    return KernelRange(*bounds, static=True)


@builtin
def range(*bounds, num_stages=None, loop_unroll_factor=None, disallow_acc_multi_buffer=None, flatten=None,
          warp_specialize=None):  # fmt: skip
    """Python's `range`; the keywords are hints for GPUs and have no effect on the result."""
    return KernelRange(*bounds)
