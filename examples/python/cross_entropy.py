"""Cross entropy of logits and class numbers, with its gradient, reading each row twice and storing no probabilities.

Shows: a row longer than a tile with a running maximum and sum, a value chosen by an index from memory.
"""

import numpy as np
from common import arguments, check, compare

import girih
import girih.language as tl


@girih.jit
def cross_entropy(logits, labels, loss, gradient, classes, share, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    best = float("-inf")
    total = 0.0
    for start in range(0, classes, BLOCK):
        x = tl.load(logits + row * classes + start + j, mask=start + j < classes, other=float("-inf")).to(tl.float32)
        new_best = tl.maximum(best, tl.max(x))
        total = total * tl.exp(best - new_best) + tl.sum(tl.exp(x - new_best))
        best = new_best
    label = tl.load(labels + row)
    tl.store(loss + row, tl.log(total) + best - tl.load(logits + row * classes + label).to(tl.float32))
    for start in range(0, classes, BLOCK):
        at = start + j
        x = tl.load(logits + row * classes + at, mask=at < classes, other=float("-inf")).to(tl.float32)
        probability = tl.exp(x - best) / total
        tl.store(gradient + row * classes + at, (probability - (at == label)) * share, mask=at < classes)


def reference(x, labels):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    rows = np.arange(len(x))
    loss = -np.log(p[rows, labels])
    p[rows, labels] -= 1
    return loss, p / len(x)


def main():
    options = arguments(__doc__)
    rows, classes = (4, 300) if options.small else (512, 10_000)
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((rows, classes), dtype=np.float32) * 4
    labels = rng.integers(0, classes, rows)
    loss, gradient = np.empty(rows, np.float32), np.empty_like(logits)

    def run():
        cross_entropy[(rows,)](logits, labels, loss, gradient, classes, 1.0 / rows, BLOCK=256, device=options.device)

    run()
    want_loss, want_gradient = reference(logits.astype(np.float64), labels)
    check("cross entropy, loss", loss, want_loss, 1e-5)
    check("cross entropy, gradient", gradient, want_gradient, 1e-5)
    if options.time:
        compare("cross entropy", run, lambda: reference(logits, labels))


if __name__ == "__main__":
    main()
