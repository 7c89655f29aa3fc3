"""Dropout whose mask is never stored: the random numbers follow from a seed and each element's position.

Shows: Philox, the same numbers in the forward and the backward pass from the same seed.
"""

import numpy as np
from common import arguments, check

import girih
import girih.language as tl


@girih.jit
def dropout(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    keep = tl.rand(seed, offsets) > p
    tl.store(out_ptr + offsets, tl.where(keep, x / (1.0 - p), 0.0), mask=inside)


def main():
    options = arguments(__doc__)
    n = 1000 if options.small else 100_000
    x = np.random.default_rng(0).standard_normal(n, dtype=np.float32)
    first, again, other = (np.empty_like(x) for _ in range(3))
    grid = (girih.cdiv(n, 512),)
    for out, seed in ((first, 123), (again, 123), (other, 124)):
        dropout[grid](x, out, n, 0.25, seed, BLOCK=512, device=options.device)
    kept = first != 0
    check("dropout, what is kept", first[kept], x[kept].astype(np.float64) / 0.75, 1e-6)
    check("dropout, the same seed", again, first, 0.0)
    check("dropout, the share kept", kept.mean(), 0.75, 0.1 if options.small else 0.01)
    check("dropout, another seed differs in a share of", (first != other).mean(), 2 * 0.75 * 0.25, 0.2)


if __name__ == "__main__":
    main()
