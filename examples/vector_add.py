"""Adds two vectors with cuTile Python, a tile of 128 elements to each block.

    python -m girih.cutile examples/vector_add.py
"""

import cuda.tile as ct
import numpy as np

TILE = 128


@ct.kernel
def add(a, b, c):
    i = ct.bid(0)
    x = ct.load(a, (i,), (TILE,))
    y = ct.load(b, (i,), (TILE,))
    ct.store(c, (i,), x + y)


a = np.random.default_rng(0).standard_normal(1_000_000, dtype=np.float32)
b = np.random.default_rng(1).standard_normal(1_000_000, dtype=np.float32)
c = np.empty_like(a)
ct.launch(0, (ct.cdiv(a.size, TILE),), add, (a, b, c))

assert (c == a + b).all()
print(f"{a.size:,} sums, all as NumPy's")
