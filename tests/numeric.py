#!/usr/bin/env python3
"""usage: numeric.py GIRIH [--device cpu|eval]...

Runs every program under examples/ on random data and compares the results with NumPy in float64. The shapes differ from
the launch lines in the files: nothing is a multiple of its tile where the program allows that."""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"
EPS = 2.0**-24
rng = np.random.default_rng(7)


def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def f16(*shape):
    return rng.standard_normal(shape).astype(np.float16)


def wide(a):
    return a.astype(np.float64)


def bf16(a):
    """f32 rounded to bf16 (nearest even), as float64."""
    bits = a.view(np.uint32)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return bits.astype(np.uint32).view(np.float32).astype(np.float64)


def dot_bound(a, b, k):
    """c * sqrt(K) * eps, scaled by the size of the terms."""
    return 8 * np.sqrt(k) * EPS * np.abs(a).max() * np.abs(b).max() * np.sqrt(k)


def vector_add():
    n = 5000
    a, b = f32(n), f32(n)
    yield (5,), dict(a=a, b=b, c=np.zeros(n, np.float32), n=n), "c", (a + b), 0.0


def saxpy():
    m, n = 130, 515
    x, y = f32(m, n), f32(m, n)
    yield (3, 3), dict(X=x, Y=y, alpha=2.5, M=m, N=n), "Y", 2.5 * wide(x) + wide(y), 1e-6


def gemm():
    for m, n, k in [(200, 140, 72), (1, 1, 1), (129, 257, 65)]:
        a, b = f16(m, k), f16(k, n)
        c = np.zeros((m, n), np.float32)
        grid = (-(-m // 128), -(-n // 128))
        yield grid, dict(A=a, B=b, C=c, M=m, N=n, K=k), "C", wide(a) @ wide(b), dot_bound(a, b, k)


def gemm_f32():
    m, n, k = 150, 170, 190
    a, b = f32(m, k), f32(k, n)
    c = np.zeros((m, n), np.float32)
    yield (2, 2), dict(A=a, B=b, C=c, M=m, N=n, K=k), "C", wide(a) @ wide(b), dot_bound(a, b, k)


def gemm_block():
    a, b = f32(64, 64), f32(64, 64)
    yield (1,), dict(A=a, B=b, C=np.zeros((64, 64), np.float32)), "C", wide(a) @ wide(b), dot_bound(a, b, 64)


def gemm_pointers():
    a, b = f32(512, 512), f32(512, 512)
    yield (8, 8), dict(A=a, B=b, C=np.zeros((512, 512), np.float32)), "C", wide(a) @ wide(b), dot_bound(a, b, 512)


def gemm_transposed():
    m, n, k = 200, 136, 72
    a, b = f16(k, m), f16(n, k)
    c = np.zeros((m, n), np.float32)
    yield (2, 2), dict(A=a, B=b, C=c, M=m, N=n, K=k), "C", wide(a).T @ wide(b).T, dot_bound(a, b, k)


def batched_gemm():
    l, m, n, k = 3, 70, 40, 50
    a, b = f32(l, m, k), f32(l, k, n)
    c = np.zeros((l, m, n), np.float32)
    yield (2, 3, 2), dict(A=a, B=b, C=c, L=l, M=m, N=n, K=k), "C", bf16(a) @ bf16(b), dot_bound(a, b, k)


def softmax():
    for rows, n in [(9, 1000), (3, 1024), (2, 1)]:
        x = f32(rows, n)
        e = np.exp(wide(x) - wide(x).max(axis=1, keepdims=True))
        yield (rows,), dict(src=x, dst=np.zeros_like(x), n=n), "dst", e / e.sum(axis=1, keepdims=True), 1e-6


def layer_norm():
    rows = 13
    x, w, b = f32(rows, 512), f32(512), f32(512)
    d = wide(x) - wide(x).mean(axis=1, keepdims=True)
    want = d / np.sqrt((d**2).mean(axis=1, keepdims=True) + 1e-5) * w + b
    yield (4,), dict(X=x, W=w, B=b, Y=np.zeros_like(x), eps=1e-5, rows=rows), "Y", want, 2e-5


def transpose():
    m, n = 100, 70
    x = f32(m, n)
    yield (2, 2), dict(X=x, Y=np.zeros((n, m), np.float32), M=m, N=n), "Y", x.T, 0.0


def attention(element=np.float32, tolerance=2e-6):
    heads, n, d = 2, 150, 64
    q, k, v = (f32(heads, n, d).astype(element) for _ in range(3))
    s = wide(q) @ wide(k).transpose(0, 2, 1) / np.sqrt(d)
    p = np.exp(s - s.max(axis=2, keepdims=True))
    want = p / p.sum(axis=2, keepdims=True) @ wide(v)
    out = np.zeros(q.shape, np.float32)
    yield (3, 2), dict(Q=q, K=k, V=v, O=out, heads=heads, n=n), "O", want, tolerance


def attention_f16():
    # The weights are rounded to 11 bits, and sums of them are not.
    yield from attention(np.float16, 5e-4)


def histogram():
    n = 3000
    x = rng.integers(-1000, 1000, n).astype(np.int32)
    yield (3,), dict(values=x, bins=np.zeros(64, np.int32), n=n), "bins", np.bincount(x & 63, minlength=64), 0.0


def prefix_sum():
    x = rng.integers(-100, 100, (64, 512)).astype(np.int32)
    yield (32,), dict(X=x, Y=np.zeros_like(x)), "Y", np.cumsum(x, axis=1), 0.0


def mutex():
    yield (20,), dict(total=np.zeros(1, np.int32)), "total", np.array([190]), 0.0


PRINTS = {
    "hello": ((2, 1, 2), [f"Hello, I am block <{x}, 0, {z}> of a <2, 1, 2> grid." for x in range(2) for z in range(2)]),
    "print_in_turn": ((6, 1, 1), [f"block {i} of 6" for i in range(6)]),
}


def spec(directory, name, value):
    if isinstance(value, np.ndarray):
        np.save(f"{directory}/{name}.npy", value)
        return f"{name}={directory}/{name}.npy"
    return f"{name}=f32:{value!r}" if isinstance(value, float) else f"{name}=i32:{value}"


def run(girih, device, example, grid, args, out):
    with tempfile.TemporaryDirectory() as directory:
        command = [girih, "run", str(EXAMPLES / f"{example}.mlir"), "--device", device, "--grid", ",".join(map(str, grid))]
        for name, value in args.items():
            command += ["--arg", spec(directory, name, value)]
        if out:
            command += ["--save", f"{out}={directory}/result.npy"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode:
            raise RuntimeError(f"exit {done.returncode}: {done.stderr.strip()[-400:]}")
        return np.load(f"{directory}/result.npy") if out else sorted(done.stdout.splitlines())


def main():
    girih = sys.argv[1]
    devices = [sys.argv[i + 1] for i, a in enumerate(sys.argv) if a == "--device"] or ["cpu", "eval"]
    passed, failed = 0, 0
    for path in sorted(EXAMPLES.glob("*.mlir")):
        example = path.stem
        if example not in PRINTS and example not in globals():
            print(f"FAIL {example}: no check is written for this example")
            failed += 1
            continue
        for device in devices:
            try:
                if example in PRINTS:
                    grid, lines = PRINTS[example]
                    ok = run(girih, device, example, grid, {}, None) == sorted(lines)
                    text = "prints as expected" if ok else "prints something else"
                else:
                    ok, worst = True, 0.0
                    for grid, args, out, want, bound in globals()[example]():
                        got = wide(run(girih, device, example, grid, args, out)).reshape(want.shape)
                        error = np.abs(got - want).max()
                        ok &= bool(np.isfinite(got).all()) and error <= bound
                        worst = max(worst, error)
                    text = f"largest error {worst:.3g}"
            except (RuntimeError, subprocess.TimeoutExpired) as e:
                ok, text = False, str(e)
            passed, failed = passed + ok, failed + (not ok)
            print(f"{'ok  ' if ok else 'FAIL'} {example} on {device}: {text}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
