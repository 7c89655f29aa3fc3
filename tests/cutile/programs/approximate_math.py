"""Functions of f32 that may be computed roughly: within the error they are allowed."""
import cupy as cp
import numpy as np
import cuda.tile as ct

FULL, APPROX = ct.RoundingMode.FULL, ct.RoundingMode.APPROX


@ct.kernel
def compute(x, y, result, n: ct.Constant[int]):
    a = ct.load(x, (0,), (n,))
    b = ct.load(y, (0,), (n,))
    rows = (
        ct.truediv(a, b, rounding_mode=FULL),
        ct.truediv(a, b, rounding_mode=APPROX),
        ct.truediv(a, b, rounding_mode=APPROX, flush_to_zero=True),
        ct.sqrt(ct.abs(a), rounding_mode=APPROX),
        ct.exp(a, rounding_mode=FULL),
        ct.exp(a, rounding_mode=APPROX),
        ct.tanh(a, rounding_mode=FULL),
        ct.tanh(a, rounding_mode=APPROX),
    )
    for k in ct.static_iter(range(8)):
        ct.store(result, (k, 0), rows[k][None, :])


# Relative errors: a few last places, except for tanh, which keeps eleven bits.
TOLERANCE = (1e-6, 1e-6, 1e-6, 1e-6, 1e-5, 1e-5, 1e-5, 1e-3)


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(14)
    for scale in (0.1, 1.0, 10.0):
        x = (rng.standard_normal(128) * scale).astype(np.float32)
        y = (rng.uniform(0.5, 3.0, 128) * rng.choice([-1, 1], 128)).astype(np.float32)
        result = cp.zeros((8, 128), dtype=np.float32)
        ct.launch(stream, (1,), compute, (cp.asarray(x), cp.asarray(y), result, 128))
        a, b = x.astype(np.float64), y.astype(np.float64)
        want = [a / b] * 3 + [np.sqrt(abs(a))] + [np.exp(a)] * 2 + [np.tanh(a)] * 2
        for got, row, tolerance in zip(cp.asnumpy(result), want, TOLERANCE):
            np.testing.assert_allclose(got, row, rtol=tolerance, atol=1e-30)


if __name__ == "__main__":
    main()
