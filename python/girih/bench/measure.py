"""Rows measured: results compared with float64, then turns in strict alternation."""

from __future__ import annotations

import copy
import statistics
import time

import torch

import girih.torch
from girih.bench import contestants, first

#: Seconds that one turn takes at least; of a shorter work several runs make a turn.
TURN = 0.02
#: Seconds after a turn: its threads wait for more work for a while, each on a core that the next one needs. OpenBLAS's wait for
#: 2^28 cycles.
REST = {"numpy": 0.15}
USUAL_REST = 0.05
MOST = 2000


class Wrong(Exception):
    """A result that differs from float64 by more than its row allows."""


def flat(value):
    return [value] if isinstance(value, torch.Tensor) else [x for v in value for x in flat(v)]


def exact(model, inputs):
    """The results in float64; as they are where a model's operations have no such form."""
    wide = [x.double() if x.is_floating_point() else x for x in inputs]
    try:
        return flat(copy.deepcopy(model).double()(*wide))
    except RuntimeError:
        return flat(model(*inputs))


def error(results, expected):
    """The largest difference, of the largest value."""
    worst = 0.0
    for have, want in zip(flat(results), expected, strict=True):
        if have.shape != want.shape:
            raise Wrong(f"a result is {tuple(have.shape)} for {tuple(want.shape)}")
        if want.numel():
            scale = want.double().abs().max().item() or 1.0
            worst = max(worst, (have.double() - want.double()).abs().max().item() / scale)
    return worst


def launches(row):
    """The work of each launch of a row on the GPU, so that estimates can be held against the measured time later. A processor counts it
    on the simulator, which takes seconds to minutes, and the GPU has nothing to do meanwhile."""
    model, inputs = row.make()
    on_host = model.cpu(), tuple(x.cpu() for x in inputs)
    target = {8: "sm_80", 9: "sm_90a", 10: "sm_100a", 12: "sm_120"}.get(torch.cuda.get_device_capability()[0], "sm_80")
    try:
        with torch.no_grad():
            return [launch.work for launch in girih.torch.export(*on_host, device="eval", target=target).estimate(*on_host[1])]
    except girih.GirihError:
        return []


def row(row, who, threads, rounds):
    """A measured row as what JSON takes; 0 threads are the GPU."""
    if threads:
        torch.set_num_threads(threads)
    with torch.no_grad():
        model, inputs = row.make()
        model, inputs = model.to(row.device), tuple(x.to(row.device) for x in inputs)
        expected = exact(model, inputs)
        runners, absent, errors = {}, {}, {}
        for name in who:
            try:
                runner = contestants.made(name, row, model, inputs, threads)
                errors[name] = error(runner.results(runner.run()), expected)
                if not errors[name] <= row.tolerance:
                    raise contestants.Absent(f"wrong: an error of {errors[name]:.1e} of the largest value")
            except (contestants.Absent, Wrong) as e:
                absent[name] = str(e)
                continue
            runners[name] = runner
        times = turns(runners, rounds, torch.cuda.synchronize if row.device == "cuda" else lambda: None)
    moved = row.bytes or sum(x.numel() * x.element_size() for x in [*inputs, *model.parameters(), *expected_bytes(expected, inputs)])
    return {
        "row": row.name,
        "threads": threads,
        "goal": row.goal,
        "flops": row.flops,
        "unit": row.unit,
        "bytes": moved,
        "median_s": {name: statistics.median(t) for name, t in times.items()},
        "spread": {name: spread(t) for name, t in times.items()},
        "first_s": {name: runner.first for name, runner in runners.items()},
        "error": {name: errors[name] for name in runners},
        "absent": absent,
    }


def first_calls(threads, rounds):
    """The rows of the suite of first calls, as `row` gives them."""
    for name, times, worst, absent in first.rows(threads, min(rounds, 3)):
        yield {
            "row": name,
            "threads": threads,
            "goal": 1.0,
            "flops": 0.0,
            "unit": "flops",
            "bytes": 0.0,
            "median_s": {who: statistics.median(t) for who, t in times.items() if t},
            "spread": {who: spread(t) for who, t in times.items() if t},
            "first_s": {who: max(t) for who, t in times.items() if t},
            "error": worst,
            "absent": absent,
        }


def expected_bytes(expected, inputs):
    """Results as wide as the inputs are; in float64 they are wider."""
    narrow = next((x.dtype for x in inputs if x.is_floating_point()), torch.float32)
    return [x.to(narrow) if x.is_floating_point() else x for x in expected]


def turns(runners, rounds, wait):
    """Seconds of a run in each round; the first round, which warms up, gives the number of runs of a turn and does not
    count. A turn begins with a run that does not count, and ends with `wait`, which waits for all work, and a rest."""
    count = {}
    for name, runner in runners.items():
        once = min(timed(runner.run, 1, wait), timed(runner.run, 1, wait))
        rest(name)
        count[name] = max(1, min(MOST, round(TURN / once)))
    times = {name: [] for name in runners}
    for _ in range(rounds):
        for name, runner in runners.items():
            runner.run()
            times[name].append(timed(runner.run, count[name], wait))
            rest(name)
    return times


def rest(name):
    """Waits until the threads of the last contestant sleep."""
    time.sleep(REST.get(name, USUAL_REST))


def timed(run, count, wait):
    """Seconds of a run, the mean of `count` runs one after the other."""
    wait()
    start = time.perf_counter()
    for _ in range(count):
        run()
    wait()
    return max((time.perf_counter() - start) / count, 1e-7)


def spread(times):
    """Half of the times are within so much of the median, of it."""
    ordered = sorted(times)
    quarter = len(ordered) // 4
    return (ordered[-1 - quarter] - ordered[quarter]) / 2 / statistics.median(times)
