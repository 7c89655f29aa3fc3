"""``cupy.fft``: NumPy's."""

import numpy.fft as _source

from ._proxy import falling_through

__getattr__ = falling_through(__name__, _source)
