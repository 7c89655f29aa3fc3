"""Decoder blocks of TinyLlama-1.1B and Qwen2.5-7B on this machine: Girih beside PyTorch and ONNX Runtime.

    python bench/model.py [--blocks tinyllama qwen] [--lengths 32 128 512] [--rounds 7] [--threads N] [--json FILE]

f32, one sequence, random weights, one causal forward pass. The contestants run in alternating rounds, so that a change
of the machine's speed meets all of them; a figure is the median of the rounds, and of a round the least of a few runs.
Ratios are Girih's time over another's: below 1, Girih is faster. Contestants that are not installed are left out. Results are compared
with PyTorch's before anything is timed.
"""

import argparse
import gc
import json
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path

import torch

import girih.torch

SETTINGS = {
    "tinyllama": dict(
        kind="Llama", hidden_size=2048, intermediate_size=5632, num_attention_heads=32, num_key_value_heads=4,
        rms_norm_eps=1e-5,
    ),
    "qwen": dict(
        kind="Qwen2", hidden_size=3584, intermediate_size=18944, num_attention_heads=28, num_key_value_heads=4,
        rms_norm_eps=1e-6,
    ),
}  # fmt: skip


class Block(torch.nn.Module):
    """A decoder block as `transformers` defines it, with its rotary angles and a causal mask."""

    def __init__(self, kind, **settings):
        import transformers

        super().__init__()
        config = getattr(transformers, f"{kind}Config")(
            num_hidden_layers=1, vocab_size=32, attn_implementation="sdpa", **settings
        )
        modeling = getattr(getattr(transformers.models, kind.lower()), f"modeling_{kind.lower()}")
        self.layer = getattr(modeling, f"{kind}DecoderLayer")(config, 0)
        self.rotary = getattr(modeling, f"{kind}RotaryEmbedding")(config)

    def forward(self, hidden):
        positions = torch.arange(hidden.shape[1]).unsqueeze(0)
        angles = self.rotary(hidden, positions)
        out = self.layer(hidden, position_embeddings=angles, attention_mask=None, position_ids=positions)
        return out[0] if isinstance(out, tuple) else out


def contestants(block, hidden, threads):
    """Name, and a function that runs the block once and gives its result."""
    yield "girih", compiled_once(torch.compile(block, backend="girih", fullgraph=True, options={"threads": threads}), hidden)
    yield "eager", lambda: block(hidden)
    try:
        yield "torch.compile", compiled_once(torch.compile(block, fullgraph=True), hidden)
    except Exception as e:  # a missing C++ compiler, for one
        print(f"torch.compile is left out: {str(e).splitlines()[0]}", file=sys.stderr)
    if (session := onnxruntime_session(block, hidden, threads)) is not None:
        feed = {session.get_inputs()[0].name: hidden.numpy()}
        yield "onnxruntime", lambda: torch.from_numpy(session.run(None, feed)[0])


def compiled_once(function, hidden):
    start = time.perf_counter()
    function(hidden)
    run = lambda: function(hidden)  # noqa: E731
    run.first = time.perf_counter() - start
    return run


def onnxruntime_session(block, hidden, threads):
    try:
        import onnxruntime
    except ImportError:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "block.onnx"
        try:
            torch.onnx.export(block, (hidden,), path, dynamo=True, external_data=True, verbose=False)
        except Exception as e:
            print(f"onnxruntime is left out: {str(e).splitlines()[0]}", file=sys.stderr)
            return None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def least(run, seconds):
    """The least time of the runs that fit into `seconds`, at least two."""
    times, end = [], time.perf_counter() + seconds
    while len(times) < 2 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(name, length, rounds, threads, seconds):
    torch.manual_seed(0)
    settings = dict(SETTINGS[name])
    block = Block(settings.pop("kind"), **settings).eval()
    hidden = torch.randn(1, length, settings["hidden_size"])
    expected = block(hidden)
    runs = dict(contestants(block, hidden, threads))
    for who, run in runs.items():
        torch.testing.assert_close(run(), expected, rtol=1e-4, atol=1e-4, msg=lambda m, w=who: f"{w}: {m}")
    times = {who: [] for who in runs}
    for _ in range(rounds):
        for who, run in runs.items():
            times[who].append(least(run, seconds))
    medians = {who: statistics.median(t) for who, t in times.items()}
    first = {who: run.first for who, run in runs.items() if hasattr(run, "first")}
    return {"block": name, "length": length, "seconds": medians, "first": first}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--lengths", nargs="+", type=int, default=[32, 128, 512])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--seconds", type=float, default=0.3, help="how long a contestant runs in a round")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    warnings.simplefilter("ignore")
    warnings.filterwarnings("default", message="girih: ")
    rows = []
    with torch.no_grad():
        for name in given.blocks:
            for length in given.lengths:
                torch._dynamo.reset()
                gc.collect()
                row = measure(name, length, given.rounds, given.threads, given.seconds)
                rows.append(row)
                mine = row["seconds"]["girih"]
                parts = [f"{who} {s * 1e3:8.2f} ms" for who, s in row["seconds"].items()]
                ratios = [f"{who} {mine / s:.2f}" for who, s in row["seconds"].items() if who != "girih"]
                print(f"{name:10} {length:4}  {'  '.join(parts)}  ratios: {'  '.join(ratios)}", flush=True)
    if given.json:
        given.json.write_text(json.dumps({"threads": given.threads, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
