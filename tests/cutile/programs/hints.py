"""Compiler hints, for all targets or by target, change nothing but speed."""
import cupy as cp
import numpy as np
import cuda.tile as ct


def body(x, result, n):
    i = ct.bid(0)
    tile = ct.load(x, (i,), (n,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(result, (i,), ct.exp(tile) + 1.0)


@ct.kernel(num_ctas=1, occupancy=2)
def plain(x, result, n: ct.Constant[int]):
    body(x, result, n)


@ct.kernel(opt_level=ct.ByTarget(sm_100=2, sm_120=3, default=1), num_ctas=ct.ByTarget(sm_100=2, default=1))
def by_target(x, result, n: ct.Constant[int]):
    body(x, result, n)


@ct.kernel(occupancy=ct.ByTarget(sm_100=4, sm_90=8), num_worker_warps=4)
def with_warps(x, result, n: ct.Constant[int]):
    body(x, result, n)


@ct.kernel
def without(x, result, n: ct.Constant[int]):
    body(x, result, n)


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(46)
    kernels = [plain, by_target, with_warps, without, without.replace_hints(opt_level=0),
               without.replace_hints(occupancy=16), plain.replace_hints(num_ctas=2, occupancy=None),
               with_warps.replace_hints(num_worker_warps=8, occupancy=ct.ByTarget(default=1))]
    for size in (1, 40, 64):
        x = rng.standard_normal(size).astype(np.float32)
        want = np.exp(x.astype(np.float64)) + 1
        results = []
        for kernel in kernels:
            result = cp.zeros(size, dtype=np.float32)
            ct.launch(stream, (ct.cdiv(size, 16),), kernel, (cp.asarray(x), result, 16))
            np.testing.assert_allclose(cp.asnumpy(result), want, rtol=1e-5)
            results.append(cp.asnumpy(result))

    for wrong in (dict(num_ctas=3), dict(occupancy=99), dict(opt_level=7), dict(nonsense=1)):
        try:
            without.replace_hints(**wrong)
        except (ValueError, TypeError):
            continue
        raise SystemExit(f"{wrong} was accepted")
    try:
        ct.ByTarget(hopper=1)
    except ValueError:
        pass
    else:
        raise SystemExit("a target without a number was accepted")

    with ct.compiler_timeout(60):
        ct.launch(stream, (1,), without.replace_hints(opt_level=1), (cp.zeros(8, dtype=np.float32),
                                                                   cp.zeros(8, dtype=np.float32), 8))


if __name__ == "__main__":
    main()
