"""A matrix times a vector, two rows per block that share the vector through the block's own memory.

Shows: `shared_store`, `sync` and `shared_load`: the vector is read from main memory once for two rows.
"""

import numpy as np
from common import arguments, check

import girih
import girih.language as tl


@girih.jit
def matvec(A, x_ptr, y_ptr, M, K, TILE: tl.constexpr):
    first = tl.program_id(0) * 2
    lane = tl.arange(0, TILE)
    totals = (0.0, 0.0)
    for k0 in range(0, K, TILE):
        inside = k0 + lane < K
        tl.shared_store(lane, tl.load(x_ptr + k0 + lane, mask=inside, other=0.0))
        tl.sync()
        even = tl.load(A + first * K + k0 + lane, mask=inside, other=0.0) * tl.shared_load(lane)
        odd = tl.load(A + (first + 1) * K + k0 + lane, mask=inside & (first + 1 < M), other=0.0) * tl.shared_load(lane)
        totals = (totals[0] + tl.sum(even), totals[1] + tl.sum(odd))
        tl.sync()
    tl.store(y_ptr + first, totals[0])
    tl.store(y_ptr + first + 1, totals[1], mask=first + 1 < M)


def main():
    options = arguments(__doc__)
    m, k = (7, 100) if options.small else (1001, 1000)
    rng = np.random.default_rng(0)
    a, x = rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal(k, dtype=np.float32)
    y = np.empty(m, np.float32)
    matvec[(girih.cdiv(m, 2),)](a, x, y, m, k, TILE=128, device=options.device)
    check("matvec", y, a.astype(np.float64) @ x, 1e-5)


if __name__ == "__main__":
    main()
