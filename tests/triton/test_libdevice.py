"""Functions of libdevice on arrays of NumPy's, beside values from elsewhere: NumPy, arithmetic, and series with 50 digits."""

import math

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.language.extra import libdevice

from girih.triton import Array


@triton.jit
def one(x, out, F: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, getattr(libdevice, F)(tl.load(x + i)))


@triton.jit
def two(x, y, out, F: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, getattr(libdevice, F)(tl.load(x + i), tl.load(y + i)))


@pytest.fixture(params=["cpu", "eval"], autouse=True)
def device(request, monkeypatch):
    monkeypatch.setenv("GIRIH_DEVICE", request.param)
    for kernel in (one, two):
        kernel.device_caches.clear()


def of(name, *given, out=None):
    n = triton.next_power_of_2(len(given[0]))
    padded = [np.ascontiguousarray(np.resize(x, n)).view(Array) for x in given]
    result = np.zeros(n, dtype=out or given[0].dtype).view(Array)
    (one if len(given) == 1 else two)[(1,)](*padded, result, F=name, N=n)
    return np.asarray(result)[: len(given[0])]


# x, J0, J1, Y0, Y1, I0, I1, from mpmath with 50 digits.
BESSEL = np.array([
    [0.0010000000474974513, 0.9999997499999919, 0.0004999999612487194, -4.471416581137993, -636.6221369934228, 1.0000002500000393, 0.0005000000862487371],
    [0.25, 0.9844359292958527, 0.12402597732272692, -0.9315730249300587, -2.7041052293152825, 1.015686141223608, 0.12597910894546793],
    [1.0, 0.7651976865579666, 0.4400505857449335, 0.08825696421567696, -0.7812128213002887, 1.2660658777520084, 0.565159103992485],
    [2.40482497215271, 3.039832526197434e-07, 0.5191476236949246, 0.5099244436110061, 0.10274640887297803, 3.0603694234236505, 2.308237513423665],
    [3.5, -0.3801277399872634, 0.1373775273623272, 0.1890219439208265, 0.41018841788751187, 7.3782034322254795, 6.205834922258365],
    [5.5, -0.006843869417819197, -0.34143821542904335, -0.339480592881911, -0.023758238956389618, 42.69464515184779, 38.58816461632739],
    [7.9375, 0.1860275559596514, 0.22525994784844658, 0.21317280841495947, -0.17301076680709104, 403.2951163718128, 376.9616631581294],
    [8.0, 0.1716508071375539, 0.23463634685391463, 0.22352148938756622, -0.1580604617312475, 427.5641157218048, 399.8731367825601],
    [8.125, 0.14129138733820354, 0.25045056135481875, 0.2413402527363095, -0.1267550790958088, 480.61851256566035, 449.9897919220955],
    [12.5, 0.1468840547004211, -0.16548380461475973, -0.1712143068446693, -0.1538382565375012, 30596.335155785153, 29345.74964207113],
    [30.0, -0.08636798358104021, -0.11875106261662294, -0.11729573168666403, 0.08442557066174723, 781672297823.9775, 768532038938.957],
    [75.0, 0.03464391380509706, -0.08513999504482911, -0.08536904764777561, -0.035213785160580484, 1.7226390780358048e+31, 1.7111160152965292e+31],
])


@pytest.mark.parametrize("dtype, within", [("float32", 3e-7), ("float64", 1e-14)])
def test_bessel(dtype, within):
    # The numbers are those of float32, so that both types are given the same.
    x = BESSEL[:, 0].astype(dtype)
    for at, name in enumerate(["j0", "j1", "y0", "y1", "cyl_bessel_i0", "cyl_bessel_i1"], 1):
        found, expected = of(name, x).astype(float), BESSEL[:, at]
        error = np.abs(found - expected) / np.maximum(1, np.abs(expected))
        assert error.max() <= within, (name, x[error.argmax()], error.max())


def test_bessel_at_the_ends():
    x = np.array([0.0, -1.5, np.inf, np.nan], dtype=np.float32)
    np.testing.assert_array_equal(np.isnan(of("y0", x)), [False, True, False, True])
    assert of("y0", x)[0] == -np.inf and of("y1", x)[0] == -np.inf
    np.testing.assert_array_equal(of("j0", x)[[0, 2]], [1, 0])
    assert of("j1", x)[1] == -of("j1", -x)[1] and of("cyl_bessel_i0", x)[2] == np.inf


def integers(bits):
    rng = np.random.default_rng(bits)
    some = [0, 1, -1, 2, 1 << bits - 2, -(1 << bits - 1), (1 << bits - 1) - 1]
    x = rng.integers(-(1 << bits - 1), (1 << bits - 1) - 1, 57, dtype=np.int64) >> rng.integers(0, bits - 1, 57)
    return np.concatenate([some, x]).astype(f"int{bits}")


@pytest.mark.parametrize("bits", [32, 64])
def test_bits(bits):
    x = integers(bits)
    words = [int(v) & (1 << bits) - 1 for v in x]
    assert of("clz", x, out="int32").tolist() == [bits - v.bit_length() for v in words]
    assert of("ffs", x, out="int32").tolist() == [(v & -v).bit_length() for v in words]
    assert of("popc", x, out="int32").tolist() == [v.bit_count() for v in words]
    reverse = [int(f"{v:0{bits}b}"[::-1], 2) for v in words]
    assert [int(v) & (1 << bits) - 1 for v in of("brev", x)] == reverse


def test_products_and_averages():
    x, y = integers(32), integers(32)[::-1].copy()
    pairs = [(int(a), int(b)) for a, b in zip(x, y)]
    low = lambda v: ((v & 0xFFFFFF) ^ 0x800000) - 0x800000  # noqa: E731
    assert of("mulhi", x, y).tolist() == [a * b >> 32 for a, b in pairs]
    wrapped = np.array([low(a) * low(b) & 0xFFFFFFFF for a, b in pairs], dtype=np.uint32).view(np.int32)
    assert of("mul24", x, y).tolist() == wrapped.tolist()
    assert of("hadd", x, y).tolist() == [a + b >> 1 for a, b in pairs]
    assert of("rhadd", x, y).tolist() == [a + b + 1 >> 1 for a, b in pairs]


def test_floats():
    x = np.array([0.0, 0.5, -0.5, 0.49999997, 1.5, -2.5, 8388609.0, -1e30, np.inf, 7.25], dtype=np.float32)
    away = np.array([0, 1, -1, 0, 2, -3, 8388609, -1e30, np.inf, 7], dtype=np.float32)
    np.testing.assert_array_equal(of("round", x), away)
    np.testing.assert_array_equal(of("saturatef", x), np.clip(x, 0, 1))
    y = x[::-1].copy()
    np.testing.assert_array_equal(of("fdim", x, y), np.where(x > y, x - y, 0).astype(np.float32))
    np.testing.assert_array_equal(of("float_as_int", x, out="int32"), x.view(np.int32))


@pytest.mark.parametrize("word, towards", [("rz", None), ("rd", -np.inf), ("ru", np.inf)])
def test_rounding(word, towards):
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((2, 64)).astype(np.float32)
    for name, exact in [("add", x.astype(float) + y), ("mul", x.astype(float) * y)]:
        # The sum and the product of two of float32 are exact, or nearly so, in float64.
        near = exact.astype(np.float32)
        goal = 0.0 if towards is None else towards
        beyond = np.abs(near) > np.abs(exact) if towards is None else (near > exact if goal < 0 else near < exact)
        expected = np.where(beyond, np.nextafter(near, np.float32(goal)), near)
        np.testing.assert_array_equal(of(f"{name}_{word}", x, y), expected)


def close(found, expected, places=2e-7):
    """Equal within some of the last place of float32; what is infinite, NaN or zero is so in both, with the same sign."""
    expected = np.asarray(expected, dtype=np.float64).astype(np.float32)
    special = ~np.isfinite(expected) | (expected == 0)
    np.testing.assert_array_equal(found[special], expected[special])
    np.testing.assert_array_equal(np.signbit(found[special]), np.signbit(expected[special]))
    np.testing.assert_allclose(found[~special], expected[~special], rtol=places, atol=0)


def guarded(f):
    def of_numbers(*x):
        try:
            return f(*map(float, x))
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return np.vectorize(of_numbers, otypes=[np.float64])


NUMBERS = np.concatenate([
    [0.0, -0.0, 0.5, 1.0, -1.0, 2.5, 3.0, -3.0, 7.25, 1e-30, 16777216.0, -1e-40],
    np.random.default_rng(3).standard_normal(52) * 4,
]).astype(np.float32)  # fmt: skip


def test_tails():
    x = np.clip(NUMBERS, -9, 10).astype(np.float32)
    close(of("erfc", x), guarded(math.erfc)(x), 3e-7)
    close(of("normcdf", x), 0.5 * guarded(math.erfc)(x.astype(float) * -math.sqrt(0.5)), 3e-7)
    close(of("erfcx", np.abs(x)), guarded(lambda v: math.exp(v * v) * math.erfc(v))(np.abs(x)), 3e-7)
    assert of("erfcx", np.array([1e6], np.float32))[0] == np.float32(1e-6 / math.sqrt(math.pi))


def test_gamma():
    x = np.concatenate([NUMBERS, [35.5, -0.5, -1.5, -2.5, 34.0, 40.0, np.inf]]).astype(np.float32)
    x = x[(x > 0) | (x != np.floor(x))]
    close(of("tgamma", x), guarded(math.gamma)(x), 1e-6)
    ends = of("tgamma", np.array([0.0, -0.0, -1.0, -2.0], np.float32))
    np.testing.assert_array_equal(ends, np.array([np.inf, -np.inf, np.nan, np.nan], np.float32))


def test_turns():
    exact = {"sinpi": [0.0, 1.0, 0.0, -1.0], "cospi": [1.0, 0.0, -1.0, 0.0]}
    for name, values in exact.items():
        halves = np.arange(-8, 8, dtype=np.float32) / 2
        np.testing.assert_array_equal(of(name, halves), np.array(values * 4, np.float32))
        x = np.random.default_rng(5).uniform(-3, 3, 64).astype(np.float32)
        function = np.sin if name == "sinpi" else np.cos
        np.testing.assert_allclose(of(name, x), function(np.pi * x.astype(float)), rtol=1e-6, atol=1e-7)


def test_remainders_and_exponents():
    x, y = NUMBERS, np.roll(NUMBERS, 7)
    close(of("remainder", x, y), guarded(math.remainder)(x, y), 0)
    ints = np.resize(np.array([0, 1, -1, 5, -140, 200, 3, -7], np.int32), len(x))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(of("ldexp", x, ints), np.ldexp(x, ints))
        np.testing.assert_array_equal(of("scalbn", x, ints), np.ldexp(x, ints))
    np.testing.assert_array_equal(of("nextafter", x, y), np.nextafter(x, y))
    some = x[x != 0]
    exponents = np.frexp(some)[1] - 1
    np.testing.assert_array_equal(of("ilogb", some, out="int32"), exponents)
    np.testing.assert_array_equal(of("logb", some), exponents.astype(np.float32))
    assert of("logb", np.zeros(1, np.float32))[0] == -np.inf
    close(of("rcbrt", some), 1 / np.cbrt(some.astype(float)))
    close(of("rhypot", some, some), 1 / np.hypot(some.astype(float), some))


def test_conversions():
    x = np.array([0.5, 1.5, -0.5, -1.5, 2.5, 1e6 + 0.5, -7.75, 7.25], np.float32)
    rounds = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}
    for word, function in rounds.items():
        assert of(f"float2int_{word}", x, out="int32").tolist() == function(x).tolist()
        assert of(f"float2ll_{word}", x, out="int64").tolist() == function(x).tolist()
        assert of(f"double2int_{word}", x.astype(float), out="int32").tolist() == function(x).tolist()
        size = np.abs(x)
        assert of(f"float2uint_{word}", size, out="uint32").tolist() == function(size).tolist()
    assert of("llrint", x, out="int64").tolist() == np.rint(x).tolist()
    assert of("llround", x, out="int64").tolist() == [1, 2, -1, -2, 3, 1000001, -8, 7]
    ints = integers(32)
    np.testing.assert_array_equal(of("int2float_rn", ints, out="float32"), ints.astype(np.float32))
    np.testing.assert_array_equal(of("uint2float_rn", ints.view(np.uint32), out="float32"), ints.view(np.uint32).astype(np.float32))
    np.testing.assert_array_equal(of("int2double_rn", ints, out="float64"), ints.astype(float))
    doubles = np.array([1.1, -2e300, 3.0], float)
    words = doubles.view(np.int32)
    assert of("double2loint", doubles, out="int32").tolist() == words[::2].tolist()
    assert of("double2hiint", doubles, out="int32").tolist() == words[1::2].tolist()
    np.testing.assert_array_equal(of("hiloint2double", words[1::2].copy(), words[::2].copy(), out="float64"), doubles)
    for word, towards in [("rz", 0.0), ("rd", -np.inf), ("ru", np.inf)]:
        near, exact = (1 / x).astype(np.float32), 1 / x.astype(float)
        beyond = np.abs(near) > np.abs(exact) if towards == 0 else (near > exact if towards < 0 else near < exact)
        expected = np.where(beyond, np.nextafter(near, np.float32(towards)), near)
        np.testing.assert_array_equal(of(f"rcp_{word}", x), expected)
