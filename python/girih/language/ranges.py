"""The ranges that loops of a kernel run over."""

from __future__ import annotations

from .core import builtin


@builtin
def static_range(*bounds):
    """`range` that is unrolled when the kernel is compiled; its bounds are constant integers, scalars.

    Example:
        >>> total = 0
        >>> for i in girih.static_range(4):
        ...     total += i
        >>> total
        6
    """
    from ..frontend.control import KernelRange

    return KernelRange(*bounds, static=True)


@builtin
def range(*bounds, num_stages=None, loop_unroll_factor=None, disallow_acc_multi_buffer=None, flatten=None,
          warp_specialize=None):  # fmt: skip
    """Python's `range` of integers, scalars; the keywords are hints for GPUs and have no effect on the result.

    Example:
        >>> total = girih.program_id(0)
        >>> for i in girih.range(0, 100):
        ...     total += i
        >>> total
        4950 : int32
    """
    from ..frontend.control import KernelRange

    return KernelRange(*bounds)
