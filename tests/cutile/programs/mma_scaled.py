"""Products of 8-bit and 4-bit floats with a scale per block of the inner dimension."""
import cupy as cp
import ml_dtypes
import numpy as np
import cuda.tile as ct


def bytes_as(kind, tile, shape):
    """4-bit numbers come two to a byte; the others one."""
    if kind == ct.float4_e2m1fn:
        return ct.unpack_from_bytes(tile.reshape((-1,)), kind).reshape(shape)
    return ct.bitcast(tile, kind)


def multiplier(kind, scale_kind, per_byte):
    @ct.kernel
    def kernel(a, a_scale, b, b_scale, c, tile: ct.Constant, block: ct.Constant[int]):
        """`b` is stored transposed, so that packed numbers lie along the inner dimension."""
        m, n, k = tile
        i, j = ct.bid(0), ct.bid(1)
        total = ct.zeros((m, n), dtype=ct.float32)
        for step in range(ct.num_tiles(a, 1, (m, k // per_byte))):
            x = bytes_as(kind, ct.load(a, (i, step), (m, k // per_byte)), (m, k))
            y = bytes_as(kind, ct.load(b, (j, step), (n, k // per_byte)), (n, k)).transpose()
            x_scale = ct.bitcast(ct.load(a_scale, (i, step), (m, k // block)), scale_kind)
            y_scale = ct.bitcast(ct.load(b_scale, (step, j), (k // block, n)), scale_kind)
            total = ct.mma_scaled(x, x_scale, y, y_scale, total)
        ct.store(c, (i, j), total)

    return kernel


@ct.kernel
def batched(a, a_scale, b, b_scale, c):
    """Two matrices on the left share one on the right."""
    x = ct.bitcast(ct.load(a, (0, 0, 0), (2, 4, 32)), ct.float8_e5m2)
    y = ct.bitcast(ct.load(b, (0, 0), (32, 8)), ct.float8_e5m2)
    x_scale = ct.bitcast(ct.load(a_scale, (0, 0, 0), (2, 4, 1)), ct.float8_e8m0fnu)
    y_scale = ct.bitcast(ct.load(b_scale, (0, 0), (1, 8)), ct.float8_e8m0fnu)
    start = ct.full((2, 4, 8), -1.5, dtype=ct.float32)
    ct.store(c, (0, 0, 0), ct.mma_scaled(x, x_scale, y, y_scale, start))


E4M3, E5M2, E8M0, E2M1 = (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e8m0fnu,
                          ml_dtypes.float4_e2m1fn)
CASES = [
    (ct.float8_e4m3fn, E4M3, ct.float8_e8m0fnu, E8M0, 32),
    (ct.float8_e5m2, E5M2, ct.float8_e8m0fnu, E8M0, 32),
    (ct.float4_e2m1fn, E2M1, ct.float8_e8m0fnu, E8M0, 32),
    (ct.float4_e2m1fn, E2M1, ct.float8_e8m0fnu, E8M0, 16),
    (ct.float4_e2m1fn, E2M1, ct.float8_e4m3fn, E4M3, 16),
]


def packed(x):
    """The bytes of an array: pairs of 4-bit codes share one, the first in its low half."""
    codes = x.view(np.uint8)
    if x.dtype != E2M1:
        return codes
    return codes[..., 0::2] & 15 | codes[..., 1::2] << 4


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(34)
    for kind, numpy_kind, scale_kind, numpy_scale, block in CASES:
        per_byte = 2 if numpy_kind is E2M1 else 1
        kernel = multiplier(kind, scale_kind, per_byte)
        for (rows, columns, depth), tile in (((16, 16, 64), (16, 16, 64)), ((32, 8, 128), (16, 8, 32))):
            a = (rng.standard_normal((rows, depth)) * 2).astype(numpy_kind)
            b = (rng.standard_normal((columns, depth)) * 2).astype(numpy_kind)
            scales = 2.0 ** np.arange(-3, 4) if numpy_scale is E8M0 else [0.5, 0.875, 1.0, 1.25, 3.0]
            a_scale = rng.choice(scales, (rows, depth // block)).astype(numpy_scale)
            b_scale = rng.choice(scales, (depth // block, columns)).astype(numpy_scale)
            c = cp.zeros((rows, columns), dtype=np.float32)
            arguments = [cp.asarray(array) for array in
                         (packed(a), a_scale.view(np.uint8), packed(b), b_scale.view(np.uint8))]
            ct.launch(stream, (rows // tile[0], columns // tile[1]), kernel, (*arguments, c, tile, block))
            left = a.astype(np.float64) * np.repeat(a_scale.astype(np.float64), block, axis=1)
            right = b.astype(np.float64).T * np.repeat(b_scale.astype(np.float64), block, axis=0)
            error = np.abs(cp.asnumpy(c) - left @ right) / (abs(left) @ abs(right))
            assert error.max() <= 1e-5, f"{kind} scaled by {scale_kind}, block {block}: error {error.max()}"

    a = rng.standard_normal((2, 4, 32)).astype(E5M2)
    b = rng.standard_normal((32, 8)).astype(E5M2)
    a_scale = rng.choice([0.25, 1.0, 8.0], (2, 4, 1)).astype(E8M0)
    b_scale = rng.choice([0.5, 2.0], (1, 8)).astype(E8M0)
    c = cp.zeros((2, 4, 8), dtype=np.float32)
    arguments = [cp.asarray(array.view(np.uint8)) for array in (a, a_scale, b, b_scale)]
    ct.launch(stream, (1,), batched, (*arguments, c))
    left = a.astype(np.float64) * a_scale.astype(np.float64)
    want = left @ (b.astype(np.float64) * b_scale.astype(np.float64)) - 1.5
    np.testing.assert_allclose(cp.asnumpy(c), want, rtol=1e-5, atol=1e-4)


if __name__ == "__main__":
    main()
