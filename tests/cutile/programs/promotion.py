"""Which type two operands of different types meet in, and what Python numbers become."""
import cupy as cp
import numpy as np
import cuda.tile as ct

RANKS = {
    ct.bool_: np.bool_, ct.uint8: np.uint8, ct.uint16: np.uint16, ct.uint32: np.uint32,
    ct.uint64: np.uint64, ct.int8: np.int8, ct.int16: np.int16, ct.int32: np.int32,
    ct.int64: np.int64, ct.float16: np.float16, ct.float32: np.float32, ct.float64: np.float64,
}
KINDS = tuple(RANKS)


def common(a, b):
    """The wider of the same sign; a float of any width wins over an integer; else nothing."""
    kinds = {np.dtype(a).kind, np.dtype(b).kind}
    if "f" in kinds and kinds != {"f"}:
        return a if np.dtype(a).kind == "f" else b
    if kinds in ({"i", "u"},):
        return None
    if "b" in kinds and kinds != {"b"}:
        return b if a is np.bool_ else a
    return a if np.dtype(a).itemsize >= np.dtype(b).itemsize else b


@ct.kernel
def add(x, y, result, meet: ct.Constant[int], n: ct.Constant[int]):
    a = ct.load(x, (0,), (n,))
    b = ct.load(y, (0,), (n,))
    total = a + b
    ct.static_assert(total.dtype == KINDS[meet])
    ct.store(result, (0,), total)


@ct.kernel
def with_numbers(x, result, n: ct.Constant[int]):
    """An int leaves the type alone, a float makes integers f32."""
    a = ct.load(x, (0,), (n,))
    ct.static_assert((a + 1).dtype == a.dtype)
    ct.static_assert((2 * a).dtype == a.dtype)
    floating = a * 0.5
    ct.static_assert(floating.dtype == (x.dtype if x.dtype in (ct.float16, ct.float64) else ct.float32))
    ct.store(result, (0, 0), ct.astype(a + 1, ct.float64)[None, :])
    ct.store(result, (1, 0), ct.astype(2 * a - 3, ct.float64)[None, :])
    ct.store(result, (2, 0), ct.astype(floating, ct.float64)[None, :])
    ct.store(result, (3, 0), ct.astype(a / 4, ct.float64)[None, :])


@ct.kernel
def python_numbers(result):
    """Numbers known when compiling follow Python's own arithmetic."""
    big = 2 ** 40
    ct.store(result, (0,), big // 7 % 1000)
    ct.store(result, (1,), -7 // 2)
    ct.store(result, (2,), -7 % 3)
    ct.store(result, (3,), int(7.9) + 10 * int(True))
    ct.store(result, (4,), min(3, 5) + max(2, 9) * 10)
    ct.store(result, (5,), 1 if 0.1 + 0.2 != 0.3 else 2)
    ct.store(result, (6,), (5 & 3) | (8 ^ 1) << 2)
    ct.store(result, (7,), ct.cdiv(10, 4) + 2 ** 5)


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(18)
    refused = 0
    for a_kind, a in RANKS.items():
        for b_kind, b in RANKS.items():
            meet = common(a, b)
            if a is b is np.bool_:
                continue  # booleans are not added
            x, y = rng.integers(0, 2 if np.bool_ in (a, b) else 50, (2, 16))
            arguments = (cp.asarray(x.astype(a)), cp.asarray(y.astype(b)))
            try:
                result = cp.zeros(16, dtype=meet or np.int64)
                kind = KINDS.index(next(k for k, v in RANKS.items() if v is meet)) if meet else 0
                ct.launch(stream, (1,), add, (*arguments, result, kind, 16))
            except ct.TileTypeError:
                assert meet is None, f"{a_kind} + {b_kind} was refused"
                refused += 1
                continue
            assert meet is not None, f"{a_kind} + {b_kind} was accepted"
            np.testing.assert_array_equal(cp.asnumpy(result), (x + y).astype(meet))
    assert refused == 32, refused

    for dtype in (np.int8, np.int32, np.int64, np.float16, np.float32, np.float64):
        x = rng.integers(-20, 20, 8).astype(dtype)
        result = cp.zeros((4, 8), dtype=np.float64)
        ct.launch(stream, (1,), with_numbers, (cp.asarray(x), result, 8))
        a = x.astype(np.float64)
        np.testing.assert_array_equal(cp.asnumpy(result), [a + 1, 2 * a - 3, a / 2, a / 4])

    result = cp.zeros(8, dtype=np.int32)
    ct.launch(stream, (1,), python_numbers, (result,))
    want = [2**40 // 7 % 1000, -4, 2, 17, 93, 1, 1 | 9 << 2, 35]
    np.testing.assert_array_equal(cp.asnumpy(result), want)


if __name__ == "__main__":
    main()
