"""Loads that reach past the edge of an array: what each padding mode fills in."""
import cupy as cp
import numpy as np
import cuda.tile as ct


# The padding of each mode; a kernel gets the mode's place in this list.
FILL = {
    ct.PaddingMode.ZERO: 0.0,
    ct.PaddingMode.NEG_ZERO: -0.0,
    ct.PaddingMode.NAN: np.nan,
    ct.PaddingMode.POS_INF: np.inf,
    ct.PaddingMode.NEG_INF: -np.inf,
}
MODES = (*FILL, ct.PaddingMode.UNDETERMINED)


@ct.kernel
def load_row(source, result, tile: ct.Constant[int], mode: ct.Constant[int]):
    block = ct.bid(0)
    piece = ct.load(source, (block,), (tile,), padding_mode=ct.static_eval(MODES[mode]))
    ct.store(result, (block,), piece)


@ct.kernel
def load_block(source, result, rows: ct.Constant[int], columns: ct.Constant[int],
               mode: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    piece = ct.load(source, (i, j), (rows, columns), padding_mode=ct.static_eval(MODES[mode]))
    ct.store(result, (i, j), piece)



def padded(source, tile, fill):
    """`source` grown to a multiple of `tile` in every dimension."""
    width = [(0, -size % step) for size, step in zip(source.shape, tile)]
    return np.pad(source, width, constant_values=fill)


def same_bits(got, want):
    got = cp.asnumpy(got)
    np.testing.assert_array_equal(got, want)
    if got.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(1)
    for dtype in (np.float16, np.float32, np.float64):
        for size in (1, 15, 16, 17, 63):
            source = rng.standard_normal(size).astype(dtype)
            for mode, fill in enumerate(FILL.values()):
                want = padded(source, (16,), dtype(fill))
                result = cp.zeros(want.shape, dtype=dtype)
                ct.launch(stream, (len(want) // 16,), load_row, (cp.asarray(source), result, 16, mode))
                same_bits(result, want)

    for dtype in (np.int8, np.uint16, np.int32, np.int64, np.bool_):
        source = rng.integers(0, 2, 21).astype(dtype)
        want = padded(source, (8,), dtype(0))
        result = cp.zeros(want.shape, dtype=dtype)
        ct.launch(stream, (3,), load_row, (cp.asarray(source), result, 8, MODES.index(ct.PaddingMode.ZERO)))
        same_bits(result, want)

    for shape in ((5, 9), (8, 16), (1, 1), (17, 3)):
        source = rng.standard_normal(shape).astype(np.float32)
        for mode, fill in enumerate(FILL.values()):
            want = padded(source, (4, 8), np.float32(fill))
            result = cp.zeros(want.shape, dtype=np.float32)
            grid = (want.shape[0] // 4, want.shape[1] // 8)
            ct.launch(stream, grid, load_block, (cp.asarray(source), result, 4, 8, mode))
            same_bits(result, want)

    # Without a padding mode nothing is promised about the outside, and all about the inside.
    source = rng.standard_normal(10).astype(np.float32)
    result = cp.zeros(16, dtype=np.float32)
    ct.launch(stream, (2,), load_row, (cp.asarray(source), result, 8, MODES.index(ct.PaddingMode.UNDETERMINED)))
    same_bits(result[:10], source)


if __name__ == "__main__":
    main()
