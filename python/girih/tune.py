"""``girih tune`` with its candidates spread over Ray or Dask, and its result as a value.

    $ python -m girih.tune --jobs dask -c "torch.nn.Linear(512, 256)(torch.randn(128, 512))" --device sim

    >>> found = girih.tune.search("kernel.mlir", device="sim", target="sm_90a", jobs="dask")
    >>> found["knobs"], found["speedup"]

The search itself is the command's: it prints batches of candidates, which are evaluated as ``girih tune ... --candidate`` here
or on workers, and reads their outcomes. A worker needs Girih of the same version, and the files under the same names. A
candidate whose worker dies is tried once more. One that is not done when the budget ends is stopped, wherever it runs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from . import _library

__all__ = ["ENGINES", "search"]

# Evaluates a batch in the seconds that are left, and gives the JSON that the command prints of each, in its order.
Batch = Callable[[Sequence[str], float], list[dict[str, Any]]]
# The outcome of a candidate that is not done when the budget ends.
INTERRUPTED = {"interrupted": True}


def command() -> str:
    """The command `girih`, as a checkout has built it or the package has installed it beside Python."""
    beside = shutil.which("girih", path=os.path.dirname(sys.executable)) or shutil.which("girih")
    try:
        return str(_library.find("girih"))
    except FileNotFoundError:
        if beside is None:
            raise
        return beside


class Deadline:
    """The end of the time for a batch, by this process's clock."""

    def __init__(self, left: float):
        self.at = time.monotonic() + left

    def left(self) -> float:
        return self.at - time.monotonic()


def evaluate(arguments: Sequence[str], candidate: str, left: float) -> dict[str, Any]:
    """One candidate in a process of its own, on the machine of this worker, which is ended when no time is left."""
    asked = [command(), "tune", *arguments, f"--candidate={candidate}"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, timeout=max(0.0, left))
    except subprocess.TimeoutExpired:
        return INTERRUPTED
    try:
        return json.loads(done.stdout)
    except ValueError:
        lines = done.stderr.strip().splitlines()
        raise RuntimeError(lines[0] if lines else f"girih ended with code {done.returncode}") from None


def twice(once: Callable[[str, Deadline], dict[str, Any]], candidate: str, deadline: Deadline) -> dict[str, Any]:
    """The outcome of a candidate; one whose worker dies is tried once more, and one without time is not tried."""
    for attempt in (1, 2):
        if deadline.left() <= 0:
            break
        try:
            return once(candidate, deadline)
        except Exception as error:  # Engines raise various exceptions for a worker that is gone, and at the deadline.
            if attempt == 2 and deadline.left() > 0:
                return {"failed": f"its worker died twice: {error}"}
    return INTERRUPTED


@contextmanager
def with_dask(arguments: Sequence[str], address: str | None) -> Iterator[Batch]:
    """A cluster of Dask: the one at the address, or one of processes on this machine."""
    from dask.distributed import Client

    def batch(candidates: Sequence[str], left: float) -> list[dict[str, Any]]:
        deadline = Deadline(left)

        def submit(candidate: str) -> Any:
            return client.submit(evaluate, list(arguments), candidate, deadline.left(), pure=False, retries=0)

        futures = {candidate: submit(candidate) for candidate in candidates}

        def once(candidate: str, deadline: Deadline) -> dict[str, Any]:
            return (futures.pop(candidate, None) or submit(candidate)).result(timeout=deadline.left())

        try:
            return [twice(once, candidate, deadline) for candidate in candidates]
        finally:
            client.cancel(list(futures.values()))

    options = {"address": address} if address else {"threads_per_worker": 1, "dashboard_address": None}
    with Client(**options) as client:
        yield batch


@contextmanager
def with_ray(arguments: Sequence[str], address: str | None) -> Iterator[Batch]:
    """A cluster of Ray: the one at the address, or one on this machine."""
    import ray

    started = not ray.is_initialized()
    if started:
        ray.init(address=address, include_dashboard=False, log_to_driver=False, configure_logging=False)
    remote = ray.remote(max_retries=0)(evaluate)

    def batch(candidates: Sequence[str], left: float) -> list[dict[str, Any]]:
        deadline = Deadline(left)

        def submit(candidate: str) -> Any:
            return remote.remote(list(arguments), candidate, deadline.left())

        futures = {candidate: submit(candidate) for candidate in candidates}

        def once(candidate: str, deadline: Deadline) -> dict[str, Any]:
            return ray.get(futures.pop(candidate, None) or submit(candidate), timeout=deadline.left())

        try:
            return [twice(once, candidate, deadline) for candidate in candidates]
        finally:
            for future in futures.values():
                ray.cancel(future)

    try:
        yield batch
    finally:
        if started:
            ray.shutdown()


@contextmanager
def alone(arguments: Sequence[str], address: str | None) -> Iterator[Batch]:
    """One candidate after the other, in this process's children."""

    def once(candidate: str, deadline: Deadline) -> dict[str, Any]:
        return evaluate(arguments, candidate, deadline.left())

    def batch(candidates: Sequence[str], left: float) -> list[dict[str, Any]]:
        deadline = Deadline(left)
        return [twice(once, candidate, deadline) for candidate in candidates]

    yield batch


ENGINES = {"dask": with_dask, "ray": with_ray, "alone": alone}
#: Their Python packages.
PACKAGES = {"dask": "distributed", "ray": "ray"}


def drive(arguments: Sequence[str], batch: Batch, report: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Runs the search, which asks for batches; returns its result."""
    asked = [command(), "tune", *arguments, "--batches"]
    with subprocess.Popen(asked, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as search:
        assert search.stdin is not None and search.stdout is not None
        last: dict[str, Any] | None = None
        for line in search.stdout:
            last = json.loads(line)
            candidates = last.get("batch")
            if candidates is None:
                continue
            report(", ".join(candidates))
            search.stdin.write(json.dumps(batch(candidates, last["left"])) + "\n")
            search.stdin.flush()
    if search.returncode != 0 or last is None:
        raise subprocess.CalledProcessError(search.returncode, asked)
    return last


def search(file: str | None = None, *arguments: str, expression: str | None = None, device: str = "sim",
           target: str | None = None, budget: float = 60.0, trials: int | None = None, seed: int = 0,
           jobs: str = "alone", address: str | None = None) -> dict[str, Any]:  # fmt: skip
    """Looks for a faster schedule and keeps it, as `girih tune` does.

    Args:
        file: a tile program or a model; or `expression`, a model in one line.
        arguments: further arguments of `girih tune`, such as "--vary", "kc".
        device: "sim"; or "cpu" with `jobs="alone"`, since processes beside each other disturb what is measured.
        target: the GPU to simulate, "sm_90a" if not given.
        budget: seconds.
        trials: candidates to try at most.
        seed: decides where the search goes on when it is stuck.
        jobs: "dask", "ray", or "alone".
        address: of a cluster that runs; without it, one is started on this machine.

    Returns:
        "kernel", "key", "machine", "tried", "failed", "refused", "ended", and "knobs", "changes" (of the schedule's lines: number,
        before, after), "speedup", "default_s", "tuned_s", which are None where nothing is faster.

    Raises:
        ValueError: an engine that does not exist, or one for a processor.
        subprocess.CalledProcessError: the command refused its arguments, and said why on standard error.
    """
    if jobs not in ENGINES:
        raise ValueError(f"unknown jobs {jobs!r}; they are {', '.join(ENGINES)}")
    if jobs != "alone" and device != "sim":
        raise ValueError('jobs is for device="sim": processes beside each other disturb what is measured')
    what = ["-c", expression] if expression is not None else [str(file)] if file is not None else []
    given = [*what, *arguments, "--device", device, "--budget", str(budget), "--seed", str(seed)]
    given += ["--target", target] if target else []
    given += ["--trials", str(trials)] if trials else []
    with ENGINES[jobs](given, address) as batch:
        return drive(given, batch)


def main(arguments: Sequence[str]) -> int:
    """`python -m girih.tune --jobs dask|ray [--address A] ARGS`: ARGS are those of `girih tune`."""
    import argparse

    parser = argparse.ArgumentParser("python -m girih.tune", description=main.__doc__, allow_abbrev=False)
    parser.add_argument("--jobs", choices=list(ENGINES), default="alone", help="who evaluates the candidates")
    parser.add_argument("--address", help="of a cluster that runs; without it one is started here")
    own, rest = parser.parse_known_args(arguments)
    try:
        with ENGINES[own.jobs](rest, own.address) as batch:
            print(json.dumps(drive(rest, batch), indent=1))
    except ImportError as error:
        print(f"error: {error.name} is not installed; `pip install {PACKAGES.get(own.jobs, error.name)}` installs it", file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as error:
        return error.returncode
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
