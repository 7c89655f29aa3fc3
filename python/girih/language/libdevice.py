"""The names of CUDA's libdevice, as in `tl.extra.libdevice.rint(x)`: the functions of `math` and their fast forms.

The fast forms are here as exact as the others.
"""

from .elementwise import cos, exp, fdiv, log, log2, pow, sin, tan, tanh
from .math import *  # noqa: F403
from .math import __all__ as _math

fast_cosf, fast_expf, fast_logf, fast_log2f, fast_sinf, fast_tanf, fast_tanhf = cos, exp, log, log2, sin, tan, tanh
fast_dividef, fast_powf = fdiv, pow

__all__ = [
    *_math, "fast_cosf", "fast_dividef", "fast_expf", "fast_log2f", "fast_logf", "fast_powf", "fast_sinf", "fast_tanf",
    "fast_tanhf",
]  # fmt: skip
