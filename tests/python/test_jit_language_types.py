"""Types of kernel values: the common type of two, how integers wrap and divide, and what casts give."""

import ml_dtypes
import numpy as np
import pytest

import girih
import girih.language as tl

DEVICES = ["cpu", "eval"]
NUMPY = {
    "int1": np.bool_, "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64, "uint8": np.uint8,
    "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64, "float8e4nv": ml_dtypes.float8_e4m3fn,
    "float8e5": ml_dtypes.float8_e5m2, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32,
    "float64": np.float64,
}  # fmt: skip
SHORT = {
    "i1": "int1", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64", "e4": "float8e4nv", "e5": "float8e5", "f16": "float16", "bf": "bfloat16",
    "f32": "float32", "f64": "float64",
}  # fmt: skip
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]

# The type of a sum, from Triton's page on type promotion; each row goes on from the diagonal.
SUMS = """
i1  i32 i8  i16 i32 i64 u8  u16 u32 u64 f16 f16 f16 bf  f32 f64
i8      i8  i16 i32 i64 u8  u16 u32 u64 f16 f16 f16 bf  f32 f64
i16         i16 i32 i64 i16 u16 u32 u64 f16 f16 f16 bf  f32 f64
i32             i32 i64 i32 i32 u32 u64 f16 f16 f16 bf  f32 f64
i64                 i64 i64 i64 i64 u64 f16 f16 f16 bf  f32 f64
u8                      u8  u16 u32 u64 f16 f16 f16 bf  f32 f64
u16                         u16 u32 u64 f16 f16 f16 bf  f32 f64
u32                             u32 u64 f16 f16 f16 bf  f32 f64
u64                                 u64 f16 f16 f16 bf  f32 f64
e4                                      f16 f16 f16 f32 f32 f64
e5                                          f16 f16 f32 f32 f64
f16                                             f16 f16 f32 f64
bf                                                  bf  f32 f64
f32                                                     f32 f64
f64                                                         f64
"""


def sums():
    rows = [line.split() for line in SUMS.split("\n") if line]
    names = [row[0] for row in rows]
    for i, row in enumerate(rows):
        for name, result in zip(names[i:], row[1:], strict=True):
            yield SHORT[row[0]], SHORT[name], SHORT[result]


def array(name, values=(0,) * 16):
    return np.array(values).astype(NUMPY[name])


@girih.jit
def same_type(x, y, RESULT: tl.constexpr, F: tl.constexpr):
    i = tl.arange(0, 16)
    tl.static_assert(F(tl.load(x + i), tl.load(y + i)).dtype == RESULT, "tile and tile")
    tl.static_assert(F(tl.load(y + i), tl.load(x + i)).dtype == RESULT, "the other way round")
    tl.static_assert(F(tl.load(x), tl.load(y + i)).dtype == RESULT, "scalar and tile")
    tl.static_assert(F(tl.load(x), tl.load(y)).dtype == RESULT, "scalar and scalar")


@girih.jit
def plus(x, y):
    return x + y


@girih.jit
def choose(x, y):
    return tl.where(x == y, x, y)


@girih.jit
def quotient(x, y):
    return x / y


@girih.jit
def rest(x, y):
    return x % y


@pytest.mark.parametrize(("a", "b", "result"), list(sums()))
def test_sums(a, b, result):
    same_type.tile_ir(array(a), array(b), getattr(tl, result), plus, device="eval")


@pytest.mark.parametrize(("a", "b", "result"), list(sums()))
def test_quotients_are_wide(a, b, result):
    small = result in ("float16", "bfloat16") and {"float16", "bfloat16"} & {a, b}
    wide = "float32" if small or not result.startswith(("float", "bfloat")) else result
    same_type.tile_ir(array(a), array(b), getattr(tl, wide), quotient, device="eval")


@pytest.mark.parametrize(("a", "b", "result"), list(sums()))
def test_remainders(a, b, result):
    if {a[:3], b[:3]} == {"int", "uin"} and "int1" not in (a, b):
        with pytest.raises(girih.CompilationError, match="one is signed and the other is not"):
            same_type.tile_ir(array(a), array(b), tl.int32, rest, device="eval")
    else:
        wide = "float32" if result in ("float16", "bfloat16") and {"float16", "bfloat16"} & {a, b} else result
        same_type.tile_ir(array(a), array(b), getattr(tl, wide), rest, device="eval")


@pytest.mark.parametrize("name", [*NUMPY])
def test_a_choice_of_one_type_keeps_it(name):
    same_type.tile_ir(array(name), array(name), getattr(tl, name), choose, device="eval")


@girih.jit
def beside(x, NUMBER: tl.constexpr, RESULT: tl.constexpr):
    tile = tl.load(x + tl.arange(0, 16))
    tl.static_assert((tile + NUMBER).dtype == RESULT)
    tl.static_assert((NUMBER * tile).dtype == RESULT)
    tl.static_assert((tl.load(x) - NUMBER).dtype == RESULT)


NUMBERS = [
    ("int1", 1, "int32"), ("int1", 0.5, "float32"), ("int8", 1, "int8"), ("int8", True, "int8"), ("int8", -128, "int8"),
    ("int8", 128, "int32"), ("uint8", 255, "uint8"), ("uint8", 256, "int32"), ("int16", 0.5, "float32"),
    ("int32", 1, "int32"), ("int32", 1 << 31, "uint32"), ("int32", 1 << 32, "int64"), ("uint32", 1, "uint32"),
    ("int64", 1 << 63, "uint64"), ("uint64", 3, "uint64"), ("float16", 1, "float16"), ("float16", 0.5, "float16"),
    ("bfloat16", 1, "bfloat16"), ("bfloat16", 0.1, "bfloat16"), ("float32", 1 << 40, "float32"), ("float64", 0.1, "float64"),
    ("float8e5", 2.0, "float16"), ("int64", 1.0, "float32"), ("float32", True, "float32"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "number", "result"), NUMBERS)
def test_numbers_take_the_type_beside_them(name, number, result):
    beside.tile_ir(array(name), number, getattr(tl, result), device="eval")


def test_a_negative_number_beside_an_unsigned_tile():
    with pytest.raises(girih.CompilationError, match="-1 does not fit uint32"):
        beside.tile_ir(array("uint32"), -1, tl.uint32, device="eval")


@girih.jit
def integers(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    j = out + i
    tl.store(j, a + b)
    tl.store(j + N, a - b)
    tl.store(j + 2 * N, a * b)
    tl.store(j + 3 * N, a // b)
    tl.store(j + 4 * N, a % b)
    tl.store(j + 5 * N, a & b)
    tl.store(j + 6 * N, a | b)
    tl.store(j + 7 * N, a ^ b)
    tl.store(j + 8 * N, ~a)
    tl.store(j + 9 * N, -a)
    tl.store(j + 10 * N, a << (b & 7))
    tl.store(j + 11 * N, a >> (b & 7))
    tl.store(j + 12 * N, tl.abs(a))
    tl.store(j + 13 * N, (a < b) + 2 * (a <= b) + 4 * (a == b) + 8 * (a != b) + 16 * (a >= b) + 32 * (a > b))
    tl.store(j + 14 * N, tl.maximum(a, b))
    tl.store(j + 15 * N, tl.minimum(a, b))


def truncated(a, b):
    """The quotient rounded towards zero, of Python integers."""
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", INTEGERS)
def test_integers_wrap_as_in_c(name, device):
    n, kind = 64, NUMPY[name]
    info, rng = np.iinfo(kind), np.random.default_rng(1)
    a = rng.integers(info.min, info.max, n, kind, endpoint=True)
    b = rng.integers(info.min, info.max, n, kind, endpoint=True)
    a[:4], b[:4] = [info.max, info.min, 7, 0], [1, 3, 2, 5]
    b[4:40] = rng.integers(1, 9, 36)
    b[b == 0] = 3
    if info.min:
        a[4:8], b[8:12] = -7, -2
        b[(a == info.min) & (b == -1)] = 3
    out = np.zeros((16, n), kind)
    integers[1](a, b, out, n, device=device)
    quotients = np.array([truncated(int(p), int(q)) for p, q in zip(a, b)], kind)
    with np.errstate(over="ignore"):
        expected = [
            a + b, a - b, a * b, quotients, a - quotients * b, a & b, a | b, a ^ b, ~a, -a, a << (b & 7), a >> (b & 7), np.abs(a),
            (a < b) + 2 * (a <= b) + 4 * (a == b) + 8 * (a != b) + 16 * (a >= b) + 32 * (a > b), np.maximum(a, b), np.minimum(a, b),
        ]  # fmt: skip
    for i, e in enumerate(expected):
        assert np.array_equal(out[i], e.astype(kind)), i


@girih.jit
def mixed(x, y, less, shifted):
    i = tl.arange(0, 4)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(less + i, a < b)
    tl.store(shifted + i, a >> 1)
    tl.store(shifted + 4 + i, (a >> b.to(tl.uint32)).to(tl.int32))


@pytest.mark.parametrize("device", DEVICES)
def test_mixed_signs(device):
    x, y = np.array([-1, -8, 8, 0], np.int32), np.array([1, 1, 1, 1], np.uint32)
    less, shifted = np.zeros(4, np.bool_), np.zeros(8, np.int32)
    mixed[1](x, y, less, shifted, device=device)
    assert less.tolist() == [False, False, False, True]  # as uint32
    assert shifted.tolist() == [-1, -4, 4, 0] * 2


@girih.jit
def casting(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.cast(tl.load(x + i), out.dtype.element_ty))


def converted(values, name):
    """The values in a type: floats become integers towards zero, the nearest there is, and NaN 0."""
    kind = NUMPY[name]
    if name == "int1":
        return values.astype(np.float64) != 0
    if name in INTEGERS and values.dtype.kind not in "iub":
        info = np.iinfo(kind)
        clipped = [0 if v != v else info.min if v <= info.min else info.max if v >= info.max else int(v) for v in values.astype(float).tolist()]
        return np.array(clipped, kind)
    return values.astype(kind)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("source", [*NUMPY])
def test_casts(source, device):
    rng = np.random.default_rng(3)
    if source in INTEGERS:
        info = np.iinfo(NUMPY[source])
        x = rng.integers(info.min, info.max, 32, NUMPY[source], endpoint=True)
        x[:4] = [0, 1, info.max, info.min]
    else:
        x = array(source, np.concatenate([rng.standard_normal(16) * 30, [0, -0.0, 1, -1, 2.5, -2.5, 3.5, 0.25], rng.standard_normal(8)]))
    for target in NUMPY:
        y = x
        if target.startswith("float8") or target == "float16" and source in INTEGERS:
            y = np.where(np.abs(x.astype(np.float64)) < 100, x, x.dtype.type(1))
        if target in INTEGERS and source not in INTEGERS:
            low = np.iinfo(NUMPY[target]).min
            y = np.where((x.astype(np.float64) > low - 1) & (x.astype(np.float64) < 127), x, x.dtype.type(1))
        out = np.zeros(32, NUMPY[target])
        casting[1](y, out, 32, device=device)
        if source.startswith("int1") or target == "int1" or source in INTEGERS or target in INTEGERS or source == target:
            assert np.array_equal(out, converted(y, target)), target
        else:
            assert np.array_equal(out.astype(np.float64), y.astype(NUMPY[target]).astype(np.float64)), target


@pytest.mark.parametrize("target", INTEGERS)
def test_floats_out_of_range(target):
    x = np.array([1e30, -1e30, np.inf, -np.inf, np.nan, 0.99, -0.99, 1e10], np.float32)
    out = np.zeros(8, NUMPY[target])
    casting[1](x, out, 8, device="cpu")
    assert np.array_equal(out, converted(x, target))
    with pytest.raises(girih.UndefinedValueError, match="converts a number that its result type cannot hold"):
        casting[1](x, out, 8, device="eval")


@girih.jit
def bits(x, out):
    i = tl.arange(0, 8)
    tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty, bitcast=True))
    tl.static_assert(tl.load(x + i).to("fp32").dtype == tl.float32)
    p = x.to(tl.pointer_type(tl.int8))
    tl.static_assert(p.dtype.element_ty == tl.int8)


@pytest.mark.parametrize(("a", "b"), [("float32", "int32"), ("float64", "uint64"), ("float16", "int16"), ("bfloat16", "uint16"), ("float8e5", "uint8"), ("uint32", "float32")])
def test_bitcasts(a, b):
    x = array(a, [0, 1, 2, 3, 4, 5, 6, 7])
    out = np.zeros(8, NUMPY[b])
    bits[1](x, out)
    assert out.tobytes() == x.tobytes()


@girih.jit
def truths(x, y, out):
    i = tl.arange(0, 4)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, a & b)
    tl.store(out + 4 + i, a | b)
    tl.store(out + 8 + i, a ^ b)
    tl.store(out + 12 + i, ~a)
    tl.store(out + 16 + i, a + b)
    tl.store(out + 20 + i, a * b)
    tl.store(out + 24 + i, a - b)
    tl.store(out + 28 + i, tl.logical_and(a, b))
    tl.store(out + 32 + i, tl.logical_or(a, b))
    tl.store(out + 36 + i, a < b)


@pytest.mark.parametrize("device", DEVICES)
def test_booleans_count_as_int32(device):
    x, y = np.array([0, 0, 1, 1], np.bool_), np.array([0, 1, 0, 1], np.bool_)
    out = np.zeros((10, 4), np.int32)
    truths[1](x, y, out, device=device)
    a, b = x.astype(np.int32), y.astype(np.int32)
    assert np.array_equal(out, [a & b, a | b, a ^ b, 1 - a, a + b, a * b, a - b, a & b, a | b, a < b])


WIDTH = tl.constexpr(8)
HALF = WIDTH // 2


@tl.constexpr_function
def doubled(n):
    return sum([n, n])


@girih.jit
def constants(out):
    tl.store(out + tl.arange(0, doubled(HALF)), HALF * 10 + tl.arange(0, WIDTH))


def test_constants_compute():
    out = np.zeros(8, np.int32)
    constants[1](out)
    assert out.tolist() == list(range(40, 48))
    assert (WIDTH + 1, 3 - HALF, -HALF) == (9, -1, -4) and HALF < WIDTH
