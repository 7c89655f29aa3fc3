"""Tuning: every configuration runs, the fastest is told, broken ones are reported."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def scale(x, result, tile: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(result, (i,), ct.load(x, (i,), (tile,), padding_mode=ct.PaddingMode.ZERO) * 3)


@ct.kernel
def scale_by_steps(x, result, tile: ct.Constant[int]):
    for i in range(ct.num_tiles(x, 0, tile)):
        ct.store(result, (i,), ct.load(x, (i,), (tile,), padding_mode=ct.PaddingMode.ZERO) * 3)


def main():
    stream = cp.cuda.get_current_stream()
    x = np.arange(1000, dtype=np.float32)
    device, result = cp.asarray(x), cp.zeros(1000, dtype=np.float32)

    space = [dict(tile=64, occupancy=1), dict(tile=256, occupancy=2), dict(tile=48, occupancy=1)]
    found = ct.tune.exhaustive_search(
        space, stream,
        grid_fn=lambda c: (ct.cdiv(1000, c["tile"]),),
        kernel=scale,
        args_fn=lambda c: (device, result, c["tile"]),
        hints_fn=lambda c: {"occupancy": c["occupancy"]},
        quiet=True,
        flush_l2=False,
    )
    assert isinstance(found, ct.tune.TuningResult) and isinstance(found.best, ct.tune.Measurement)
    assert {m.config["tile"] for m in found.successes} == {64, 256}
    assert [config["tile"] for config, _, _ in found.failures] == [48]  # no power of two
    assert found.best in found.successes
    assert found.best.mean_us == min(m.mean_us for m in found.successes) > 0
    assert all(m.num_samples >= 1 and m.error_margin_us >= 0 for m in found.successes)
    assert "2 succeeded, 1 failed" in found.summary()
    np.testing.assert_array_equal(cp.asnumpy(result), x * 3)

    # The kernel itself may depend on the configuration.
    found = ct.tune.exhaustive_search(
        ["blocks", "steps"], stream,
        grid_fn=lambda name: (ct.cdiv(1000, 128),) if name == "blocks" else (1,),
        kernel=lambda name: scale if name == "blocks" else scale_by_steps,
        args_fn=lambda name: (device, cp.zeros(1000, dtype=np.float32), 128),
        quiet=True,
        flush_l2=False,
    )
    assert found.best.config in ("blocks", "steps") and not found.failures

    try:
        ct.tune.exhaustive_search([48], stream, lambda c: (1,), scale, lambda c: (device, result, c), quiet=True)
    except ValueError as caught:
        assert "48" in str(caught)
    else:
        raise SystemExit("a search without a valid configuration ended well")


if __name__ == "__main__":
    main()
