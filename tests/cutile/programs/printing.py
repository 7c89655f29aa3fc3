"""The prints of kernels arrive on standard output, formatted as asked."""
import ctypes
import os
import sys
import tempfile

import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def print_like_python(x, n: ct.Constant[int]):
    tile = ct.load(x, (0,), (n,))
    print("tile:", tile)
    print(f"twice {tile * 2} of {n}", end="!\n")
    ct.print(ct.sum(tile), ct.max(tile), sep=" | ", end=" |\n")
    print(f"{ct.astype(tile, ct.float32) / 2:.2f} 100%")
    print("matrix", tile.reshape((2, n // 2)))
    print(tile > 1, ct.bid(0), ct.num_blocks(0))
    print(f"hex {tile:#x}, wide {ct.sum(tile):6d}, signed {ct.sum(tile):+d}")
    print()
    print((tile, ct.min(tile)))


@ct.kernel
def print_like_c(x):
    a, b = ct.load(x, (0,), ()), ct.load(x, (1,), ())
    ct.printf("%d and %5d and %-4d|\n", a, b, b)
    ct.printf("%x %o %u 100%%\n", b, b, b)
    real = ct.astype(b, ct.float32) / 4.0
    ct.printf("%f %.3e %g\n", real, real, real)
    ct.printf("done\n")


@ct.kernel
def print_in_order(n):
    """Prints of one block keep their order, in loops and branches too."""
    for i in range(n):
        if i % 2 == 0:
            print(f"even {i}")
        else:
            print(f"odd {i}")


@ct.kernel
def print_from_blocks():
    i, j = ct.bid(0), ct.bid(1)
    print(f"block {i} {j} of {ct.num_blocks(0)} {ct.num_blocks(1)}")


@ct.kernel
def print_types(x):
    half = ct.load(x, (0,), (4,))
    print("f16", half)
    print("f64", ct.astype(half, ct.float64))
    print("i64", ct.astype(half, ct.int64) * 10**10)
    print("u8", ct.astype(ct.astype(half, ct.int32) - 1, ct.uint8))
    print("scalar", ct.sum(half), -1.5, 7, True)


def printed(grid, kernel, arguments):
    """Lines that a launch writes to the process's standard output."""
    stream = cp.cuda.get_current_stream()
    sys.stdout.flush()
    with tempfile.TemporaryFile() as file:
        kept = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            ct.launch(stream, grid, kernel, arguments)
            stream.synchronize()
            sys.stdout.flush()
            ctypes.CDLL(None).fflush(None)
        finally:
            os.dup2(kept, 1)
            os.close(kept)
        file.seek(0)
        return file.read().decode().splitlines()


def expect(got, want):
    if got != want:
        raise SystemExit("\n".join(["printed:", *got, "expected:", *want]))


def main():
    x = cp.asarray(np.array([3, -1, 4, 0], dtype=np.int32))
    expect(printed((1,), print_like_python, (x, 4)), [
        "tile: [3, -1, 4, 0]",
        "twice [6, -2, 8, 0] of 4!",
        "6 | 4 |",
        "[1.50, -0.50, 2.00, 0.00] 100%",
        "matrix [[3, -1], [4, 0]]",
        "[1, 0, 1, 0] 0 1",
        "hex [0x3, 0xffffffff, 0x4, 0], wide      6, signed +6",
        "",
        "([3, -1, 4, 0], -1)",
    ])
    x = cp.asarray(np.array([-5, 42], dtype=np.int32))
    expect(printed((1,), print_like_c, (x,)), [
        "-5 and    42 and 42  |",
        "2a 52 42 100%",
        "10.500000 1.050e+01 10.5",
        "done",
    ])
    expect(printed((1,), print_in_order, (5,)), ["even 0", "odd 1", "even 2", "odd 3", "even 4"])
    lines = printed((2, 3), print_from_blocks, ())
    expect(sorted(lines), [f"block {i} {j} of 2 3" for i in range(2) for j in range(3)])
    x = cp.asarray(np.array([1.5, 2.0, 3.25, 100.0], dtype=np.float16))
    expect(printed((1,), print_types, (x,)), [
        "f16 [1.500000, 2.000000, 3.250000, 100.000000]",
        "f64 [1.500000, 2.000000, 3.250000, 100.000000]",
        "i64 [10000000000, 20000000000, 30000000000, 1000000000000]",
        "u8 [0, 1, 2, 99]",
        "scalar 106.750000 -1.5 7 True",
    ])


if __name__ == "__main__":
    main()
