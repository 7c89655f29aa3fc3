"""Measures the time that calls of a compiled PyTorch model spend on checking weights, against `options={"freeze": True}`.

    python bench/torch_weights.py [--rounds N] [--threads T]

In: a small perceptron, and a block of a Llama (attention and a gated feed-forward, 205 MB of f32 weights) over one position
and over 64. Out: for each the milliseconds of a call as it is by default, frozen, and in PyTorch:
medians of rounds in which all three take turns.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
import torch.nn.functional as F

import girih.torch  # noqa: F401


class Block(torch.nn.Module):
    """A block of a Llama without positions: its width and that of its feed-forward are those of 1B."""

    def __init__(self, width=2048, heads=16, inner=5632):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (torch.nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = (torch.nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = torch.nn.Linear(inner, width, bias=False)
        self.before, self.after = torch.nn.RMSNorm(width), torch.nn.RMSNorm(width)

    def forward(self, x):
        y = self.before(x)
        q, k, v = (f(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        y = self.after(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def perceptron():
    return torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.SiLU(), torch.nn.Linear(256, 64))


CASES = {
    "perceptron, 8 rows": (perceptron, (8, 64)),
    "perceptron, 256 rows": (perceptron, (256, 64)),
    "block, 1 position": (Block, (1, 1, 2048)),
    "block, 64 positions": (Block, (1, 64, 2048)),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    print(f"{'':24}{'by default':>12}{'frozen':>12}{'PyTorch':>12}   milliseconds a call")
    for name, (make, shape) in CASES.items():
        torch._dynamo.reset()
        torch.manual_seed(0)
        model, x = make().eval(), torch.randn(shape)
        frozen = torch.compile(model, backend="girih", options={"threads": args.threads, "freeze": True})
        asked = torch.compile(lambda x, model=model: model(x), backend="girih", options={"threads": args.threads})
        ways = {"asked": asked, "frozen": frozen, "eager": model}
        times = {way: [] for way in ways}
        with torch.no_grad():
            for run in ways.values():
                torch.testing.assert_close(run(x), model(x), rtol=1e-3, atol=1e-3)
            repeat = 200 if make is perceptron else 3
            for _ in range(args.rounds):
                for way, run in ways.items():
                    start = time.perf_counter()
                    for _ in range(repeat):
                        run(x)
                    times[way].append((time.perf_counter() - start) / repeat * 1e3)
        print(f"{name:24}" + "".join(f"{statistics.median(t):12.3f}" for t in times.values()), flush=True)


if __name__ == "__main__":
    main()
