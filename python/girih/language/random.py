"""Random numbers that depend on a seed and a counter alone: the same for every grid and every machine.

Source: Philox 4x32 with 10 rounds, from J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random
numbers: as easy as 1, 2, 3", SC 2011. The numbers are those that Triton's functions of these names give.
"""

from __future__ import annotations

import math

from ..frontend.errors import Code
from ..frontend import types as ty
from ..frontend.tensor import (
    as_tensor,
    broadcast_to,
    cast,
    common_shape,
    constant,
    fail,
    is_number,
    select,
    tensor,
    unwrap,
)
from . import elementwise
from .core import builtin

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10


def _word(x) -> tensor:
    """The lower 32 bits as uint32."""
    x = unwrap(x)
    if is_number(x):
        return constant(int(x) & 0xFFFFFFFF, ty.uint32)
    return cast(as_tensor(x), ty.uint32)


def _high(x) -> tensor:
    """The upper 32 bits of 64."""
    x = unwrap(x)
    if is_number(x):
        return constant(int(x) >> 32 & 0xFFFFFFFF, ty.uint32)
    x = as_tensor(x)
    return cast(cast(x, ty.uint64) >> 32, ty.uint32) if x.dtype.bits == 64 else constant(0, ty.uint32)


@builtin
def philox(seed, c0, c1, c2, c3, n_rounds=ROUNDS):
    """Four words uint32 for a 64-bit seed and a counter of four words, integers of any shapes that broadcast.

    Example:
        >>> girih.philox(7, 0, 0, 0, 0)
        4099963437 : uint32
        3221879260 : uint32
        490388034 : uint32
        367897730 : uint32
    """
    tiles = [_word(c) for c in (c0, c1, c2, c3)]
    shape = common_shape(*tiles)
    a, b, c, d = (broadcast_to(t, shape) for t in tiles)
    k0, k1 = _word(seed), _high(seed)
    for _ in range(unwrap(n_rounds)):
        a, b, c, d = (
            elementwise.umulhi(c, constant(MULTIPLIERS[1], ty.uint32)) ^ b ^ k0,
            c * constant(MULTIPLIERS[1], ty.uint32),
            elementwise.umulhi(a, constant(MULTIPLIERS[0], ty.uint32)) ^ d ^ k1,
            a * constant(MULTIPLIERS[0], ty.uint32),
        )
        k0 = k0 + constant(WEYL[0], ty.uint32)
        k1 = k1 + constant(WEYL[1], ty.uint32)
    return a, b, c, d


@builtin
def randint4x(seed, offset, n_rounds=ROUNDS):
    """Four tiles of random uint32 of the shape of `offset`.

    Example:
        >>> girih.randint4x(7, girih.arange(0, 2))
        [4099963437, 1747881627] : uint32[2]
        [3221879260, 3415718931] : uint32[2]
        [490388034, 737869675] : uint32[2]
        [367897730, 4113952422] : uint32[2]
    """
    offset = as_tensor(offset)
    if not offset.dtype.is_int():
        raise fail(f"the offset must be a tile of integers, not {offset.describe()}", code=Code.ELEMENT_TYPE)
    return philox(seed, offset, _high(offset), 0, 0, n_rounds)


@builtin
def randint(seed, offset, n_rounds=ROUNDS):
    """Random uint32 of the shape of `offset`, a tile of integers that counts the numbers drawn.

    Example:
        >>> girih.randint(7, girih.arange(0, 4))
        [4099963437, 1747881627, 26092480, 1675892246] : uint32[4]
    """
    return randint4x(seed, offset, n_rounds)[0]


@builtin
def uint_to_uniform_float(x):
    """Bits to [0, 1), float32 of the shape of `x`: the absolute value of the signed word of 32 or 64 bits, scaled.

    Example:
        >>> girih.uint_to_uniform_float(girih.arange(0, 2) * (1 << 30))
        [0, 0.5] : float32[2]
    """
    x = as_tensor(x)
    if not x.dtype.is_int() or x.dtype.bits < 32:
        raise fail(f"only integers of 32 or 64 bits become uniform numbers, not {x.describe()}", code=Code.ELEMENT_TYPE)
    wide = x.dtype.bits == 64
    x = cast(x, ty.int64 if wide else ty.int32)
    folded = select(x < 0, -x - 1, x)
    return cast(folded, ty.float32) * (1.0842020432385337e-19 if wide else 4.6566127342e-10)


@builtin
def rand(seed, offset, n_rounds=ROUNDS):
    """Random float32, uniform in [0, 1), of the shape of `offset`.

    Example:
        >>> girih.rand(7, girih.arange(0, 4))
        [0.0908057, 0.813921, 0.0121503, 0.780398] : float32[4]
    """
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


@builtin
def rand4x(seed, offset, n_rounds=ROUNDS):
    """Four tiles of random float32, uniform in [0, 1).

    Example:
        >>> girih.rand4x(7, girih.arange(0, 2))
        [0.0908057, 0.813921] : float32[2]
        [0.499696, 0.409432] : float32[2]
        [0.228355, 0.343597] : float32[2]
        [0.171316, 0.0842916] : float32[2]
    """
    return tuple(uint_to_uniform_float(x) for x in randint4x(seed, offset, n_rounds))


@builtin
def pair_uniform_to_normal(u1, u2):
    """Two normal float32 of two uniform ones, of any shape (G. E. P. Box and M. E. Muller, 1958).

    Example:
        >>> girih.pair_uniform_to_normal(0.5, 0.0)
        1.17741 : float32
        0 : float32
    """
    radius = elementwise.sqrt(-2.0 * elementwise.log(elementwise.maximum(u1, 1.0e-7)))
    angle = (2.0 * math.pi) * u2
    return radius * elementwise.cos(angle), radius * elementwise.sin(angle)


@builtin
def randn(seed, offset, n_rounds=ROUNDS):
    """Random float32, normal with mean 0 and deviation 1, of the shape of `offset`.

    Example:
        >>> girih.randn(7, girih.arange(0, 4))
        [-2.19044, -0.540578, 2.95324, -0.704202] : float32[4]
    """
    x, y, _, _ = randint4x(seed, offset, n_rounds)
    return pair_uniform_to_normal(uint_to_uniform_float(x), uint_to_uniform_float(y))[0]


@builtin
def randn4x(seed, offset, n_rounds=ROUNDS):
    """Four tiles of random float32, normal with mean 0 and deviation 1.

    Example:
        >>> girih.randn4x(7, girih.arange(0, 2))
        [-2.19044, -0.540578] : float32[2]
        [0.00419029, 0.345774] : float32[2]
        [0.815481, 1.26145] : float32[2]
        [1.51285, 0.738459] : float32[2]
    """
    a, b, c, d = (uint_to_uniform_float(x) for x in randint4x(seed, offset, n_rounds))
    return (*pair_uniform_to_normal(a, b), *pair_uniform_to_normal(c, d))
