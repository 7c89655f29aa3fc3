"""Histograms: by an atomic addition per element; and by comparing with all bins in a tile, then one atomic addition per
bin and block. Counting sort by key on top of the first."""
import cuda.tile as ct
import cupy as cp
import numpy as np


@ct.kernel
def histogram_atomic(x, bins, low, width, t: ct.Constant[int]):
    i = ct.bid(0) * t + ct.arange(t, dtype=ct.int32)
    values = ct.gather(x, i, padding_value=float("nan"))
    places = ct.floor((values - low) / width)
    # What is not a number lands in no bin: the place is out of bounds.
    places = ct.where(ct.isnan(places), -1.0, places).astype(ct.int32)
    ct.atomic_add(bins, places, 1, memory_order=ct.MemoryOrder.RELAXED)


@ct.kernel
def histogram_tile(keys, bins, t: ct.Constant[int], n_bins: ct.Constant[int]):
    count = ct.zeros((n_bins,), dtype=ct.int32)
    wanted = ct.arange(n_bins, dtype=ct.int32)[None, :]
    for i in range(ct.bid(0), ct.num_tiles(keys, 0, (t,)), ct.num_blocks(0)):
        values = ct.gather(keys, i * t + ct.arange(t, dtype=ct.int32), padding_value=-1)
        count += ct.sum((values[:, None] == wanted).astype(ct.int32), axis=0)
    ct.atomic_add(bins, ct.arange(n_bins, dtype=ct.int32), count)


@ct.kernel
def place_by_key(keys, values, starts, out, t: ct.Constant[int]):
    """Every element takes the next free place of its key."""
    i = ct.bid(0) * t + ct.arange(t, dtype=ct.int32)
    inside = i < keys.shape[0]
    key = ct.where(inside, ct.gather(keys, i), -1)
    place = ct.atomic_add(starts, key, 1)
    # An addition that did not happen has no result.
    ct.scatter(out, ct.where(inside, place, -1), ct.gather(values, i))


def main():
    rng = np.random.default_rng(19)
    stream = cp.cuda.get_current_stream()
    for n in (1000, 4096, 3):
        x = rng.standard_normal(n).astype(np.float32)
        bins = cp.zeros(20, dtype=np.int32)
        ct.launch(stream, (ct.cdiv(n, 256),), histogram_atomic, (cp.asarray(x), bins, -2.0, 0.25, 256))
        places = np.floor((x + np.float32(2)) / np.float32(0.25))
        want = np.bincount(places[(places >= 0) & (places < 20)].astype(int), minlength=20)
        np.testing.assert_array_equal(cp.asnumpy(bins), want)

        keys = rng.integers(0, 32, n).astype(np.int32)
        bins = cp.zeros(32, dtype=np.int32)
        ct.launch(stream, (3,), histogram_tile, (cp.asarray(keys), bins, 64, 32))
        counts = np.bincount(keys, minlength=32)
        np.testing.assert_array_equal(cp.asnumpy(bins), counts)

        starts = cp.asarray((counts.cumsum() - counts).astype(np.int32))
        values = np.arange(n, dtype=np.int32)
        out = cp.zeros(n, dtype=np.int32)
        ct.launch(stream, (ct.cdiv(n, 128),), place_by_key,
                  (cp.asarray(keys), cp.asarray(values), starts, out, 128))
        got = cp.asnumpy(out)
        np.testing.assert_array_equal(np.sort(got), values)
        np.testing.assert_array_equal(keys[got], np.sort(keys))


if __name__ == "__main__":
    main()
