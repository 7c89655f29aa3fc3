"""A model of a folder, or one of its layers, beside PyTorch: what `girih bench DIR` prints.

In: a `Folder`, a `Part`, threads. Out: the times of one forward pass by Girih and by PyTorch, measured in turns, and how far the results
are apart. PyTorch computes with the folder's weights also where Girih's are quantised:

    {"model": "LlamaForCausalLM", "batch": 1, "tokens": 32, "threads": 1, "median_s": {"girih": 0.0004, "torch": 0.0011}, ...}
"""

from __future__ import annotations

import os
import statistics
from typing import Any

import torch

from girih.bench import measure
from girih.bench.contestants import Runner

from . import load
from .export import Part, captured, chosen
from .folder import Folder

__all__ = ["bench", "text"]


def bench(folder: Folder, part: Part, threads: int | None = None, rounds: int = 7) -> dict[str, Any]:
    """Measures the part. The tokens, or the hidden states that the layer gets, are random."""
    threads = threads or len(os.sched_getaffinity(0))
    torch.set_num_threads(threads)
    config = load.config_of(folder)
    model = load.model_of(folder, config, part.dtype)
    module, given, name = chosen(model, part)
    own = chosen(load.model_of(folder, config, part.dtype, part.quantize), part)[0] if part.quantize else module
    torch.manual_seed(0)
    if given.is_floating_point():
        given = torch.randn_like(given)
    else:
        given = torch.randint_like(given, model.get_input_embeddings().weight.shape[0])
    compiled = captured(own, given, name, compiled=True, threads=threads, freeze=True)
    with torch.no_grad():
        runners = {"girih": Runner(lambda: compiled(given)), "torch": Runner(lambda: module(given))}
        expected = [t.double() for t in measure.flat(module(given))]
        error = measure.error(compiled(given), expected)
        times = measure.turns(runners, rounds, lambda: None)
    return {
        "model": name,
        "batch": given.shape[0],
        "tokens": given.shape[1],
        "dtype": str(model.dtype).removeprefix("torch."),
        "quantized": part.quantize,
        "threads": threads,
        "rounds": rounds,
        "median_s": {who: statistics.median(t) for who, t in times.items()},
        "first_s": {who: runner.first for who, runner in runners.items()},
        "difference": error,
    }


def text(found: dict[str, Any]) -> str:
    """The same for people."""
    s = "" if found["threads"] == 1 else "s"
    quantised = f", weights of {found['quantized']}" if found["quantized"] else ""
    head = (
        f"{found['model']}, {found['batch']} x {found['tokens']} tokens, {found['dtype']}{quantised}, {found['threads']} thread{s}; "
        f"medians of {found['rounds']} rounds in turns"
    )
    girih, other = found["median_s"]["girih"], found["median_s"]["torch"]
    return (
        f"{head}\ngirih    {duration(girih):>10}  {girih / other:.2f} of PyTorch\nPyTorch  {duration(other):>10}\n"
        f"largest difference: {found['difference']:.1e} of the largest value"
    )


def duration(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds:.3g} s"
