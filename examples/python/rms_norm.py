"""RMS norm: every row divided by its root mean square, times a weight.

Shows: 16-bit data computed with in float32, a row longer than a tile in a loop with a runtime bound.
"""

import numpy as np
from common import arguments, check, compare

import girih
import girih.language as tl


@girih.jit
def rms_norm(x_ptr, w_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        x = tl.load(x_ptr + row * columns + start + j, mask=start + j < columns, other=0.0).to(tl.float32)
        squares += x * x
    scale = tl.rsqrt(tl.sum(squares) / columns + eps)
    for start in range(0, columns, BLOCK):
        inside = start + j < columns
        x = tl.load(x_ptr + row * columns + start + j, mask=inside, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + start + j, mask=inside, other=0.0)
        tl.store(out_ptr + row * columns + start + j, x * scale * w, mask=inside)


def reference(x, w, eps):
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + eps) * w


def main():
    options = arguments(__doc__)
    rows, columns = (3, 200) if options.small else (2048, 3000)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, columns)).astype(np.float16)
    w = rng.standard_normal(columns, dtype=np.float32)
    out = np.empty_like(x)
    rms_norm[(rows,)](x, w, out, columns, 1e-6, BLOCK=512, device=options.device)
    check("rms_norm", out, reference(x.astype(np.float64), w, 1e-6), 1e-3)
    if options.time:
        wide = x.astype(np.float32)
        compare("rms_norm", lambda: rms_norm[(rows,)](x, w, out, columns, 1e-6, BLOCK=512), lambda: reference(wide, w, 1e-6))


if __name__ == "__main__":
    main()
