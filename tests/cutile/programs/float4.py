"""4-bit floats, two to a byte: unpacking, rounding, packing."""
import cupy as cp
import ml_dtypes
import numpy as np
import cuda.tile as ct


@ct.kernel
def read_all(packed, result):
    codes = ct.load(packed, (0,), (128,))
    values = ct.unpack_from_bytes(codes, ct.float4_e2m1fn)
    ct.static_assert(values.shape == (256,))
    ct.store(result, (0,), ct.astype(values, result.dtype))


@ct.kernel
def write(numbers, packed, n: ct.Constant[int]):
    values = ct.load(numbers, (0,), (n,))
    ct.store(packed, (0,), ct.pack_to_bytes(ct.astype(values, ct.float4_e2m1fn)))


@ct.kernel
def double_in_place(packed, n: ct.Constant[int]):
    """A 4-bit tile seen in two dimensions, widened, changed and narrowed again."""
    block = ct.bid(0)
    values = ct.unpack_from_bytes(ct.load(packed, (block,), (n,)), ct.float4_e2m1fn)
    wide = values.reshape((2, n)).astype(ct.float16) * 2
    ct.store(packed, (block,), ct.pack_to_bytes(wide.astype(ct.float4_e2m1fn)))


def unpacked(data):
    """The low half of a byte comes first."""
    halves = np.stack([data & 15, data >> 4], axis=-1).reshape(*data.shape[:-1], -1)
    return halves.view(ml_dtypes.float4_e2m1fn).astype(np.float64)


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(22)
    data = rng.integers(0, 256, 128).astype(np.uint8)
    data[:16] = np.arange(16)
    for dtype in (np.float16, np.float32, np.float64):
        result = cp.zeros(256, dtype=dtype)
        ct.launch(stream, (1,), read_all, (cp.asarray(data), result))
        np.testing.assert_array_equal(cp.asnumpy(result), unpacked(data))

    # To the nearest of 0, 1/2, 1, 3/2, 2, 3, 4, 6, ties to the even code.
    grid = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    numbers = np.concatenate([rng.uniform(-6, 6, 40), grid, -grid, [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, -5.0]])
    for dtype in (np.float32, np.float16):
        x = numbers.astype(dtype)
        packed = cp.zeros(32, dtype=np.uint8)
        ct.launch(stream, (1,), write, (cp.asarray(x), packed, 64))
        distance = np.abs(np.abs(x.astype(np.float64))[:, None] - grid)
        nearest = [min(range(8), key=lambda code: (row[code], code % 2)) for row in distance]
        want = np.copysign(grid[nearest], x)
        np.testing.assert_array_equal(unpacked(cp.asnumpy(packed)), want)

    data = rng.integers(0, 256, 64).astype(np.uint8) & 0xBB  # at most 1.5 in each half
    packed = cp.asarray(data)
    ct.launch(stream, (4,), double_in_place, (packed, 16))
    np.testing.assert_array_equal(unpacked(cp.asnumpy(packed)), unpacked(data) * 2)


if __name__ == "__main__":
    main()
