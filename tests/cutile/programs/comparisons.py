"""Comparisons of every type, and selection by their results."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def compare(x, y, facts, chosen, n: ct.Constant[int]):
    block = ct.bid(0)
    a = ct.load(x, (block,), (n,), padding_mode=ct.PaddingMode.ZERO)
    b = ct.load(y, (block,), (n,), padding_mode=ct.PaddingMode.ZERO)
    answers = (
        ct.equal(a, b), ct.not_equal(a, b), ct.less(a, b),
        ct.less_equal(a, b), ct.greater(a, b), ct.greater_equal(a, b),
        a == 3, a < b, (a > 1) & (b <= a), (a >= b) ^ (a != b), ~(a == b) | (b < 2),
    )
    for k in ct.static_iter(range(11)):
        ct.store(facts, (k, block), answers[k][None, :])
    rows = (ct.where(a < b, a, b), ct.where(a == b, 1, a), ct.where(b > 3, a, 7),
            ct.where(True, b, a), ct.where((a < 5)[:, None], a[:, None], b[:, None]).reshape((n,)))
    for k in ct.static_iter(range(5)):
        ct.store(chosen, (k, block), ct.astype(rows[k], chosen.dtype)[None, :])


@ct.kernel
def select_blocks(x, result, n: ct.Constant[int]):
    """Conditions of shape (n, 1) and (1, n) stretch like any other operand."""
    a = ct.load(x, (0, 0), (n, n))
    row = ct.arange(n, dtype=ct.int32)
    causal = row[:, None] >= row[None, :]
    ct.store(result, (0, 0), ct.where(causal, a, -1))
    ct.store(result, (1, 0), ct.where(row[:, None] % 2 == 0, a, row[None, :]))


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(17)
    types = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
             np.float16, np.float32, np.float64)
    for dtype in types:
        x, y = rng.integers(0, 6, (2, 75)).astype(dtype)
        if np.dtype(dtype).kind in "iu":  # the order of the largest and the smallest
            limit = np.iinfo(dtype)
            x[:4], y[:4] = (limit.min, limit.max, limit.max, 0), (limit.max, limit.min, limit.max, limit.max)
        facts, chosen = cp.zeros((11, 75), dtype=np.bool_), cp.zeros((5, 75), dtype=dtype)
        ct.launch(stream, (3,), compare, (cp.asarray(x), cp.asarray(y), facts, chosen, 32))
        want = [x == y, x != y, x < y, x <= y, x > y, x >= y, x == 3, x < y,
                (x > 1) & (y <= x), (x >= y) ^ (x != y), (x != y) | (y < 2)]
        np.testing.assert_array_equal(cp.asnumpy(facts), want, err_msg=dtype.__name__)
        want = [np.where(x < y, x, y), np.where(x == y, dtype(1), x),
                np.where(y > 3, x, dtype(7)), y, np.where(x < 5, x, y)]
        np.testing.assert_array_equal(cp.asnumpy(chosen), want, err_msg=dtype.__name__)

    x = rng.integers(0, 100, (8, 8)).astype(np.int32)
    result = cp.zeros((16, 8), dtype=np.int32)
    ct.launch(stream, (1,), select_blocks, (cp.asarray(x), result, 8))
    i = np.arange(8)
    want = [np.where(i[:, None] >= i, x, -1), np.where(i[:, None] % 2 == 0, x, i[None, :])]
    np.testing.assert_array_equal(cp.asnumpy(result), np.concatenate(want))


if __name__ == "__main__":
    main()
