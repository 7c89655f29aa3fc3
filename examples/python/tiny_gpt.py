"""A tiny GPT, trained and sampled with kernels of this file alone: every operation on arrays is a kernel.

The model: characters and positions embedded, blocks of causal attention and a two-layer perceptron with layer norms
before them, a last layer norm, logits. The text is made by a little grammar; the loss falls from about 3.3, the logarithm
of the number of characters, to less than 1, and greedy sampling then writes sentences of the grammar.

Shows: a program of many kernels, forward and backward; one product kernel with strides that serves a linear layer, the
gradient of its input and the gradient of its weights.
"""

import random

import numpy as np
from common import arguments, check

import girih
import girih.language as tl

# ---- kernels


@girih.jit
def matmul(
    A, B, C, bias, M, N, K, am, ak, bk, bn,
    BIAS: tl.constexpr, ADD: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """C = A B, plus a bias for each column, plus what C holds; A and B are given by their strides."""
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    lane = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + lane
        a = tl.load(A + m * am + k[None, :] * ak, mask=(m < M) & (k[None, :] < K), other=0.0)
        b = tl.load(B + k[:, None] * bk + n * bn, mask=(k[:, None] < K) & (n < N), other=0.0)
        total = tl.dot(a, b, total, input_precision=PRECISION)
    inside = (m < M) & (n < N)
    if BIAS:
        total += tl.load(bias + n, mask=n < N, other=0.0)
    if ADD:
        total += tl.load(C + m * N + n, mask=inside, other=0.0)
    tl.store(C + m * N + n, total, mask=inside)


@girih.jit
def sum_rows(x, out, M, N, BLOCK: tl.constexpr):
    """out[n] = sum of x[m, n]: the gradient of a bias."""
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for m in range(M):
        total += tl.load(x + m * N + n, mask=n < N, other=0.0)
    tl.store(out + n, total, mask=n < N)


@girih.jit
def embed(tokens, table, positions, out, T, D: tl.constexpr):
    row, d = tl.program_id(0), tl.arange(0, D)
    token = tl.load(tokens + row)
    tl.store(out + row * D + d, tl.load(table + token * D + d) + tl.load(positions + row % T * D + d))


@girih.jit
def embed_backward(tokens, dx, dtable, dpositions, T, D: tl.constexpr):
    row, d = tl.program_id(0), tl.arange(0, D)
    token = tl.load(tokens + row)
    gradient = tl.load(dx + row * D + d)
    tl.atomic_add(dtable + token * D + d, gradient)
    tl.atomic_add(dpositions + row % T * D + d, gradient)


@girih.jit
def norm(x_ptr, w_ptr, b_ptr, out_ptr, D: tl.constexpr):
    row, d = tl.program_id(0), tl.arange(0, D)
    x = tl.load(x_ptr + row * D + d)
    centred = x - tl.sum(x) / D
    rstd = tl.rsqrt(tl.sum(centred * centred) / D + 1e-5)
    tl.store(out_ptr + row * D + d, centred * rstd * tl.load(w_ptr + d) + tl.load(b_ptr + d))


@girih.jit
def norm_backward(x_ptr, w_ptr, dout_ptr, dx_ptr, dw_ptr, db_ptr, rows, D: tl.constexpr):
    """Adds the gradient to dx, which holds that of the residual path."""
    d = tl.arange(0, D)
    w = tl.load(w_ptr + d)
    dw = tl.zeros((D,), tl.float32)
    db = tl.zeros((D,), tl.float32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        x, dout = tl.load(x_ptr + row * D + d), tl.load(dout_ptr + row * D + d)
        centred = x - tl.sum(x) / D
        rstd = tl.rsqrt(tl.sum(centred * centred) / D + 1e-5)
        normal, scaled = centred * rstd, dout * w
        dx = (scaled - tl.sum(scaled) / D - normal * (tl.sum(normal * scaled) / D)) * rstd
        tl.store(dx_ptr + row * D + d, tl.load(dx_ptr + row * D + d) + dx)
        dw += dout * normal
        db += dout
    tl.atomic_add(dw_ptr + d, dw)
    tl.atomic_add(db_ptr + d, db)


@girih.jit
def gelu(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    inner = 0.7978845608 * (x + 0.044715 * x * x * x)
    tl.store(out_ptr + i, 0.5 * x * (1.0 + tl.tanh(inner)), mask=i < n)


@girih.jit
def gelu_backward(x_ptr, gradient, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    t = tl.tanh(0.7978845608 * (x + 0.044715 * x * x * x))
    slope = 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * 0.7978845608 * (1.0 + 0.134145 * x * x)
    tl.store(gradient + i, tl.load(gradient + i, mask=i < n) * slope, mask=i < n)


@girih.jit
def weights_of(q, k, scale, T: tl.constexpr):
    """The rows of causal softmax."""
    t = tl.arange(0, T)
    scores = tl.where(t[None, :] <= t[:, None], tl.dot(q, tl.trans(k)) * scale, float("-inf"))
    e = tl.exp(scores - tl.max(scores, axis=1, keep_dims=True))
    return e / tl.sum(e, axis=1, keep_dims=True)


@girih.jit
def attend(qkv, out, scale, T: tl.constexpr, H: tl.constexpr, HEAD: tl.constexpr):
    """One block for each sequence and head; q, k and v are side by side in a row of `qkv`."""
    width = H * HEAD
    t, d = tl.arange(0, T)[:, None], tl.program_id(1) * HEAD + tl.arange(0, HEAD)[None, :]
    at = (tl.program_id(0) * T + t) * 3 * width + d
    q, k, v = tl.load(qkv + at), tl.load(qkv + at + width), tl.load(qkv + at + 2 * width)
    tl.store(out + (tl.program_id(0) * T + t) * width + d, tl.dot(weights_of(q, k, scale, T), v))


@girih.jit
def attend_backward(qkv, dout, dqkv, scale, T: tl.constexpr, H: tl.constexpr, HEAD: tl.constexpr):
    width = H * HEAD
    t, d = tl.arange(0, T)[:, None], tl.program_id(1) * HEAD + tl.arange(0, HEAD)[None, :]
    at = (tl.program_id(0) * T + t) * 3 * width + d
    q, k, v = tl.load(qkv + at), tl.load(qkv + at + width), tl.load(qkv + at + 2 * width)
    do = tl.load(dout + (tl.program_id(0) * T + t) * width + d)
    p = weights_of(q, k, scale, T)
    dp = tl.dot(do, tl.trans(v))
    ds = p * (dp - tl.sum(dp * p, axis=1, keep_dims=True)) * scale
    tl.store(dqkv + at, tl.dot(ds, k))
    tl.store(dqkv + at + width, tl.dot(tl.trans(ds), q))
    tl.store(dqkv + at + 2 * width, tl.dot(tl.trans(p), do))


@girih.jit
def cross_entropy(logits, targets, loss, gradient, V, share, BLOCK: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(logits + row * V + j, mask=j < V, other=float("-inf"))
    e = tl.exp(x - tl.max(x))
    p = e / tl.sum(e)
    hit = j == tl.load(targets + row)
    tl.store(loss + row, -tl.log(tl.sum(tl.where(hit, p, 0.0))))
    tl.store(gradient + row * V + j, (p - hit) * share, mask=j < V)


@girih.jit
def mean(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(x + start + i, mask=start + i < n, other=0.0)
    tl.store(out, tl.sum(total) / n)


@girih.jit
def adamw(w_ptr, g_ptr, m_ptr, v_ptr, n, rate, decay, first, second, BLOCK: tl.constexpr):
    """One step of AdamW (I. Loshchilov and F. Hutter, 2019); `first` and `second` undo the averages' slow start."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    w, g = tl.load(w_ptr + i, mask=inside), tl.load(g_ptr + i, mask=inside)
    m = 0.9 * tl.load(m_ptr + i, mask=inside) + 0.1 * g
    v = 0.99 * tl.load(v_ptr + i, mask=inside) + 0.01 * g * g
    tl.store(m_ptr + i, m, mask=inside)
    tl.store(v_ptr + i, v, mask=inside)
    step = m * first / (tl.sqrt(v * second) + 1e-8) + decay * w
    tl.store(w_ptr + i, w - rate * step, mask=inside)
    tl.store(g_ptr + i, 0.0, mask=inside)


@girih.jit
def greatest(logits, out, row, V, BLOCK: tl.constexpr):
    j = tl.arange(0, BLOCK)
    tl.store(out, tl.argmax(tl.load(logits + row * V + j, mask=j < V, other=float("-inf")), 0))


# ---- the model


class GPT:
    def __init__(self, vocabulary, layers, width, heads, length, device, precision="ieee"):
        self.V, self.D, self.H, self.T, self.device = vocabulary, width, heads, length, device
        self.precision = precision
        rng = np.random.default_rng(1)
        shapes = {"table": (vocabulary, width), "positions": (length, width), "norm": (2, width), "head": (width, vocabulary)}
        for i in range(layers):
            shapes |= {
                f"{i}.norm1": (2, width), f"{i}.qkv": (width, 3 * width), f"{i}.out": (width, width),
                f"{i}.norm2": (2, width), f"{i}.up": (width, 4 * width), f"{i}.up_bias": (4 * width,),
                f"{i}.down": (4 * width, width), f"{i}.down_bias": (width,),
            }  # fmt: skip
        self.layers = layers
        self.w = {n: (rng.standard_normal(s) * 0.08).astype(np.float32) for n, s in shapes.items()}
        for name, array in self.w.items():
            if "norm" in name:
                array[:] = [[1.0], [0.0]]
            if "bias" in name:
                array[:] = 0.0
        self.g, self.m, self.v = ({n: np.zeros_like(a) for n, a in self.w.items()} for _ in range(3))
        self.steps = 0

    def product(self, a, b, c, sizes, strides, bias=None, add=False):
        m, n, k = sizes
        block_m = 64 if m >= 64 else 16
        grid = (girih.cdiv(m, block_m), girih.cdiv(n, 64))
        matmul[grid](
            a, b, c, bias, m, n, k, *strides,
            BIAS=bias is not None, ADD=add, PRECISION=self.precision, BLOCK_M=block_m, BLOCK_N=64, BLOCK_K=32, device=self.device,
        )  # fmt: skip

    def linear(self, x, name, bias=None, out=None):
        """x W + b; with `out`, added to it."""
        (m, k), n = x.shape, self.w[name].shape[1]
        y = np.empty((m, n), np.float32) if out is None else out
        self.product(x, self.w[name], y, (m, n, k), (k, 1, n, 1), None if bias is None else self.w[bias], out is not None)
        return y

    def linear_backward(self, x, name, dy, bias=None):
        """The gradient of x; that of W, and of the bias, are kept."""
        (m, k), n = x.shape, dy.shape[1]
        dx = np.empty_like(x)
        self.product(dy, self.w[name], dx, (m, k, n), (n, 1, 1, n))
        self.product(x, dy, self.g[name], (k, n, m), (1, k, n, 1))
        if bias is not None:
            sum_rows[(girih.cdiv(n, 64),)](dy, self.g[bias], m, n, BLOCK=64, device=self.device)
        return dx

    def normalise(self, x, name):
        out = np.empty_like(x)
        norm[(len(x),)](x, *self.w[name], out, D=self.D, device=self.device)
        return out

    def normalise_backward(self, x, name, dout, dx):
        norm_backward[(8,)](x, self.w[name][0], dout, dx, *self.g[name], len(x), D=self.D, device=self.device)

    def forward(self, tokens):
        """Logits for every position; values that the backward pass needs are kept."""
        rows, sequences = tokens.size, tokens.size // self.T
        scale, head = (self.D // self.H) ** -0.5, self.D // self.H
        x = np.empty((rows, self.D), np.float32)
        embed[(rows,)](tokens, self.w["table"], self.w["positions"], x, self.T, D=self.D, device=self.device)
        self.kept = []
        for i in range(self.layers):
            before = x.copy()
            normal = self.normalise(x, f"{i}.norm1")
            qkv = self.linear(normal, f"{i}.qkv")
            mixed = np.empty_like(x)
            attend[(sequences, self.H)](qkv, mixed, scale, T=self.T, H=self.H, HEAD=head, device=self.device)
            self.linear(mixed, f"{i}.out", out=x)
            middle = x.copy()
            normal2 = self.normalise(x, f"{i}.norm2")
            up = self.linear(normal2, f"{i}.up", f"{i}.up_bias")
            active = np.empty_like(up)
            gelu[(girih.cdiv(up.size, 1024),)](up, active, up.size, BLOCK=1024, device=self.device)
            self.linear(active, f"{i}.down", f"{i}.down_bias", out=x)
            self.kept.append((before, normal, qkv, mixed, middle, normal2, up, active))
        self.last = x
        self.final = self.normalise(x, "norm")
        return self.linear(self.final, "head")

    def backward(self, tokens, dlogits):
        sequences, scale, head = tokens.size // self.T, (self.D // self.H) ** -0.5, self.D // self.H
        dx = np.zeros_like(self.last)
        self.normalise_backward(self.last, "norm", self.linear_backward(self.final, "head", dlogits), dx)
        for i in reversed(range(self.layers)):
            before, normal, qkv, mixed, middle, normal2, up, active = self.kept[i]
            dup = self.linear_backward(active, f"{i}.down", dx, f"{i}.down_bias")
            gelu_backward[(girih.cdiv(up.size, 1024),)](up, dup, up.size, BLOCK=1024, device=self.device)
            self.normalise_backward(middle, f"{i}.norm2", self.linear_backward(normal2, f"{i}.up", dup, f"{i}.up_bias"), dx)
            dmixed = self.linear_backward(mixed, f"{i}.out", dx)
            dqkv = np.empty_like(qkv)
            attend_backward[(sequences, self.H)](
                qkv, dmixed, dqkv, scale, T=self.T, H=self.H, HEAD=head, device=self.device
            )
            self.normalise_backward(before, f"{i}.norm1", self.linear_backward(normal, f"{i}.qkv", dqkv), dx)
        table, positions = self.g["table"], self.g["positions"]
        embed_backward[(tokens.size,)](tokens, dx, table, positions, self.T, D=self.D, device=self.device)

    def loss(self, tokens, targets, train=True):
        """The mean loss; with `train`, the gradients are there afterwards."""
        logits = self.forward(tokens)
        losses, out, dlogits = np.empty(tokens.size, np.float32), np.empty(1, np.float32), np.empty_like(logits)
        block = girih.next_power_of_2(self.V)
        cross_entropy[(tokens.size,)](
            logits, targets, losses, dlogits, self.V, 1.0 / tokens.size, BLOCK=block, device=self.device
        )
        mean[(1,)](losses, out, tokens.size, BLOCK=256, device=self.device)
        if train:
            self.backward(tokens, dlogits)
        return float(out[0])

    def update(self, rate):
        self.steps += 1
        first, second = 1 / (1 - 0.9**self.steps), 1 / (1 - 0.99**self.steps)
        for name, w in self.w.items():
            decay = 0.01 if w.ndim == 2 and "norm" not in name else 0.0
            adamw[(girih.cdiv(w.size, 1024),)](
                w, self.g[name], self.m[name], self.v[name], w.size, rate, decay, first, second, BLOCK=1024,
                device=self.device,
            )  # fmt: skip

    def write(self, tokens, count):
        """`count` tokens more, each the likeliest."""
        tokens = list(tokens)
        choice = np.empty(1, np.int32)
        for _ in range(count):
            seen = tokens[-self.T :]
            padded = np.array(seen + [0] * (self.T - len(seen)), np.int32)
            logits = self.forward(padded)
            block = girih.next_power_of_2(self.V)
            greatest[(1,)](logits, choice, len(seen) - 1, self.V, BLOCK=block, device=self.device)
            tokens.append(int(choice[0]))
        return tokens


# ---- the text


def sentences(count, seed):
    """Sentences of a little grammar."""
    pick = random.Random(seed).choice
    out = []
    for _ in range(count):
        noun = pick(["cat", "dog", "bird", "fox"])
        verb = {"cat": "watches", "dog": "chases", "bird": "avoids", "fox": "follows"}[noun]
        out.append(f"the {pick(['old', 'red', 'small'])} {noun} {verb} the {pick(['mouse', 'ball', 'hen'])}.")
    return " ".join(out)


def main():
    also = [
        ("--steps", {"type": int, "help": "steps of training"}),
        ("--precision", {"choices": ["ieee", "tf32"], "default": "ieee", "help": "tf32 is what GPUs multiply fastest"}),
    ]
    options = arguments(__doc__, also)
    text = sentences(2000, 0)
    letters = sorted(set(text))
    code = {c: i for i, c in enumerate(letters)}
    data = np.array([code[c] for c in text], np.int32)
    length, batch, steps = (16, 2, 2) if options.small else (64, 8, 300)
    steps = options.steps or steps
    width = 32 if options.small else 64
    model = GPT(len(letters), 1 if options.small else 2, width, 4, length, options.device, options.precision)
    rng = np.random.default_rng(2)

    def draw():
        at = rng.integers(0, len(data) - length - 1, batch)
        rows = at[:, None] + np.arange(length)
        return data[rows].ravel(), data[rows + 1].ravel()

    # The gradient of a few weights against differences of the loss.
    tokens, targets = draw()
    model.loss(tokens, targets)
    worst = 0.0
    for name, at in (("table", (3, 1)), ("0.qkv", (2, 5)), ("0.norm1", (0, 4)), ("head", (1, 2)), ("0.up_bias", (3,))):
        weight, kept, losses = model.w[name], model.w[name][at], []
        for step in (0.01, -0.01):
            weight[at] = kept + step
            losses.append(model.loss(tokens, targets, train=False))
        weight[at] = kept
        worst = max(worst, abs((losses[0] - losses[1]) / 0.02 - model.g[name][at]))
    check("tiny gpt, gradients", 1.0 + worst, 1.0, 2e-3 if options.precision == "ieee" else 5e-2)
    for gradient in model.g.values():
        gradient.fill(0.0)

    start = last = model.loss(tokens, targets, train=False)
    for step in range(steps):
        last = model.loss(*draw())
        model.update(3e-3 * min(1.0, (step + 1) / 20, (steps - step) / (steps / 3)))
        if step % 50 == 0:
            print(f"step {step:3}: loss {last:.3f}")
    print(f"tiny gpt: loss {start:.2f} at first, {last:.2f} after {steps} steps")
    if options.small:
        return
    if not last < 0.6 * start:
        raise SystemExit("tiny gpt: the loss did not fall")
    prompt = "the "
    print("".join(letters[t] for t in model.write([code[c] for c in prompt], 120)))


if __name__ == "__main__":
    main()
