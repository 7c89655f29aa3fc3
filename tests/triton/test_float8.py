"""Conversions between floats of 8 bits and others, beside the formats' definitions: all codes one way, all neighbours the other."""

import numpy as np
import pytest
import triton
import triton.language as tl

from girih.triton import Array

# Bits of the fraction, the exponent's bias, and the codes that are finite.
FORMATS = {
    "float8e5": (2, 15, 0x7C),
    "float8e4nv": (3, 7, 0x7F),
    "float8e4b8": (3, 8, 0x80),
    "float8e5b16": (2, 16, 0x80),
    "float8e4b15": (3, 15, 0x7F),
}


@triton.jit
def widened(codes, out, F: tl.constexpr):
    i = tl.arange(0, 256)
    kind: tl.constexpr = getattr(tl, F)
    tl.store(out + i, tl.load(codes + i).to(kind, bitcast=True).to(tl.float32))


@triton.jit
def narrowed(x, codes, F: tl.constexpr, ROUNDING: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    kind: tl.constexpr = getattr(tl, F)
    tl.store(codes + i, tl.load(x + i).to(kind, fp_downcast_rounding=ROUNDING).to(tl.uint8, bitcast=True))


@pytest.fixture(params=["cpu", "eval"], autouse=True)
def device(request, monkeypatch):
    monkeypatch.setenv("GIRIH_DEVICE", request.param)
    for kernel in (widened, narrowed):
        kernel.device_caches.clear()


def numbers(name):
    """The finite numbers that are not negative, by their codes."""
    fraction, bias, finite = FORMATS[name]
    code = np.arange(finite)
    exponent, rest = code >> fraction, (code & (1 << fraction) - 1) / (1 << fraction)
    return np.where(exponent == 0, rest * 2.0 ** (1 - bias), (1 + rest) * 2.0 ** (exponent - bias))


@pytest.mark.parametrize("name", FORMATS)
def test_widening(name):
    out = np.zeros(256, dtype=np.float32).view(Array)
    widened[(1,)](np.arange(256, dtype=np.uint8).view(Array), out, F=name)
    known = numbers(name)
    np.testing.assert_array_equal(np.asarray(out)[: len(known)], known)
    below = np.asarray(out)[129 : 128 + len(known)]
    np.testing.assert_array_equal(below, -known[1:])
    if FORMATS[name][2] == 0x80:
        assert np.isnan(out[0x80])


@pytest.mark.parametrize("rounding", ["rtne", "rtz"])
@pytest.mark.parametrize("name", [name for name in FORMATS if name != "float8e4b15"])
def test_narrowing(name, rounding):
    known = numbers(name)
    middles = (known[1:] + known[:-1]) / 2
    most = known[-1]
    x = np.concatenate([known, middles, np.nextafter(middles, 0), middles * (1 + 2**-20), [most * 1.01, most * 4, np.inf, np.nan]])
    x = np.concatenate([x, -x])
    x = np.concatenate([x, np.zeros(1024 * 2 - len(x))]).astype(np.float32)
    codes = np.zeros(len(x), dtype=np.uint8).view(Array)
    narrowed[(1,)](x.view(Array), codes, F=name, ROUNDING=rounding, N=len(x))
    size = np.minimum(np.abs(x).astype(float), most)
    low = np.searchsorted(known, size, side="right") - 1
    high = np.minimum(low + 1, len(known) - 1)
    if rounding == "rtz":
        expected = low
    else:
        under, over = size - known[low], known[high] - size
        expected = np.where((under < over) | ((under == over) & (low % 2 == 0)), low, high)
    signed = expected | np.where(np.signbit(x) & ((FORMATS[name][2] != 0x80) | (expected != 0)), 0x80, 0)
    number = ~np.isnan(x)
    np.testing.assert_array_equal(np.asarray(codes)[number], signed[number])
    back = np.zeros(256, dtype=np.float32).view(Array)
    widened[(1,)](np.resize(np.asarray(codes)[~number], 256).view(Array), back, F=name)
    assert np.isnan(back).all()


def test_narrowing_to_e4b15():
    """As on NVIDIA's GPUs: to the nearest, halves away from zero, and no more than 1.75."""
    known = numbers("float8e4b15")
    middles = (known[1:] + known[:-1]) / 2
    x = np.resize(np.concatenate([known, -known, middles, -middles, [3.0, -1e4]]), 512).astype(np.float16)
    codes = np.zeros(512, dtype=np.uint8).view(Array)
    narrowed[(1,)](x.view(Array), codes, F="float8e4b15", ROUNDING=None, N=512)
    size = np.minimum(np.abs(x).astype(float), 1.75)
    low = np.searchsorted(known, size, side="right") - 1
    expected = np.where(size - known[low] < known[np.minimum(low + 1, 126)] - size, low, np.minimum(low + 1, 126))
    expected = np.where(size == 1.75, np.searchsorted(known, 1.75), expected)
    np.testing.assert_array_equal(np.asarray(codes), expected | np.where(np.signbit(x), 0x80, 0))
