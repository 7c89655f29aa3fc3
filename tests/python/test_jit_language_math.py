"""Elementwise functions of kernels against NumPy, on every type they take and in several shapes."""

import math

import ml_dtypes
import numpy as np
import pytest

import girih
import girih.language as tl

DEVICES = ["cpu", "eval"]
FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
SHAPES = [(1,), (64,), (4, 16), (2, 4, 8)]


@girih.jit
def one(x, out, F: tl.constexpr, SHAPE: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    y = F(tl.reshape(tl.load(x + i), SHAPE))
    tl.static_assert(y.shape == SHAPE and y.dtype == out.dtype.element_ty)
    tl.store(out + i, tl.ravel(y))


@girih.jit
def two(x, y, out, F: tl.constexpr, SHAPE: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    r = F(tl.reshape(tl.load(x + i), SHAPE), tl.reshape(tl.load(y + i), SHAPE))
    tl.static_assert(r.shape == SHAPE and r.dtype == out.dtype.element_ty)
    tl.store(out + i, tl.ravel(r))


def units(result, expected, dtype):
    """The greatest distance in units of the last place of the type; infinities and NaNs must be equal."""
    result = result.astype(np.float64)
    special = ~np.isfinite(expected)
    assert np.array_equal(result[special], expected[special], equal_nan=True)
    info = ml_dtypes.finfo(dtype)
    unit = np.maximum(2.0 ** (np.frexp(expected[~special])[1] - 1) * float(info.eps), float(info.tiny) * float(info.eps))
    return float(np.max(np.abs(result[~special] - expected[~special]) / unit, initial=0))


rng = np.random.default_rng(5)
ANY = np.concatenate([rng.standard_normal(48) * 3, [0.0, -0.0, 1, -1, 0.5, 2, -2, 1e-3, 7, -7, 4, 5, -5, 0.25, 3.75, -3.75]])
POSITIVE = np.abs(ANY) + 0.01


def away(x):
    """The nearest whole number, ties away from zero."""
    whole = np.trunc(x)
    return np.copysign(np.abs(whole) + (np.abs(x - whole) >= 0.5), x)


erf_of = np.vectorize(math.erf)

# The function, what NumPy computes in float64, the arguments, and how many units a result may be off.
UNARY = [
    (tl.exp, np.exp, ANY, 2), (tl.exp2, np.exp2, ANY, 2), (tl.log, np.log, POSITIVE, 3), (tl.log2, np.log2, POSITIVE, 3),
    (tl.sqrt, np.sqrt, POSITIVE, 0.51), (tl.sqrt_rn, np.sqrt, POSITIVE, 0.51), (tl.rsqrt, lambda x: 1 / np.sqrt(x), POSITIVE, 2),
    (tl.sin, np.sin, ANY, 2), (tl.cos, np.cos, ANY, 2), (tl.tan, np.tan, ANY, 4), (tl.sinh, np.sinh, ANY, 4),
    (tl.cosh, np.cosh, ANY, 4), (tl.tanh, np.tanh, ANY, 4), (tl.erf, erf_of, ANY, 2), (tl.sigmoid, lambda x: 1 / (1 + np.exp(-x)), ANY, 4),
    (tl.floor, np.floor, ANY, 0), (tl.ceil, np.ceil, ANY, 0), (tl.abs, np.abs, ANY, 0), (tl.relu, lambda x: np.maximum(x, 0), ANY, 0),
    (tl.rint, np.rint, ANY, 0), (tl.trunc, np.trunc, ANY, 0), (tl.round, away, ANY, 0),
    (tl.expm1, np.expm1, ANY, 4), (tl.log1p, np.log1p, POSITIVE, 4), (tl.extra.libdevice.fast_tanhf, np.tanh, ANY, 4),
    (tl.math.fast_expf, np.exp, ANY, 2),
]  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("case", UNARY, ids=lambda c: c[0].__name__)
def test_functions_of_one(case, dtype, device):
    function, oracle, values, limit = case
    x = values.astype(dtype)
    out = np.zeros_like(x)
    shape = SHAPES[len(function.__name__) % 3 + 1]
    one[1](x, out, function, shape, 64, device=device)
    assert units(out, oracle(x.astype(np.float64)), dtype) <= max(limit, 0)


HALVES = [k / 2 for k in range(-12, 12)] + [0.49999997, -0.49999997, 8388607.5, -8388607.5, 1e30, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("device", [*DEVICES, "sim"])
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize(("function", "oracle"), [(tl.rint, np.rint), (tl.trunc, np.trunc), (tl.round, away)], ids=lambda f: f.__name__)
def test_whole_numbers_and_the_sign_of_zero(function, oracle, dtype, device):
    with np.errstate(over="ignore", invalid="ignore"):
        x = np.array(HALVES).astype(dtype)
        expected = oracle(x.astype(np.float64))
    out = np.zeros_like(x)
    one[1](x, out, function, (32,), 32, device=device)
    result = out.astype(np.float64)
    assert np.array_equal(result, expected, equal_nan=True)
    known = ~np.isnan(expected)
    assert np.array_equal(np.signbit(result[known]), np.signbit(expected[known]))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize(("function", "oracle"), [(tl.expm1, np.expm1), (tl.log1p, np.log1p)], ids=lambda f: f.__name__)
def test_functions_that_are_exact_near_zero(function, oracle, dtype, device):
    powers = [s * 2.0**-k for k in (1, 2, 4, 8, 12, 20, 24) for s in (1, -1)]
    x = np.array([*powers, 0.0, -0.0, -1.0, 5.0, 88.0, np.inf, np.nan, 1e4, 0.3, 0.7, -0.7, -0.9, 1.5, 2.5, 40.0, 60.0, 3.0, 9.0]).astype(dtype)
    with np.errstate(all="ignore"):
        expected = oracle(x.astype(np.float64))
        expected = np.where(np.isinf(expected.astype(dtype).astype(np.float64)), np.sign(expected) * np.inf, expected)
    out = np.zeros_like(x)
    one[1](x, out, function, (32,), 32, device=device)
    assert units(out, expected, dtype) <= 4


EXTREMES = [0.0, -0.0, 20, -20, 89, -89, 200, -200, 1e4, -1e4, np.inf, -np.inf, np.nan, 1e-8, -1e-8, 1]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize(("function", "oracle"), [(tl.sigmoid, lambda x: 1 / (1 + np.exp(-x))), (tl.tanh, np.tanh), (tl.erf, erf_of), (tl.exp, np.exp)])
def test_extremes(function, oracle, dtype, device):
    x = np.array(EXTREMES).astype(dtype)
    out = np.zeros_like(x)
    one[1](x, out, function, (16,), 16, device=device)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = oracle(x.astype(np.float64)).astype(dtype).astype(np.float64)
    tiny = np.abs(expected) < float(ml_dtypes.finfo(dtype).tiny)
    assert np.all(np.abs(out.astype(np.float64)[tiny]) <= float(ml_dtypes.finfo(dtype).tiny))
    assert units(out[~tiny], expected[~tiny], dtype) <= 4


def test_erf_is_exact_to_two_units():
    """On float32, densely; `math.erf` is the oracle."""
    n = 1 << 14
    x = np.concatenate([np.linspace(-4.5, 4.5, n - 2048), np.geomspace(1e-30, 1, 2048)]).astype(np.float32)
    out = np.zeros_like(x)
    one[1](x, out, tl.erf, (n,), n)
    assert units(out, erf_of(x.astype(np.float64)), np.float32) <= 2


BINARY = [
    (tl.add, np.add), (tl.sub, np.subtract), (tl.mul, np.multiply), (tl.maximum, np.fmax), (tl.minimum, np.fmin),
    (tl.fdiv, np.divide), (tl.math.fast_dividef, np.divide),
]  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("case", BINARY, ids=lambda c: c[0].__name__)
def test_functions_of_two(case, dtype, device):
    function, oracle = case
    x, y = ANY.astype(dtype), np.roll(POSITIVE, 7).astype(dtype)
    out = np.zeros_like(x)
    two[1](x, y, out, function, SHAPES[2], 64, device=device)
    assert units(out, oracle(x.astype(np.float64), y.astype(np.float64)), dtype) <= 0.5001


@pytest.mark.parametrize("device", DEVICES)
def test_powers_angles_and_quotients(device):
    x, y = POSITIVE.astype(np.float32), np.roll(ANY, 5).astype(np.float32)
    out = np.zeros_like(x)
    two[1](x, y, out, tl.pow, (64,), 64, device=device)
    assert units(out, np.power(x.astype(np.float64), y), np.float32) <= 8
    two[1](y, x, out, tl.atan2, (64,), 64, device=device)
    assert units(out, np.arctan2(y.astype(np.float64), x), np.float32) <= 4
    two[1](y, x, out, tl.div_rn, (64,), 64, device=device)
    assert np.array_equal(out, y / x)


@girih.jit
def three(x, y, z, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b, c = tl.load(x + i), tl.load(y + i), tl.load(z + i)
    tl.store(out + i, tl.fma(a, b, c))
    tl.store(out + N + i, tl.clamp(a, -1.0, 2.0))
    tl.store(out + 2 * N + i, tl.where(a > b, a, c))
    tl.store(out + 3 * N + i, tl.maximum(a, b, propagate_nan=True))


@pytest.mark.parametrize("device", DEVICES)
def test_functions_of_three(device):
    x, y, z = (np.roll(ANY, k).astype(np.float32) for k in (0, 3, 9))
    x[5] = y[9] = np.nan
    out = np.zeros((4, 64), np.float32)
    three[1](x, y, z, out, 64, device=device)
    a, b, c = (v.astype(np.float64) for v in (x, y, z))
    # The product is exact in float64; adding rounds once there and once more, which matters once in 2^29 times.
    assert units(out[0], a * b + c, np.float32) <= 0.5001
    assert np.array_equal(out[1], np.fmin(np.fmax(x, np.float32(-1)), np.float32(2)))
    assert np.array_equal(out[2], np.where(x > y, x, z), equal_nan=True)
    assert np.array_equal(out[3], np.maximum(x, y), equal_nan=True)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
def test_upper_halves_of_products(dtype, device):
    info, bits = np.iinfo(dtype), np.dtype(dtype).itemsize * 8
    x = np.random.default_rng(2).integers(info.min, info.max, 64, dtype, endpoint=True)
    y = np.roll(x, 5)
    out = np.zeros_like(x)
    two[1](x, y, out, tl.umulhi, (64,), 64, device=device)
    mask = (1 << bits) - 1
    expected = [((int(a) & mask) * (int(b) & mask)) >> bits for a, b in zip(x, y)]
    assert [int(v) & mask for v in out] == expected


@girih.jit
def ceiling(out, n):
    tl.store(out, tl.cdiv(n, 16))
    tl.store(out + 1, tl.cdiv(tl.program_id(0) + 33, 16))
    tl.store(out + 2, tl.next_power_of_2(33))
    tl.store(out + 3, tl.num_programs(0))


def test_integers_of_the_host():
    out = np.zeros(4, np.int32)
    ceiling[1](out, 17)
    assert out.tolist() == [2, 3, 64, 1]
    assert (girih.cdiv(17, 16), girih.next_power_of_2(33), girih.next_power_of_2(1)) == (2, 64, 1)


@girih.jit
def refused(x, F: tl.constexpr):
    F(tl.load(x + tl.arange(0, 4)))


@pytest.mark.parametrize("function", [tl.exp, tl.sqrt, tl.erf, tl.sigmoid, tl.floor, tl.softmax], ids=lambda f: f.__name__)
def test_functions_of_floats_refuse_integers(function):
    with pytest.raises(girih.CompilationError, match=r"is defined for floats, not for int32\[4\]"):
        refused.tile_ir(np.zeros(4, np.int32), function)


@pytest.mark.parametrize("function", [tl.inline_asm_elementwise, tl.xor_sum, tl.reduce_or])
def test_functions_that_are_refused(function):
    with pytest.raises(girih.CompilationError, match="PTX cannot be part|is defined for integers"):
        refused.tile_ir(np.zeros(4, np.float32), function)


@girih.jit
def scaled(x):
    a = tl.load(x + tl.arange(0, 4))
    tl.dot_scaled(a, a, "e4m3", a, a, "e4m3")


def test_scaled_products_are_refused():
    with pytest.raises(girih.CompilationError, match="dot_scaled .* is not supported"):
        scaled.tile_ir(np.zeros(4, np.float32))


@girih.jit
def mapped(x, out):
    i = tl.arange(0, 16)
    a, b = tl.map_elementwise(lambda a, b: (a * b, a - b), tl.load(x + i), 2.0)
    tl.store(out + i, a)
    tl.store(out + 16 + i, b)
    tl.static_assert(tl.logical_or(i < 4, i > 8).dtype == tl.int1)
    tl.static_assert(tl.logical_and(i < 4, i > 8).shape == (16,))
    tl.static_print("compiled", a)


def test_mapping(capsys):
    x, out = np.arange(16, dtype=np.float32), np.zeros((2, 16), np.float32)
    mapped[1](x, out)
    assert np.array_equal(out, [x * 2, x - 2]) and "compiled float32[16]" in capsys.readouterr().out


@pytest.mark.parametrize("device", ["cpu", "eval"])
def test_nans_propagate_under_tritons_names(device):
    @girih.jit
    def kernel(x, out, how: tl.constexpr = tl.PropagateNan.NONE):
        i = tl.arange(0, 4)
        a = tl.load(x + i)
        tl.store(out + i, tl.maximum(a, 1.0, propagate_nan=tl.PropagateNan.ALL))
        tl.store(out + 4 + i, tl.minimum(a, 1.0, propagate_nan=tl.PropagateNan.NONE))
        tl.store(out + 8 + i, tl.clamp(a, 0.0, 1.0, propagate_nan=how))

    x, out = np.array([0, np.nan, 2, 3], np.float32), np.zeros(12, np.float32)
    for how, clamped in ((tl.PropagateNan.NONE, 0), (tl.PropagateNan.ALL, np.nan)):
        kernel[1](x, out, how=how, device=device)
        np.testing.assert_array_equal(out, [1, np.nan, 2, 3, 0, 1, 1, 1, 0, clamped, 1, 1])
