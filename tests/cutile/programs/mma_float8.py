"""Products of 8-bit floats, summed in f32 or f16, with and without fast accumulation."""
import cupy as cp
import ml_dtypes
import numpy as np
import cuda.tile as ct


def multiplier(kind, accumulator, fast):
    @ct.kernel
    def kernel(a, b, c, m: ct.Constant[int], n: ct.Constant[int], k: ct.Constant[int]):
        i, j = ct.bid(0), ct.bid(1)
        total = ct.zeros((m, n), dtype=accumulator)
        for step in range(ct.num_tiles(a, 1, (m, k))):
            x = ct.bitcast(ct.load(a, (i, step), (m, k), padding_mode=ct.PaddingMode.ZERO), kind)
            y = ct.bitcast(ct.load(b, (step, j), (k, n), padding_mode=ct.PaddingMode.ZERO), kind)
            total = ct.mma(x, y, total, use_fast_acc=fast)
        ct.store(c, (i, j), total)

    return kernel


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(32)
    for kind, numpy_kind in ((ct.float8_e4m3fn, ml_dtypes.float8_e4m3fn), (ct.float8_e5m2, ml_dtypes.float8_e5m2)):
        for accumulator, out, fast, tolerance in ((ct.float32, np.float32, False, 1e-5),
                                                  (ct.float32, np.float32, True, 2e-3),
                                                  (ct.float16, np.float16, False, 1e-2)):
            kernel = multiplier(kind, accumulator, fast)
            for rows, columns, depth in ((16, 16, 32), (20, 9, 50), (2, 32, 64)):
                a = rng.standard_normal((rows, depth)).astype(numpy_kind)
                b = rng.standard_normal((depth, columns)).astype(numpy_kind)
                c = cp.zeros((rows, columns), dtype=out)
                grid = (ct.cdiv(rows, 16), ct.cdiv(columns, 8))
                ct.launch(stream, grid, kernel,
                          (cp.asarray(a.view(np.uint8)), cp.asarray(b.view(np.uint8)), c, 16, 8, 32))
                a, b = a.astype(np.float64), b.astype(np.float64)
                error = np.abs(cp.asnumpy(c) - a @ b) / (abs(a) @ abs(b))
                assert error.max() <= tolerance, f"{kind}, {accumulator}: error {error.max()}"


if __name__ == "__main__":
    main()
