"""Mistakes are refused when compiling, each with its own exception and the place in the source."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def shapes_differ(x):
    ct.store(x, (0,), ct.zeros((4,), dtype=ct.float32) + ct.zeros((8,), dtype=ct.float32))


@ct.kernel
def odd_shape(x):
    ct.store(x, (0,), ct.load(x, (0,), (3,)))


@ct.kernel
def types_do_not_mix(x):
    ct.store(x, (0,), ct.zeros((4,), dtype=ct.float16) + ct.zeros((4,), dtype=ct.bfloat16))


@ct.kernel
def lossy_store(x):
    ct.store(x.slice(0, 0, 4), (0,), ct.zeros((4,), dtype=ct.int32) % ct.zeros((4,), dtype=ct.uint32))


@ct.kernel
def try_statement(x):
    try:
        ct.store(x, (0,), 1.0)
    except ValueError:
        pass


def endless(x):
    return endless(x) + 1.0


@ct.kernel
def recursive(x):
    ct.store(x, (0,), endless(1.0))


@ct.kernel
def bad_axis(x):
    ct.store(x, (0,), ct.sum(ct.load(x, (0,), (4,)), axis=2))


@ct.kernel
def unknown_name(x):
    ct.store(x, (0,), ct.no_such_function(x))


@ct.kernel
def bad_constant(x):
    ct.store(x, (0,), ct.load(x, (0,), (4,), latency=11))


@ct.kernel
def shape_not_constant(x, n):
    ct.store(x, (0,), ct.zeros((n,), dtype=ct.float32))


CASES = [
    (shapes_differ, (), ct.TileError),
    (odd_shape, (), ct.TileTypeError),
    (types_do_not_mix, (), ct.TileTypeError),
    (lossy_store, (), ct.TileTypeError),
    (try_statement, (), ct.TileSyntaxError),
    (recursive, (), ct.TileRecursionError),
    (bad_axis, (), ct.TileError),
    (unknown_name, (), ct.TileError),
    (bad_constant, (), ct.TileError),
    (shape_not_constant, (4,), ct.TileTypeError),
]


@ct.kernel
def fine(x, n: ct.Constant[int]):
    ct.store(x, (0,), ct.full((n,), 1.0, dtype=ct.float32))


def main():
    stream = cp.cuda.get_current_stream()
    x = cp.zeros(8, dtype=np.float32)
    for kernel, extra, error in CASES:
        try:
            ct.launch(stream, (1,), kernel, (x, *extra))
        except error as caught:
            assert isinstance(caught, ct.TileError)
            assert "compile_errors.py" in str(caught), f"{kernel._pyfunc.__name__}: no place in {caught}"
        else:
            raise SystemExit(f"{kernel._pyfunc.__name__} was accepted")

    # Arguments and grids that do not fit are refused by the launch itself.
    for grid, arguments in (((1,), (x,)), ((1,), (x, 8, 9)), ((1,), (x, "eight")), ((1, 1, 1, 1), (x, 8)),
                            ((1,), (object(), 8)), ((2**24, 1, 1), (x, 8))):
        try:
            ct.launch(stream, grid, fine, arguments)
        except (TypeError, ValueError, OverflowError, ct.TileError):
            continue
        raise SystemExit(f"a launch over {grid} with {len(arguments)} arguments was accepted")

    # Nothing of this keeps a good kernel from running.
    ct.launch(stream, (1,), fine, (x, 8))
    np.testing.assert_array_equal(cp.asnumpy(x), np.ones(8))


if __name__ == "__main__":
    main()
