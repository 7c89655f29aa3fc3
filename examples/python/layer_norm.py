"""Layer norm, forward and backward.

Shows: values kept for the backward pass, and gradients of the weights summed over all rows: each block adds up a few
rows by itself, and adds its sums to the result with atomics.
"""

import numpy as np
from common import arguments, check, compare

import girih
import girih.language as tl


@girih.jit
def forward(x_ptr, w_ptr, b_ptr, out_ptr, mean_ptr, rstd_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    inside = j < columns
    x = tl.load(x_ptr + row * columns + j, mask=inside, other=0.0)
    mean = tl.sum(x) / columns
    centred = tl.where(inside, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred) / columns + eps)
    w = tl.load(w_ptr + j, mask=inside)
    b = tl.load(b_ptr + j, mask=inside)
    tl.store(out_ptr + row * columns + j, centred * rstd * w + b, mask=inside)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


@girih.jit
def backward(x_ptr, w_ptr, mean_ptr, rstd_ptr, dout_ptr, dx_ptr, dw_ptr, db_ptr, rows, columns, BLOCK: tl.constexpr):
    j = tl.arange(0, BLOCK)
    inside = j < columns
    w = tl.load(w_ptr + j, mask=inside, other=0.0)
    dw = tl.zeros((BLOCK,), tl.float32)
    db = tl.zeros((BLOCK,), tl.float32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * columns + j, mask=inside, other=0.0)
        dout = tl.load(dout_ptr + row * columns + j, mask=inside, other=0.0)
        rstd = tl.load(rstd_ptr + row)
        normal = tl.where(inside, (x - tl.load(mean_ptr + row)) * rstd, 0.0)
        scaled = dout * w
        along = tl.sum(normal * scaled) / columns
        constant = tl.sum(scaled) / columns
        tl.store(dx_ptr + row * columns + j, (scaled - constant - normal * along) * rstd, mask=inside)
        dw += dout * normal
        db += dout
    tl.atomic_add(dw_ptr + j, dw, mask=inside)
    tl.atomic_add(db_ptr + j, db, mask=inside)


def reference(x, w, b, eps):
    centred = x - x.mean(axis=1, keepdims=True)
    rstd = 1.0 / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + eps)
    return centred * rstd * w + b, centred * rstd, rstd


def main():
    options = arguments(__doc__)
    rows, columns = (6, 100) if options.small else (1024, 1000)
    rng = np.random.default_rng(0)
    x, dout = rng.standard_normal((2, rows, columns), dtype=np.float32)
    w, b = rng.standard_normal((2, columns), dtype=np.float32)
    out, dx = np.empty_like(x), np.empty_like(x)
    mean, rstd = np.empty((2, rows), np.float32)
    dw, db = np.zeros((2, columns), np.float32)
    block = girih.next_power_of_2(columns)

    def run():
        forward[(rows,)](x, w, b, out, mean, rstd, columns, 1e-5, BLOCK=block, device=options.device)

    run()
    blocks = min(rows, 8)
    backward[(blocks,)](x, w, mean, rstd, dout, dx, dw, db, rows, columns, BLOCK=block, device=options.device)

    want, normal, scale = reference(x.astype(np.float64), w, b, 1e-5)
    check("layer norm, forward", out, want, 1e-5)
    scaled = dout.astype(np.float64) * w
    along = (normal * scaled).mean(axis=1, keepdims=True)
    check("layer norm, dx", dx, (scaled - scaled.mean(axis=1, keepdims=True) - normal * along) * scale, 1e-5)
    check("layer norm, dw", dw, (dout * normal).sum(axis=0), 1e-5)
    check("layer norm, db", db, dout.astype(np.float64).sum(axis=0), 1e-5)
    if options.time:
        compare("layer norm", run, lambda: reference(x, w, b, 1e-5))


if __name__ == "__main__":
    main()
