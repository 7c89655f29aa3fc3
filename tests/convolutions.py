#!/usr/bin/env python3
"""usage: convolutions.py GIRIH [--seeds N] [--first S] [--target T]...

Draws convolutions, transposed ones, and the gradients of weights (convolutions whose windows are as large as an image), with
enough channels and such extents that their schedules share windows, swap operands, compute rows together and leave edges over. Some are
by channel, and behind some stand an activation and a convolution of one pixel. Runs them natively and compares with NumPy in float64."""
import argparse
import itertools
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np

EPS = 2.0**-24


def convolved(x, w, stride, padding, dilation, groups):
    """Sums over windows, in float64; `x [n, c, d..]`, `w [m, c / groups, k..]`."""
    x, w = x.astype(np.float64), w.astype(np.float64)
    x = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in padding]])
    count = [(d - (k - 1) * t - 1) // s + 1 for d, k, s, t in zip(x.shape[2:], w.shape[2:], stride, dilation)]
    y = np.zeros((x.shape[0], w.shape[0], *count))
    each, made = w.shape[1], w.shape[0] // groups
    for at in itertools.product(*map(range, w.shape[2:])):
        part = x[(..., *[slice(k * t, k * t + (c - 1) * s + 1, s) for k, t, s, c in zip(at, dilation, stride, count)])]
        for g in range(groups):
            y[:, g * made : (g + 1) * made] += np.einsum(
                "nc...,mc->nm...", part[:, g * each : (g + 1) * each], w[(slice(g * made, (g + 1) * made), slice(None), *at)]
            )
    return y


def transposed(x, w, stride, padding, extra):
    """The adjoint of a convolution: a convolution of `x` with zeros between its elements, by the turned weights."""
    wide = np.zeros((*x.shape[:2], *[(d - 1) * s + 1 + e for d, s, e in zip(x.shape[2:], stride, extra)]))
    wide[(..., *[slice(0, (d - 1) * s + 1, s) for d, s in zip(x.shape[2:], stride)])] = x
    turned = np.flip(w, tuple(range(2, w.ndim))).swapaxes(0, 1)
    ones = [1] * len(stride)
    around = [k - 1 - p for k, p in zip(w.shape[2:], padding)]
    return convolved(wide, turned, ones, around, ones, 1)


def draw(rng):
    """An expression of `x` and `w`, their shapes, and a function that gives the exact result."""
    n = rng.choice([1, 2, 2, 2, 3])
    kind = rng.choice(["plain"] * 4 + ["transposed", "gradient", "gradient"] + ["by channel"] * 3)
    batch = rng.choice([1, 2, 3])
    channels = lambda: rng.choice([3, 8, 16, 24, 32, 33, 40, 64])
    top = {1: 90, 2: 33, 3: 9}[n]
    extents = [rng.choice([7, 8, 14, 15, 28, rng.randint(5, top)]) if n < 3 else rng.randint(4, top) for _ in range(n)]
    size = [rng.choice([1, 2, 3, 3, 3, 5] if kind != "by channel" or n == 3 else [2, 3, 3, 5, 7]) for _ in range(n)]
    stride = [rng.choice([1, 1, 1, 2, 2, 3])] * n
    padding = [rng.randint(0, k // 2) for k in size]
    dilation = [rng.choice([1, 1, 1, 2])] * n
    extents = [max(d, (k - 1) * t + 1) for d, k, t in zip(extents, size, dilation)]
    if kind in ("plain", "by channel"):
        groups = rng.choice([1, 1, 1, 2])
        c, m = channels() * groups, channels() * groups
        if kind == "by channel":
            groups = c
            m = c * rng.choice([1, 1, 1, 2])
        shapes = (batch, c, *extents), (m, c // groups, *size)
        text = f"conv{n}d(x, w, stride={stride}, padding={padding}, dilation={dilation}, groups={groups})"
        exact = lambda x, w: convolved(x, w, stride, padding, dilation, groups)
        if rng.random() < 0.7:
            return text, shapes, exact
        # Each result is an eighth of the sum over all channels.
        made = rng.choice([3, 16, 24, 40])
        text = f"conv{n}d(torch.nn.functional.relu6(torch.nn.functional.{text}), torch.full({[made, m, *[1] * n]}, 0.125))"
        mixed = lambda y: np.repeat(0.125 * y.clip(0, 6).sum(1, keepdims=True), made, axis=1)
        return text, shapes, lambda x, w: mixed(exact(x, w))
    if kind == "transposed":
        extra = [rng.randint(0, s - 1) for s in stride]
        shapes = (batch, channels(), *extents), (0, channels(), *size)
        shapes = shapes[0], (shapes[0][1], *shapes[1][1:])
        text = f"conv_transpose{n}d(x, w, stride={stride}, padding={padding}, output_padding={extra})"
        return text, shapes, lambda x, w: transposed(x, w, stride, padding, extra)
    # dw[m, c] = sum over images of what is read at the places of gradients: images are channels, strides are distances.
    places = [(d + 2 * p - k) // s + 1 for d, k, p, s in zip(extents, size, padding, stride)]
    shapes = (batch, channels(), *extents), (batch, channels(), *places)
    text = f"conv{n}d(x.transpose(0, 1), w.transpose(0, 1), padding={padding}, dilation={stride}).transpose(0, 1)"
    ones = [1] * n
    return text, shapes, lambda x, w: convolved(x.swapaxes(0, 1), w.swapaxes(0, 1), ones, padding, stride, 1).swapaxes(0, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("girih")
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--target", action="append", help="compile for this processor or GPU, and simulate the latter")
    asked = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        for seed, target in itertools.product(range(asked.first, asked.first + asked.seeds), asked.target or [None]):
            rng = random.Random(seed)
            text, shapes, exact = draw(rng)
            of = np.random.default_rng(seed)
            x, w = (of.standard_normal(shape).astype(np.float32) for shape in shapes)
            np.save(place / "x.npy", x)
            np.save(place / "w.npy", w)
            want = exact(x, w)
            command = [asked.girih, "run", "-c", f"torch.nn.functional.{text}", "--threads", "2"]
            command += ["--arg", f"x={place / 'x.npy'}", "--arg", f"w={place / 'w.npy'}", "--save", f"out={place / 'y.npy'}"]
            command += ["--target", target] if target else []
            command += ["--device", "sim"] if target and target.startswith("sm_") else []
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            what = f"seed {seed}{f', {target}' if target else ''}: {text}, x {list(x.shape)}, w {list(w.shape)}"
            if done.returncode:
                print(f"{what}\n{done.stdout}")
                failed += 1
                continue
            got = np.load(place / "y.npy")
            terms = w.size // w.shape[1 if "transpose" in text else 0] * (w.shape[0] if "relu6" in text else 1)
            bound = 8 * EPS * np.sqrt(terms) * np.abs(x).max() * np.abs(w).max()
            if got.shape != want.shape or not np.abs(got - want).max(initial=0) <= bound:
                wrong = "shape" if got.shape != want.shape else f"error {np.abs(got - want).max():.2e}, bound {bound:.2e}"
                print(f"{what}: {wrong}")
                failed += 1
    if failed:
        sys.exit(f"{failed} failed")
    print(f"{asked.seeds} convolutions agree with float64")


if __name__ == "__main__":
    main()
