"""Element types as NumPy sees them, and exact arithmetic on them.

Values travel as arrays of bit patterns (uint8 to uint64, one element each). `decode` gives their exact values and
`encode` rounds an exact rational number once, in any rounding mode; both are written from the formats' definitions.
"""

import warnings
from fractions import Fraction
from math import inf, isqrt, nan

import ml_dtypes
import numpy as np

INTS = ["i1", "i8", "i16", "i32", "i64"]
FLOATS = ["f16", "bf16", "f32", "f64"]
SMALL = ["f8E4M3FN", "f8E5M2", "f8E8M0FNU", "f8E5M3FNU", "f4E2M1FN"]
EVERY_FLOAT = FLOATS + ["tf32"] + SMALL
NUMBERS = INTS + EVERY_FLOAT

BITS = {"i1": 1, "i4": 4, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "f16": 16, "bf16": 16, "f32": 32, "tf32": 32, "f64": 64}
BITS |= {"f8E4M3FN": 8, "f8E5M2": 8, "f8E8M0FNU": 8, "f8E5M3FNU": 8, "f4E2M1FN": 4}

# exponent bits, fraction bits, bias, signed, what the largest exponent holds
SHAPES = {
    "f16": (5, 10, 15, True, "ieee"),
    "bf16": (8, 7, 127, True, "ieee"),
    "f32": (8, 23, 127, True, "ieee"),
    "tf32": (8, 10, 127, True, "ieee"),
    "f64": (11, 52, 1023, True, "ieee"),
    "f8E5M2": (5, 2, 15, True, "ieee"),
    "f8E4M3FN": (4, 3, 7, True, "nan"),
    "f8E5M3FNU": (5, 3, 15, False, "nan"),
    "f8E8M0FNU": (8, 0, 127, False, "nan"),
    "f4E2M1FN": (2, 1, 1, True, "finite"),
}
ML = {
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
}
MODES = ["nearest_even", "zero", "negative_inf", "positive_inf"]


def is_int(dtype):
    return dtype[0] == "i"


def carrier(dtype):
    """The unsigned NumPy type that holds one element's bits."""
    return {1: np.uint8, 4: np.uint8, 8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}[BITS[dtype]]


def storage(dtype, bits):
    """Bit patterns as the array that goes into a .npy file."""
    view = {"f16": np.float16, "f32": np.float32, "tf32": np.float32, "f64": np.float64, "i1": np.bool_}.get(dtype)
    return bits.astype(np.bool_) if dtype == "i1" else bits.view(view) if view else bits


def mask(dtype):
    return (1 << BITS[dtype]) - 1


def bits_of(dtype, numbers):
    """Python numbers, rounded to nearest where they are floats, as bit patterns."""
    if is_int(dtype):
        return np.array([int(x) & mask(dtype) for x in numbers], carrier(dtype))
    return np.array([encode(dtype, x) for x in numbers], carrier(dtype))


def integers(dtype, bits, signed=True):
    """Bit patterns as Python integers."""
    top = 1 << (BITS[dtype] - 1)
    return [int(b) - 2 * top if signed and int(b) & top else int(b) for b in bits.ravel()]


def decode(dtype, bits):
    """One float's bits as a float: exact for every format. Not-a-numbers are nan."""
    if dtype == "f64":
        return float(np.uint64(bits).view(np.float64))
    if dtype in ("f32", "tf32"):
        return float(np.uint32(bits).view(np.float32))
    e, f, bias, signed, special = SHAPES[dtype]
    bits = int(bits)
    sign = -1.0 if signed and bits >> (e + f) & 1 else 1.0
    code = bits & ((1 << (e + f)) - 1)
    field, fraction = code >> f, code & ((1 << f) - 1)
    if special == "ieee" and field == (1 << e) - 1:
        return nan if fraction else sign * inf
    if special == "nan" and code == (1 << (e + f)) - 1:
        return nan
    if field == 0 and dtype != "f8E8M0FNU":
        return sign * fraction * 2.0 ** (1 - bias - f)
    return sign * ((1 << f) + fraction) * 2.0 ** (field - bias - f)


def values(dtype, bits):
    """Bit patterns as float64."""
    table = {8: 256, 4: 16, 16: 65536}.get(BITS[dtype])
    if dtype in ("f32", "tf32"):
        return bits.view(np.float32).astype(np.float64)
    if dtype == "f64":
        return bits.view(np.float64)
    if dtype == "f16":
        return bits.view(np.float16).astype(np.float64)
    if dtype == "bf16":
        return bits.view(ml_dtypes.bfloat16).astype(np.float64)
    return np.array([decode(dtype, b) for b in range(table)])[bits]


def nan_bits(dtype):
    e, f, _, _, special = SHAPES[dtype]
    code = ((1 << e) - 1) << f | 1 << (f - 1) if special == "ieee" else (1 << (e + f)) - 1
    return code << (13 if dtype == "tf32" else 0)


def encode(dtype, x, mode="nearest_even", minus_zero=False):
    """A float or Fraction rounded once. `minus_zero` is the sign of an exact zero given as a Fraction."""
    e, f, bias, signed, special = SHAPES[dtype]
    pad = 13 if dtype == "tf32" else 0
    top, ones = 1 << (e + f), (1 << (e + f)) - 1
    infinity = ((1 << e) - 1) << f
    largest = {"ieee": infinity - 1, "nan": ones - 1, "finite": ones}[special]
    over = {"ieee": infinity, "nan": ones, "finite": ones}[special]
    if x != x:
        return nan_bits(dtype)
    negative = minus_zero if x == 0 and isinstance(x, Fraction) else str(x).startswith("-")
    sign = top if negative and signed else 0
    if x in (inf, -inf):
        return (over if special == "nan" else sign | over) << pad
    n, d = abs(x).as_integer_ratio()
    if n == 0:
        return sign << pad
    exponent = n.bit_length() - d.bit_length()
    if (n << -exponent if exponent < 0 else n) < (d << exponent if exponent > 0 else d):
        exponent -= 1
    lowest = -bias if dtype == "f8E8M0FNU" else 1 - bias
    if dtype == "f8E8M0FNU" and exponent < lowest:
        return 0
    unit = max(exponent, lowest) - f
    n, d = (n << -unit, d) if unit < 0 else (n, d << unit)
    kept, rest = divmod(n, d)
    away = {"zero": False, "negative_inf": negative, "positive_inf": not negative}.get(mode)
    if away is None:
        tie = {"nearest_even": kept & 1 == 1, "nearest_away": True}[mode]
        kept += 2 * rest > d or (2 * rest == d and tie)
    else:
        kept += away and rest != 0
    code = kept if kept < 1 << f else kept + ((unit + f + bias - 1) << f)
    if dtype == "f8E8M0FNU":
        code = unit + bias + (kept > 1)
    if code > largest:
        code = largest if away is False else over
        if special == "nan" and away is not False:
            return ones
    return (sign | code) << pad


def flush(dtype, x):
    """Flush-to-zero, f32 only."""
    return x * 0.0 if x == x and abs(x) < 2.0**-126 else x


def flush_bits(bits):
    bits = bits.copy()
    small = (bits & 0x7F800000) == 0
    bits[small] &= np.uint32(0x80000000)
    return bits


def sqrt_sticky(x):
    """The square root of a positive rational to many bits, its last bit set where it is not exact."""
    n, d = x.as_integer_ratio()
    k = max(0, 140 + (d.bit_length() - n.bit_length()) // 2)
    scaled, rest = divmod(n << (2 * k), d)
    root = isqrt(scaled)
    exact = root * root == scaled and rest == 0
    return Fraction(2 * root + (not exact), 2 << k)


def exact(op, args):
    """The result of a float operation: a float where it is special, otherwise (Fraction, sign of zero, or None where
    the rounding mode gives it)."""
    if any(x != x for x in args):
        return nan
    signs = [np.signbit(x) for x in args]
    if op == "sqrt":
        (x,) = args
        return nan if x < 0 else x if x in (0, inf) else (sqrt_sticky(Fraction(x)), False)
    if op == "sub":
        args, signs, op = [args[0], -args[1]], [signs[0], not signs[1]], "add"
    if any(x in (inf, -inf) for x in args):
        with np.errstate(all="ignore"):
            a = [np.float64(x) for x in args]
            # A finite operand's size does not matter beside an infinity, its being zero and its sign do.
            a = [x if x in (inf, -inf, 0) else np.copysign(1.0, x) for x in a]
            return float({"add": lambda: a[0] + a[1], "mul": lambda: a[0] * a[1], "div": lambda: a[0] / a[1],
                          "fma": lambda: a[0] * a[1] + a[2]}[op]())
    f = [Fraction(x) for x in args]
    if op == "add":
        return f[0] + f[1], signs[0] if signs[0] == signs[1] else None
    minus = bool(signs[0] != signs[1])
    if op == "mul":
        return f[0] * f[1], minus
    if op == "div":
        if f[1] == 0:
            return nan if f[0] == 0 else -inf if minus else inf
        return f[0] / f[1], minus
    return f[0] * f[1] + f[2], minus if minus == signs[2] else None


def arithmetic(op, dtype, operands, ftz=False):
    """{mode: bits} of add, sub, mul, div, fma or sqrt on arrays of bits."""
    if ftz:
        operands = [flush_bits(o) for o in operands]
    lists = [values(dtype, o).tolist() for o in operands]
    results = [exact(op, list(args)) for args in zip(*lists)]
    out = {}
    for mode in MODES:
        bits = np.zeros(len(results), carrier(dtype))
        for i, r in enumerate(results):
            if isinstance(r, tuple):
                minus = mode == "negative_inf" if r[1] is None else bool(r[1])
                bits[i] = encode(dtype, r[0], mode, minus)
            else:
                bits[i] = encode(dtype, r, mode)
        out[mode] = flush_bits(bits) if ftz else bits
    return out


def same(dtype, got, want):
    """Where two arrays of bits are equal; NaNs are."""
    equal = got == want
    if not is_int(dtype):
        equal |= np.isnan(values(dtype, got)) & np.isnan(values(dtype, want))
    return equal


def ulps(dtype, got, want):
    """How far the bits `got` lie from the long doubles `want`, in units of the last place of `want`."""
    e, f, bias, _, _ = SHAPES[dtype]
    with np.errstate(all="ignore"):
        got = values(dtype, got).astype(np.longdouble)
        _, exponent = np.frexp(want)
        unit = np.ldexp(np.longdouble(1), np.maximum(exponent - 1, 1 - bias) - f)
        error = np.abs(got - want) / unit
        largest = np.ldexp(np.longdouble(2) - np.ldexp(np.longdouble(1), -f), (1 << e) - 2 - bias)
        beyond = np.abs(want) >= largest
        error = np.where(beyond & np.isinf(got) & (np.sign(got) == np.sign(want)), 0, error)
        error = np.where(np.isnan(want), np.where(np.isnan(got), 0, inf), error)
        error = np.where(np.isinf(want), np.where(got == want, 0, inf), error)
        error = np.where((want == 0) & (got == 0), np.where(np.signbit(got) == np.signbit(want), 0, inf), error)
        return np.where(np.isnan(error), inf, error)


warnings.filterwarnings("ignore", category=RuntimeWarning)
rng = np.random.default_rng(20)


def random_bits(dtype, n):
    return (rng.integers(0, 1 << 63, n, dtype=np.uint64) * np.uint64(2) + rng.integers(0, 2, n, dtype=np.uint64)).astype(
        carrier(dtype)
    ) & carrier(dtype)(mask(dtype))


def specials(dtype):
    """Sixteen bit patterns that go wrong first."""
    if is_int(dtype):
        m = mask(dtype)
        half = 1 << (BITS[dtype] - 1)
        out = [0, 1, m, half, half - 1, half + 1, m - 1, 2, 3, 7, half >> 1, m ^ 6, 5, 10, 100 & m, m - 9 & m]
        return np.array([x & m for x in out], carrier(dtype))
    e, f, bias, _, _ = SHAPES[dtype]
    tiny, largest = 2.0 ** (1 - bias - f), (2 - 2.0**-f) * 2.0 ** ((1 << e) - 2 - bias)
    numbers = [0.0, -0.0, 1.0, -1.0, 0.5, -1.5, 2.0, 3.0, inf, -inf, nan, tiny, -(2.0 ** (1 - bias) - tiny), 2.0 ** (1 - bias),
               largest, -largest]
    return bits_of(dtype, numbers)


def operands(dtype, count, n=512):
    """`count` arrays of n bit patterns: every pair of special values, then numbers of all sizes and moderate ones."""
    s = specials(dtype)
    first = [np.repeat(s, 16), np.tile(s, 16), rng.permutation(np.repeat(s, 16))][:count]
    return [np.concatenate([x, random_bits(dtype, n // 4), moderate(dtype, n - n // 4 - 256)]) for x in first]


def moderate(dtype, n):
    """Numbers of ordinary size, some of them equal to others."""
    if is_int(dtype):
        return np.array([int(x) & mask(dtype) for x in rng.integers(-20, 100, n)], carrier(dtype))
    x = rng.standard_normal(n) * 4
    x[:: 5] = np.round(x[::5])
    return bits_of(dtype, x.tolist())
