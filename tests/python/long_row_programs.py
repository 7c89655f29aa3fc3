"""Kernels over long rows, as text, and NumPy's results: normalisations, losses, gradients and searches that go through a row more
than once, for one row a block or for the rows of a tile."""

import re

import numpy as np

# `A` is the axis of a row, `F(x)` gives each element of a row what the row is folded to. `v` is the row, `w` and `u` are weights.
PROGRAMS = {
    "softmax": ["e = tl.exp(v - F(tl.max(v, A)))", "r = e / F(tl.sum(e, A))"],
    "log_softmax": ["d = v - F(tl.max(v, A))", "r = d - F(tl.log(tl.sum(tl.exp(d), A)))"],
    "layer_norm": ["d = v - F(tl.sum(v, A) / N)", "r = d / F(tl.sqrt(tl.sum(d * d, A) / N + 1e-5)) * w + u"],
    "rms_norm": ["r = v / F(tl.sqrt(tl.sum(v * v, A) / N + 1e-5)) * w"],
    "norm_gradient": [
        "d = v - F(tl.sum(v, A) / N)",
        "h = d / F(tl.sqrt(tl.sum(d * d, A) / N + 1e-5))",
        "g = w * u",
        "r = g - F(tl.sum(g, A) / N) - h * F(tl.sum(g * h, A) / N)",
    ],
    "softmax_gradient": [
        "e = tl.exp(v - F(tl.max(v, A)))",
        "p = e / F(tl.sum(e, A))",
        "r = p * (w - F(tl.sum(p * w, A)))",
    ],
    "cross_entropy": ["m = F(tl.max(v, A))", "r = F(tl.log(tl.sum(tl.exp(v - m), A))) + m - v * w"],
    "argmax": ["r = v + F(tl.argmax(v, A))"],
    "argmin": ["r = v - F(tl.argmin(v, A))"],
    "max_and_index": ["m, k = tl.max(v, A, return_indices=True)", "r = v - F(m) + F(k)"],
    "best_of_softmax": ["e = tl.exp(v - F(tl.max(v, A)))", "p = e / F(tl.sum(e, A))", "r = p * 2 + F(tl.argmax(p, A))"],
    "two_best": [
        "a = F(tl.argmax(v, A))",
        "b = F(tl.argmax(tl.where(cols == a, float('-inf'), v), A))",
        "r = v + a * 2 + b",
    ],
    "cumsum": ["r = tl.cumsum(v, A)"],
    "sum_of_cumsum": ["c = tl.cumsum(v, A)", "r = c - v + F(tl.max(c, A))"],
    "reverse_cumsum": ["r = tl.cumsum(v, A, reverse=True)"],
    "two_scans": ["c = tl.cumsum(v, A) / 16", "r = tl.cumsum(c * w, A)"],
    "scan_of_weights": ["r = tl.cumsum(v, A) - tl.cumsum(w, A)"],
    "cumsum_of_softmax": ["e = tl.exp(v - F(tl.max(v, A)))", "r = tl.cumsum(e / F(tl.sum(e, A)), A)"],
    "flip": ["r = tl.flip(v, A)"],
    "flip_and_self": ["r = tl.flip(v, A) + v"],
    "flip_twice": ["r = tl.flip(tl.flip(v, A) * w, A)"],
    "flip_of_cumsum": ["r = tl.flip(tl.cumsum(v, A), A)"],
    "cumsum_of_flip": ["r = tl.cumsum(tl.flip(v, A) * w, A)"],
    "cumsum_and_flip": ["r = tl.cumsum(v, A) + tl.flip(v, A)"],
    "best_of_flip": ["f = tl.flip(v, A)", "r = f * w + F(tl.max(f, A))"],
    "norms_in_turn": [
        "a = v / F(tl.sum(tl.abs(v), A))",
        "b = a - F(tl.max(a, A))",
        "r = b / F(tl.sqrt(tl.sum(b * b, A) + 1e-5))",
    ],
    "two_rows": [
        "a = v / F(tl.sum(tl.abs(v), A))",
        "b = w / F(tl.sum(tl.abs(w), A))",
        "r = a * b + F(tl.sum(a * b, A))",
    ],
    "greater_than_mean": ["m = F(tl.sum(v, A) / N)", "r = v + F(tl.sum((v > m).to(tl.int32), A))"],
    "gate": ["g = v / (1 + tl.exp(-v)) * w", "r = g / F(tl.sqrt(tl.sum(g * g, A) / N + 1e-5))"],
    "scale_to_bytes": ["s = F(tl.max(tl.abs(v), A)) / 127.0", "r = v / s"],
}

# The padding of rows that are shorter than their tile: it changes no result of a fold.
PADDING = dict.fromkeys(("softmax", "log_softmax", "softmax_gradient", "cross_entropy", "best_of_softmax"), "float('-inf')")
PADDING |= dict.fromkeys(("rms_norm", "argmax", "argmin", "max_and_index", "two_rows", "gate", "scale_to_bytes", "cumsum", "two_scans"), "0")


def program(name, rows, width, masked):
    """The text of a module with `kernel(x, y, weights, N)`: one row a block, or a tile of `rows` rows of `width` elements."""
    body = PROGRAMS[name]
    mask = ", mask=cols < N" if masked else ""
    padding = PADDING.get(name, "0")
    place = "[None, :]" if rows else ""
    lines = ["import girih as tl", "", "", "@tl.jit", "def kernel(x, y, weights, N: tl.constexpr):"]
    lines.append(f"    cols = tl.arange(0, {width}){place}")
    lines.append(f"    row = tl.arange(0, {rows})[:, None]" if rows else "    row = tl.program_id(0)")
    lines.append(f"    v = tl.load(x + row * N + cols{mask}{f', other={padding}' if masked else ''}).to(y.dtype.element_ty)")
    for at, weights in enumerate("wu"):
        if re.search(rf"\b{weights}\b", " ".join(body)):
            lines.append(f"    {weights} = tl.load(weights + {at} * N + cols{mask}{', other=0' if masked else ''}).to(y.dtype.element_ty)")
    lines += [f"    {folded(line, rows)}" for line in body]
    lines.append(f"    tl.store(y + row * N + cols, r{mask})")
    return "\n".join(lines) + "\n"


def folded(line, rows):
    """A line with its axis, and with what rows are folded to repeated along them."""
    line = re.sub(r"\bA\b", "1" if rows else "0", line)
    while (at := line.find("F(")) >= 0:
        depth, end = 1, at + 2
        while depth:
            depth += {"(": 1, ")": -1}.get(line[end], 0)
            end += 1
        line = f"{line[:at]}({line[at + 2 : end - 1]}){'[:, None]' if rows else ''}{line[end:]}"
    return line


class Language:
    """NumPy in place of the language, in float64."""

    int32 = np.int32
    abs, exp, log, sqrt, where = np.abs, np.exp, np.log, np.sqrt, staticmethod(np.where)

    def max(self, t, axis, return_indices=False):
        return (t.max(axis), t.argmax(axis)) if return_indices else t.max(axis)

    def sum(self, t, axis):
        return t.sum(axis)

    def argmax(self, t, axis):
        return t.argmax(axis)

    def argmin(self, t, axis):
        return t.argmin(axis)

    def cumsum(self, t, axis, reverse=False):
        return np.flip(np.flip(t, axis).cumsum(axis), axis) if reverse else t.cumsum(axis)

    def flip(self, t, axis):
        return np.flip(t, axis)


class Tile(np.ndarray):
    def to(self, dtype):
        return self.astype(dtype)


def expected(name, x, weights):
    """The results for rows `x`."""
    v, w, u = (np.asarray(t, np.float64).view(Tile) for t in (x, weights[:1], weights[1:]))
    names = {"tl": Language(), "v": v, "w": w + 0 * v, "u": u, "N": x.shape[1], "cols": np.arange(x.shape[1])[None, :]}
    exec("\n".join(folded(line, 2) for line in PROGRAMS[name]), names)
    return np.asarray(names["r"])
