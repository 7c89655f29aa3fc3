"""Tuples as parameters and values, frozen dataclasses, enumerations."""
import enum
from dataclasses import dataclass, replace

import cupy as cp
import numpy as np
import cuda.tile as ct


class Blend(enum.IntEnum):
    ADD = 0
    MULTIPLY = 1
    DIFFERENCE = 2


class Side(enum.Enum):
    LEFT = "left"
    RIGHT = "right"


@dataclass(frozen=True)
class Complex:
    re: ct.Tile
    im: ct.Tile

    def __add__(self, other):
        return Complex(self.re + other.re, self.im + other.im)

    def __mul__(self, other):
        return Complex(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    def norm(self):
        return self.re * self.re + self.im * self.im


@dataclass(frozen=True)
class Settings:
    tile: int
    scale: float = 2.0
    side: Side = Side.LEFT


SETTINGS = Settings(8, side=Side.RIGHT)


@ct.kernel
def combine(arrays, numbers, result, mode: ct.Constant[Blend], n: ct.Constant[int]):
    """`arrays` is a tuple of two arrays, `numbers` one of two scalars."""
    x, y = arrays
    a, b = ct.load(x, (0,), (n,)), ct.load(y, (0,), (n,))
    a, b = a * numbers[0], b * numbers[1]
    if mode == Blend.ADD:
        value = a + b
    elif mode == Blend.MULTIPLY:
        value = a * b
    else:
        value = ct.abs(a - b)
    ct.store(result, (0,), value)


@ct.kernel
def nested(data, sizes: ct.Constant, result):
    """Tuples within tuples; their structure is known when compiling."""
    (x, (y, factor)), offset = data
    rows, columns = sizes
    tile = ct.load(x, (0, 0), (rows, columns)) + ct.load(y, (0, 0), (rows, columns)) * factor
    ct.store(result, (0, 0), tile + offset)
    ct.static_assert(len(data) == 2 and len(sizes) == 2)


@ct.kernel
def mandelbrot(reals, imaginaries, counts, n: ct.Constant[int]):
    """A dataclass of two tiles goes round a loop."""
    c = Complex(ct.load(reals, (0,), (n,)), ct.load(imaginaries, (0,), (n,)))
    z = Complex(ct.zeros((n,), dtype=ct.float32), ct.zeros((n,), dtype=ct.float32))
    count = ct.zeros((n,), dtype=ct.int32)
    for _ in range(20):
        inside = z.norm() < 4.0
        count = count + ct.where(inside, 1, 0)
        moved = z * z + c
        z = Complex(ct.where(inside, moved.re, z.re), ct.where(inside, moved.im, z.im))
    ct.store(counts, (0,), count)


@ct.kernel
def configured(x, result):
    """Settings from the surrounding module, changed copies of them, and an enumeration's member."""
    settings = replace(SETTINGS, scale=0.5)
    tile = ct.load(x, (0,), (settings.tile,)) * settings.scale + SETTINGS.scale
    if settings.side == Side.RIGHT:
        tile = tile + 100.0
    ct.store(result, (0,), tile)


@ct.kernel
def tuple_arithmetic(result):
    """Slices, sums, comparisons and loops over tuples."""
    numbers = (3, 1, 4) + (1, 5) + (9, 9)
    first, middle, last = numbers[0], numbers[1:-1], numbers[-1]
    ct.static_assert(numbers[1:4] == (1, 4, 1))
    total = 0
    for number in ct.static_iter(numbers):
        total = total + number
    ct.store(result, (0,), total)
    ct.store(result, (1,), len(numbers))
    ct.store(result, (2,), numbers[-1] * 10 + first)
    pairs = tuple((i, n) for i, n in ct.static_iter(enumerate(numbers)))
    ct.store(result, (3,), pairs[4][0] * pairs[4][1])
    ct.store(result, (4,), len(middle) * 100 + last)


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(43)
    x, y = rng.integers(-9, 9, (2, 8)).astype(np.float32)
    device = (cp.asarray(x), cp.asarray(y))
    for mode, want in ((Blend.ADD, 2 * x + 0.5 * y), (Blend.MULTIPLY, x * y), (Blend.DIFFERENCE, abs(2 * x - 0.5 * y))):
        result = cp.zeros(8, dtype=np.float32)
        ct.launch(stream, (1,), combine, (device, (2.0, 0.5), result, mode, 8))
        np.testing.assert_array_equal(cp.asnumpy(result), want)

    x, y = rng.integers(-9, 9, (2, 4, 8)).astype(np.int32)
    result = cp.zeros((4, 8), dtype=np.int32)
    ct.launch(stream, (1,), nested, (((cp.asarray(x), (cp.asarray(y), 3)), -7), (4, 8), result))
    np.testing.assert_array_equal(cp.asnumpy(result), x + 3 * y - 7)

    points = (rng.uniform(-2, 0.5, 32) + 1j * rng.uniform(-1, 1, 32)).astype(np.complex64)
    counts = cp.zeros(32, dtype=np.int32)
    ct.launch(stream, (1,), mandelbrot,
              (cp.asarray(points.real.copy()), cp.asarray(points.imag.copy()), counts, 32))
    want = np.zeros(32, dtype=np.int32)
    for i, c in enumerate(points.astype(np.complex128)):
        z = 0j
        while want[i] < 20 and abs(z) < 2:
            z = z * z + c
            want[i] += 1
    # A point on the rim may be counted once more or less in f32.
    assert (np.abs(cp.asnumpy(counts) - want) > 0).sum() <= 1

    x = rng.integers(-9, 9, 8).astype(np.float32)
    result = cp.zeros(8, dtype=np.float32)
    ct.launch(stream, (1,), configured, (cp.asarray(x), result))
    np.testing.assert_array_equal(cp.asnumpy(result), x * 0.5 + 102)

    result = cp.zeros(5, dtype=np.int32)
    ct.launch(stream, (1,), tuple_arithmetic, (result,))
    np.testing.assert_array_equal(cp.asnumpy(result), [32, 7, 93, 20, 509])


if __name__ == "__main__":
    main()
