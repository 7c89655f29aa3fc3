"""The sum of two vectors: a first kernel.

Shows: blocks of a grid, tiles of addresses, a mask for elements beyond the end.
"""

import numpy as np
from common import arguments, check, compare

import girih
import girih.language as tl


@girih.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    y = tl.load(y_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, x + y, mask=inside)


def main():
    options = arguments(__doc__)
    n = 1000 if options.small else 10_000_003
    x, y = np.random.default_rng(0).standard_normal((2, n), dtype=np.float32)
    out = np.empty_like(x)
    grid = (girih.cdiv(n, 1024),)
    add[grid](x, y, out, n, BLOCK=1024, device=options.device)
    check("vector_add", out, x.astype(np.float64) + y, 1e-7)
    if options.time:
        compare("vector_add", lambda: add[grid](x, y, out, n, BLOCK=1024), lambda: np.add(x, y, out=out))


if __name__ == "__main__":
    main()
