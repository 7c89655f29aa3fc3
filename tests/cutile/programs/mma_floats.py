"""Matrix products accumulated tile by tile in f16, bf16, tf32, f32 and f64."""
import cupy as cp
import ml_dtypes
import numpy as np
import cuda.tile as ct


def multiplier(meaning, inside, accumulator):
    """`meaning`: what stored bits are; `inside`: what the product works in."""

    @ct.kernel
    def kernel(a, b, c, m: ct.Constant[int], n: ct.Constant[int], k: ct.Constant[int]):
        i, j = ct.bid(0), ct.bid(1)
        zero = ct.PaddingMode.ZERO
        total = ct.zeros((m, n), dtype=accumulator)
        for step in range(ct.num_tiles(a, 1, (m, k))):
            x = ct.load(a, (i, step), (m, k), padding_mode=zero)
            y = ct.load(b, (step, j), (k, n), padding_mode=zero)
            if meaning is not None:
                x, y = ct.bitcast(x, meaning), ct.bitcast(y, meaning)
            if inside is not None:
                x, y = x.astype(inside), y.astype(inside)
            total = ct.mma(x, y, total)
        ct.store(c, (i, j), total)

    return kernel


CASES = [
    # stored as, seen as, storage, meaning, inside, accumulator, result, relative error
    (np.float16, np.float16, None, None, ct.float16, np.float16, 2e-2),
    (np.float16, np.float16, None, None, ct.float32, np.float32, 1e-5),
    (ml_dtypes.bfloat16, np.uint16, ct.bfloat16, None, ct.float32, np.float32, 1e-5),
    (np.float32, np.float32, None, ct.tfloat32, ct.float32, np.float32, 3e-3),
    (np.float32, np.float32, None, None, ct.float32, np.float32, 1e-5),
    (np.float64, np.float64, None, None, ct.float64, np.float64, 1e-13),
]


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(30)
    for dtype, storage, meaning, inside, accumulator, out, tolerance in CASES:
        kernel = multiplier(meaning, inside, accumulator)
        for (rows, columns, depth), tile in (((32, 32, 32), (16, 16, 16)), ((17, 21, 37), (16, 8, 16)),
                                             ((1, 40, 8), (2, 32, 8)), ((64, 8, 5), (32, 8, 4))):
            a = rng.standard_normal((rows, depth)).astype(dtype)
            b = rng.standard_normal((depth, columns)).astype(dtype)
            c = cp.zeros((rows, columns), dtype=out)
            grid = (ct.cdiv(rows, tile[0]), ct.cdiv(columns, tile[1]))
            ct.launch(stream, grid, kernel, (cp.asarray(a.view(storage)), cp.asarray(b.view(storage)), c, *tile))
            a, b = a.astype(np.float64), b.astype(np.float64)
            want, size = a @ b, abs(a) @ abs(b)
            error = np.abs(cp.asnumpy(c) - want) / size
            assert error.max() <= tolerance, f"{dtype.__name__} {tile}: error {error.max()}"

        # Small whole numbers multiply exactly in every format.
        a, b = rng.integers(-3, 4, (2, 16, 16)).astype(dtype)
        c = cp.zeros((16, 16), dtype=out)
        ct.launch(stream, (1, 1), kernel, (cp.asarray(a.view(storage)), cp.asarray(b.view(storage)), c, 16, 16, 16))
        np.testing.assert_array_equal(cp.asnumpy(c), a.astype(np.float64) @ b.astype(np.float64))


if __name__ == "__main__":
    main()
