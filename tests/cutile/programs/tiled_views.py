"""Tiled views: tiles side by side, overlapping, and with gaps."""
import cupy as cp
import numpy as np
import cuda.tile as ct


def copier(tile, steps, padding):
    @ct.kernel
    def kernel(source, result, counts):
        view = source.tiled_view(tile, padding_mode=padding, traversal_steps=steps)
        seen = (view.tile_shape, view.traversal_steps, view.dtype)
        ct.static_assert(seen == (tile, tile if steps is None else steps, source.dtype))
        i, j = ct.bid(0), ct.bid(1)
        ct.store(result, (i, j), view.load((i, j)))
        if i + j == 0:
            ct.store(counts, (0,), view.num_tiles(0))
            ct.store(counts, (1,), view.num_tiles(1))

    return kernel


@ct.kernel
def moving_average(source, result, width: ct.Constant[int]):
    """Tiles one element apart: each is the window of one output."""
    windows = source.tiled_view(width, traversal_steps=1, padding_mode=ct.PaddingMode.ZERO)
    i = ct.bid(0)
    ct.store(result, (i,), ct.sum(windows.load(i)) / width)


@ct.kernel
def store_every_other(result):
    view = result.tiled_view((2, 4), traversal_steps=(3, 8))
    for i in range(view.num_tiles(0)):
        for j in range(view.num_tiles(1)):
            view.store((i, j), ct.full((2, 4), i * 10 + j + 1, dtype=ct.int32))


@ct.kernel
def store_broadcast(result):
    """A narrower tile is stretched, and another element type converted, on the way out."""
    view = result.tiled_view((4, 8))
    view.store((0, 0), ct.arange(8, dtype=ct.int32)[None, :], latency=2, allow_tma=False)
    view.store((1, 0), ct.full((4, 1), 2.75, dtype=ct.float16))


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(7)
    fills = {ct.PaddingMode.ZERO: 0, ct.PaddingMode.NAN: np.nan, ct.PaddingMode.NEG_INF: -np.inf}
    for tile, steps in (((4, 8), None), ((2, 4), (2, 4)), ((4, 4), (1, 4)), ((2, 2), (3, 5)), ((4, 2), (2, 3))):
        rows, columns = steps or tile
        for padding, fill in fills.items():
            kernel = copier(tile, steps, padding)
            for shape in ((8, 16), (5, 11), (1, 3)):
                source = rng.standard_normal(shape).astype(np.float32)
                tiles = (-(-shape[0] // rows), -(-shape[1] // columns))
                result = cp.zeros((tiles[0] * tile[0], tiles[1] * tile[1]), dtype=np.float32)
                counts = cp.zeros(2, dtype=np.int32)
                ct.launch(stream, tiles, kernel, (cp.asarray(source), result, counts))
                roomy = np.full((shape[0] + 8, shape[1] + 16), fill, dtype=np.float32)
                roomy[:shape[0], :shape[1]] = source
                want = np.block([[roomy[i * rows:i * rows + tile[0], j * columns:j * columns + tile[1]]
                                  for j in range(tiles[1])] for i in range(tiles[0])])
                np.testing.assert_array_equal(cp.asnumpy(result), want)
                np.testing.assert_array_equal(cp.asnumpy(counts), tiles)

    source = rng.integers(-8, 8, 21).astype(np.float32)
    result = cp.zeros(21, dtype=np.float32)
    ct.launch(stream, (21,), moving_average, (cp.asarray(source), result, 4))
    longer = np.concatenate([source, np.zeros(3, dtype=np.float32)])
    want = [longer[i:i + 4].sum() / 4 for i in range(21)]
    np.testing.assert_array_equal(cp.asnumpy(result), np.float32(want))

    result = cp.zeros((7, 18), dtype=np.int32)
    ct.launch(stream, (1,), store_every_other, (result,))
    want = np.zeros((7, 18), dtype=np.int32)
    for i in range(3):
        for j in range(3):
            want[i * 3:i * 3 + 2, j * 8:j * 8 + 4] = i * 10 + j + 1
    np.testing.assert_array_equal(cp.asnumpy(result), want)

    result = cp.zeros((8, 8), dtype=np.float16)
    ct.launch(stream, (1,), store_broadcast, (result,))
    want = np.repeat([np.arange(8), np.full(8, 2.75)], 4, axis=0)
    np.testing.assert_array_equal(cp.asnumpy(result), want)


if __name__ == "__main__":
    main()
