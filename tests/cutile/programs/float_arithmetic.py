"""Sums, products, quotients, minima and powers in f16, bf16, f32 and f64, correctly rounded."""
import cupy as cp
import ml_dtypes
import numpy as np
import cuda.tile as ct

SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-3, -2.5, 65504.0, 7.0, -7.0]
STORED_AS_BITS = {ml_dtypes.bfloat16: (np.uint16, ct.bfloat16)}


def arithmetic(dtype):
    """`dtype` is what the stored bits mean, where the array cannot say so itself."""

    @ct.kernel
    def kernel(x, y, result, n: ct.Constant[int]):
        block = ct.bid(0)
        a = ct.load(x, (block,), (n,))
        b = ct.load(y, (block,), (n,))
        if dtype is not None:
            a, b = ct.bitcast(a, dtype), ct.bitcast(b, dtype)
        rows = (
            ct.add(a, b), a - b, ct.mul(a, b), ct.truediv(a, b), -a, ct.abs(b),
            ct.minimum(a, b), max(a, b), ct.floor(a / b), ct.ceil(a), a // b, a % b,
            1 - a, 2.0 / b, b * 3, ct.sub(a, 0.5), ct.negative(b), +b,
        )
        for k in ct.static_iter(range(18)):
            value = rows[k]
            if dtype is not None:
                value = ct.bitcast(value, result.dtype)
            ct.store(result, (k, block), value[None, :])

    return kernel


def smaller(a, b):
    """NaN loses against a number, and -0 is smaller than +0."""
    low = np.where((a < b) | ((a == b) & np.signbit(a)) | np.isnan(b), a, b)
    return low.astype(a.dtype)


def modulo(a, b):
    """The remainder that takes the divisor's sign."""
    rest = np.fmod(a, b)
    return np.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest).astype(a.dtype)


def expected(a, b):
    one = a.dtype.type
    return [a + b, a - b, a * b, a / b, -a, abs(b), smaller(a, b), -smaller(-a, -b),
            np.floor(a / b), np.ceil(a), np.floor(a / b), modulo(a, b),
            one(1) - a, one(2) / b, b * one(3), a - one(0.5), -b, b]


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(11)
    np.seterr(all="ignore")
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64):
        pairs = np.array([(a, b) for a in SPECIAL for b in SPECIAL])
        random = np.stack([rng.standard_normal(368) * 10, rng.standard_normal(368)], axis=1)
        a, b = np.concatenate([pairs, random]).T.astype(dtype)
        storage, meaning = STORED_AS_BITS.get(dtype, (dtype, None))
        result = cp.zeros((18, 512), dtype=storage)
        ct.launch(stream, (8,), arithmetic(meaning),
                  (cp.asarray(a.view(storage)), cp.asarray(b.view(storage)), result, 64))
        got = cp.asnumpy(result).view(dtype)
        for k, want in enumerate(expected(a, b)):
            assert want.dtype == dtype, (k, want.dtype)
            same = (got[k] == want) | (np.isnan(got[k]) & np.isnan(want))
            same &= np.isnan(want) | (np.signbit(got[k]) == np.signbit(want))
            if not same.all():
                i = np.flatnonzero(~same)[0]
                raise SystemExit(f"operation {k} of {a[i]} and {b[i]} in {dtype.__name__}: "
                                 f"got {got[k][i]}, expected {want[i]}")


if __name__ == "__main__":
    main()
