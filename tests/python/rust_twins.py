"""The kernels of crates/girih/examples and crates/girih/tests in Python, and their Tile IR, which the tests in Rust compare with.

`python tests/python/rust_twins.py` writes it to crates/girih/tests/twins; test_rust_twins.py checks that it is there as it would be
written.
"""

import sys
from pathlib import Path

import numpy as np

import girih
import girih.language as tl

ROOT = Path(__file__).parents[2]
TWINS = ROOT / "crates/girih/tests/twins"
sys.path.insert(0, str(ROOT / "examples/python"))


@girih.jit
def operations(x, y, k, floats, ints):
    i = tl.arange(0, 64)
    a, b, n = tl.load(x + i), tl.load(y + i), tl.load(k + i)
    square = tl.reshape(a, (8, 8))
    results = (
        a + b, a - 2.5, 3.0 * a, a / b, a % b, -a, tl.exp(a), tl.exp2(a), tl.log(tl.abs(a)), tl.log2(tl.abs(a)), tl.sqrt(tl.abs(a)),
        tl.rsqrt(tl.abs(a)), tl.sin(a), tl.cos(a), tl.tan(a), tl.sinh(a), tl.cosh(a), tl.tanh(a), tl.floor(a), tl.ceil(a), tl.erf(a),
        tl.sigmoid(a), tl.fma(a, b, 1.5), tl.math.atan2(a, b), tl.maximum(a, b), tl.minimum(a, 0.5), tl.clamp(a, -0.5, 0.5),
        tl.where(n > 3, a, b), tl.softmax(a), tl.sort(a), tl.flip(a), tl.cumsum(a), tl.cumprod(a), n.to(tl.float32),
        a.to(tl.float16).to(tl.float32), a.to(tl.bfloat16).to(tl.float32), tl.ravel(tl.trans(square)),
        tl.ravel(tl.dot(square, tl.reshape(b, (8, 8)))), tl.ravel(tl.gather(square, tl.reshape(n % 8, (8, 8)), axis=1)),
        tl.rand(7, i), tl.randn(7, i), tl.interleave(tl.sum(tl.reshape(a, (32, 2)), 1), tl.max(tl.reshape(b, (32, 2)), 1)),
        tl.broadcast_to(tl.sum(a, 0), (64,)), tl.broadcast_to(tl.prod(a, 0), (64,)), tl.broadcast_to(tl.min(a, 0), (64,)),
        tl.associative_scan(a, 0, larger), tl.broadcast_to(tl.reduce(a, 0, larger), (64,)),
    )  # fmt: skip
    for row, result in enumerate(results):
        tl.store(floats + row * 64 + i, result)
    whole = (
        n + 3, n - n * n, n // 3, n % 3, n & 5, n | 8, n ^ 3, ~n, n << 2, n >> 1, -n, tl.abs(n), tl.maximum(n, 4), a.to(tl.int32),
        (a < b).to(tl.int32), (n != 4).to(tl.int32), tl.randint(7, i).to(tl.int32, bitcast=True), tl.cumsum(n), tl.sort(n),
        tl.broadcast_to(tl.argmax(a, 0), (64,)), tl.broadcast_to(tl.argmin(a, 0), (64,)), tl.broadcast_to(tl.xor_sum(n, 0), (64,)),
        tl.broadcast_to(tl.sum(n, 0), (64,)), n.to(tl.int8).to(tl.int32), tl.histogram(n, 64), tl.cdiv(n, 3),
        tl.cumsum(n.to(tl.int8).to(tl.int32), 0),
    )  # fmt: skip
    for row, result in enumerate(whole):
        tl.store(ints + row * 64 + i, result)


@girih.jit
def larger(x, y):
    return tl.where(x > y, x, y)


def texts():
    """The Tile IR of each by name, for arrays of any alignment and for numbers that 16 does not divide."""
    import attention
    import matmul_ladder
    import softmax

    def array(dtype=np.float32):
        return np.zeros(65, dtype)[1:]

    a = array()
    yield "softmax", softmax.softmax.tile_ir(a, a, 100, BLOCK=128)
    sizes = dict(BLOCK_M=16, BLOCK_N=16, BLOCK_K=8, GROUP=2)
    yield "gemm", matmul_ladder.tiled.tile_ir(a, a, a, 20, 26, 37, **sizes)
    for causal in (False, True):
        name = "attention_causal" if causal else "attention"
        yield name, attention.attention.tile_ir(a, a, a, a, 41, 0.25, HEAD=16, BLOCK_M=16, BLOCK_N=16, CAUSAL=causal)
    yield "operations", operations.tile_ir(a, a, array(np.int32), a, array(np.int32))


def without_places(text):
    """The text without where in this checkout it comes from."""
    lines = (line.split(" loc(#")[0] for line in text.splitlines() if not line.startswith("#"))
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    TWINS.mkdir(exist_ok=True)
    for name, text in texts():
        (TWINS / f"{name}.mlir").write_text(without_places(text))
