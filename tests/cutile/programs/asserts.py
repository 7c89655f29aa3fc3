"""Assertions inside kernels: true ones cost nothing, a false one fails the launch."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def checked_root(x, result, n: ct.Constant[int]):
    tile = ct.load(x, (ct.bid(0),), (n,), padding_mode=ct.PaddingMode.ZERO)
    ct.assert_(tile >= 0.0, "a root needs a number that is not negative")
    root = ct.sqrt(tile)
    ct.assert_(ct.abs(root * root - tile) <= 1e-3)
    ct.store(result, (ct.bid(0),), root)


@ct.kernel
def checked_branch(x, result):
    """Only blocks that get there assert."""
    i = ct.bid(0)
    value = ct.gather(x, i)
    if value < 0:
        ct.assert_(i % 2 == 1, "negative numbers stand at odd places")
    ct.scatter(result, i, value)


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(47)
    for size in (16, 21):
        x = rng.uniform(0, 9, size).astype(np.float32)
        result = cp.zeros(size, dtype=np.float32)
        ct.launch(stream, (ct.cdiv(size, 8),), checked_root, (cp.asarray(x), result, 8))
        stream.synchronize()
        np.testing.assert_allclose(cp.asnumpy(result), np.sqrt(x), rtol=1e-6)

    x = np.array([5, -1, 7, -2], dtype=np.int32)
    result = cp.zeros(4, dtype=np.int32)
    ct.launch(stream, (4,), checked_branch, (cp.asarray(x), result))
    np.testing.assert_array_equal(cp.asnumpy(result), x)

    # Last, for a GPU is of no use to its process after this.
    x[2] = -7
    try:
        ct.launch(stream, (4,), checked_branch, (cp.asarray(x), result))
        stream.synchronize()
    except Exception as caught:
        assert type(caught).__name__ != "AssertionError" or "odd places" in str(caught), caught
    else:
        raise SystemExit("an assertion that is false passed")


if __name__ == "__main__":
    main()
