"""Softmax of every row of a matrix, fused: each row is read once and written once.

Shows: one block per row, a row padded to a power of two, reductions.
"""

import numpy as np
from common import arguments, check, compare

import girih
import girih.language as tl


@girih.jit
def softmax(src, dst, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    x = tl.load(src + row * columns + j, mask=j < columns, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(dst + row * columns + j, e / tl.sum(e, axis=0), mask=j < columns)


def reference(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def main():
    options = arguments(__doc__)
    rows, columns = (5, 100) if options.small else (4096, 1000)
    x = np.random.default_rng(0).standard_normal((rows, columns), dtype=np.float32)
    out = np.empty_like(x)
    block = girih.next_power_of_2(columns)
    softmax[(rows,)](x, out, columns, BLOCK=block, device=options.device)
    check("softmax", out, reference(x.astype(np.float64)), 1e-6)
    if options.time:
        compare("softmax", lambda: softmax[(rows,)](x, out, columns, BLOCK=block), lambda: reference(x))


if __name__ == "__main__":
    main()
