"""The first call of a compiled model in a process of its own: `python -m girih.bench.first MODEL BACKEND THREADS`.

Prints the seconds from a module to its first results, which are compared with PyTorch's own, and the largest difference of
the largest value. Where compiled code is kept is up to the environment: an empty folder makes the call a cold one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

#: Blocks of decoders and the number of tokens; `networks` makes them.
MODELS = {"tinyllama": (0, 32), "qwen": (1, 32)}


def made(name):
    import torch

    from girih.bench import networks

    at, length = MODELS[name]
    _, block, hidden = list(networks.decoder_blocks())[at]
    torch.manual_seed(0)
    return block().eval(), (torch.randn(1, length, hidden),)


def main(name, backend, threads):
    import torch

    import girih.torch  # noqa: F401

    torch.set_num_threads(int(threads))
    options = {"options": {"threads": int(threads)}} if backend == "girih" else {}
    with torch.no_grad():
        model, inputs = made(name)
        expected = model(*inputs)
        start = time.perf_counter()
        found = torch.compile(model, backend=backend, **options)(*inputs)
        seconds = time.perf_counter() - start
    difference = ((found - expected).abs().max() / expected.abs().max()).item()
    print(json.dumps([seconds, difference]))


class Failed(Exception):
    """The last line of the process's errors."""


def measured(name, backend, threads, folder):
    """Seconds and the largest difference of a first call whose compiled code is kept in this folder."""
    kept = {"GIRIH_CACHE_DIR": os.path.join(folder, "girih"), "TORCHINDUCTOR_CACHE_DIR": os.path.join(folder, "torch")}
    command = [sys.executable, "-m", "girih.bench.first", name, backend, str(threads)]
    done = subprocess.run(command, env={**os.environ, **kept}, capture_output=True, text=True)
    try:
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        said = done.stderr.strip().splitlines()
        raise Failed(said[-1][:120] if said else f"exit status {done.returncode}") from None


def rows(threads, rounds):
    """The suite `compile`: cold, each time with an empty folder, and warm, with one that a call before has filled."""
    backends = {"girih": "girih", "torch.compile": "inductor"}
    for name in MODELS:
        for warm in (False, True):
            times, worst, absent = {who: [] for who in backends}, {}, {}
            for _ in range(rounds):
                for who, backend in backends.items():
                    if who in absent:
                        continue
                    with tempfile.TemporaryDirectory() as folder:
                        try:
                            found = [measured(name, backend, threads, folder) for _ in range(2 if warm else 1)]
                        except Failed as e:
                            absent[who] = str(e)
                            continue
                    times[who].append(found[-1][0])
                    worst[who] = max(worst.get(who, 0.0), found[-1][1])
            yield f"first call, {name} block{', warm' if warm else ''}", times, worst, absent


if __name__ == "__main__":
    main(*sys.argv[1:])
