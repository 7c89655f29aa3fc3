"""NumPy's arrays as arguments of Triton's kernels, which take what has a ``data_ptr``."""

import numpy


class Array(numpy.ndarray):
    """An array of NumPy's that a Triton kernel takes; the memory is that of the array it is a view of.

    Example:
        >>> x = numpy.ones(1000, dtype="float32").view(girih.triton.Array)
        >>> add[(4,)](x, x, out, 1000, BLOCK=256)
    """

    def data_ptr(self):
        return self.ctypes.data
