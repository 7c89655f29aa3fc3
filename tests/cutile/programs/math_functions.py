"""Roots, exponentials, logarithms and trigonometry in f16, bf16, f32 and f64."""
import cupy as cp
import ml_dtypes
import numpy as np
import cuda.tile as ct

FUNCTIONS = {
    "exp": (ct.exp, np.exp, -8, 8),
    "exp2": (ct.exp2, np.exp2, -12, 12),
    "log": (ct.log, np.log, 0.01, 50),
    "log2": (ct.log2, np.log2, 0.01, 50),
    "sqrt": (ct.sqrt, np.sqrt, 0, 100),
    "rsqrt": (ct.rsqrt, lambda x: 1 / np.sqrt(x), 0.01, 100),
    "sin": (ct.sin, np.sin, -30, 30),
    "cos": (ct.cos, np.cos, -30, 30),
    "tan": (ct.tan, np.tan, -1.4, 1.4),
    "sinh": (ct.sinh, np.sinh, -6, 6),
    "cosh": (ct.cosh, np.cosh, -6, 6),
    "tanh": (ct.tanh, np.tanh, -9, 9),
    "floor": (ct.floor, np.floor, -20, 20),
    "ceil": (ct.ceil, np.ceil, -20, 20),
    "abs": (ct.abs, np.abs, -20, 20),
}


def unary(function, meaning):
    @ct.kernel
    def kernel(x, result, n: ct.Constant[int]):
        block = ct.bid(0)
        a = ct.load(x, (block,), (n,), padding_mode=ct.PaddingMode.ZERO)
        if meaning is not None:
            a = ct.bitcast(a, meaning)
        value = function(a)
        if meaning is not None:
            value = ct.bitcast(value, result.dtype)
        ct.store(result, (block,), value)

    return kernel


@ct.kernel
def two_arguments(x, y, result, n: ct.Constant[int]):
    a = ct.load(x, (0,), (n,))
    b = ct.load(y, (0,), (n,))
    ct.store(result, (0, 0), ct.atan2(a, b)[None, :])
    ct.store(result, (1, 0), ct.pow(ct.abs(a), b)[None, :])
    ct.store(result, (2, 0), (a ** 3)[None, :])
    ct.store(result, (3, 0), (ct.abs(a) ** 0.5)[None, :])
    ct.store(result, (4, 0), (2.0 ** b)[None, :])


FORMATS = (
    (np.float16, np.float16, None, 4e-3),
    (ml_dtypes.bfloat16, np.uint16, ct.bfloat16, 3e-2),
    (np.float32, np.float32, None, 3e-6),
    (np.float64, np.float64, None, 1e-12),
)


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(13)
    np.seterr(all="ignore")
    for name, (function, reference, low, high) in FUNCTIONS.items():
        for dtype, storage, meaning, tolerance in FORMATS:
            x = rng.uniform(low, high, 91).astype(dtype)
            x[0], x[-1] = low, high
            result = cp.zeros(91, dtype=storage)
            ct.launch(stream, (3,), unary(function, meaning), (cp.asarray(x.view(storage)), result, 32))
            got = cp.asnumpy(result).view(dtype).astype(np.float64)
            want = reference(x.astype(np.float64))
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance,
                                       err_msg=f"{name} in {dtype.__name__}")

    # The results that IEEE 754 fixes: at the ends of the range and for NaN.
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 1.0, 2.0])
    for name in ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "tanh", "floor", "ceil"):
        function, reference, _, _ = FUNCTIONS[name]
        for dtype in (np.float32, np.float64):
            result = cp.zeros(8, dtype=dtype)
            ct.launch(stream, (1,), unary(function, None), (cp.asarray(x.astype(dtype)), result, 8))
            np.testing.assert_allclose(cp.asnumpy(result), reference(x), rtol=3e-6, err_msg=name)

    for dtype, tolerance in ((np.float32, 1e-5), (np.float64, 1e-12)):
        x, y = rng.uniform(-3, 3, (2, 64)).astype(dtype)
        x[:4], y[:4] = (0, 1, -1, 2), (1, 0, -1, 2)
        result = cp.zeros((5, 64), dtype=dtype)
        ct.launch(stream, (1,), two_arguments, (cp.asarray(x), cp.asarray(y), result, 64))
        a, b = x.astype(np.float64), y.astype(np.float64)
        want = [np.arctan2(a, b), abs(a) ** b, a ** 3, abs(a) ** 0.5, 2 ** b]
        np.testing.assert_allclose(cp.asnumpy(result), want, rtol=tolerance, atol=tolerance)


if __name__ == "__main__":
    main()
