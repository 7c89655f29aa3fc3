"""The work of the host in calls on a GPU, where there is none.

`girih bench launch --device cuda` runs this on a machine whose PyTorch finds no GPU. The driver is the stand-in of `girih-shim`, and its
launches return at once: the rest of a call is what Girih does before a kernel begins. Parts are differences between calls: with one array
and with three, of one kernel and of nine, of a model and of its compiled part alone.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import time

import numpy as np

import girih
import girih.language as tl
from girih import _library

#: Microseconds that a call may take, by row.
GOALS = {"a kept kernel, three arrays": 5.0, "a model of one kernel, two arrays": 8.0, "each further kernel of a model": 2.0}
FEW, MANY = 1, 9


class Array:
    """An array of the device, as other libraries have one."""

    def __init__(self, driver, count):
        address = ctypes.c_uint64()
        if driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4 * count)) != 0:
            sys.exit("error: the stand-in driver has no memory")
        self.address, self.shape = address.value, (count,)

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": "<f4", "data": (self.address, False), "version": 3, "strides": None, "stream": None}


@girih.jit
def fill(z, n, BLOCK: girih.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + at, tl.zeros((BLOCK,), tl.float32), mask=at < n)


@girih.jit
def add(x, y, z, n, BLOCK: girih.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(z + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


def least_us(call, rounds, repeats=500):
    """Microseconds of a call, the least mean of a round."""
    call()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        times.append((time.perf_counter() - start) / repeats * 1e6)
    return min(times)


def chained(count):
    """A model of `count` kernels: no two sums along a row are one."""
    text = "x"
    for _ in range(count):
        text = f"({text}).cumsum(0)"
    return girih.Model.from_expr(text, {"device": "cuda"}, x=np.zeros(1024, np.float32))


def measured(rounds):
    """Microseconds by row."""
    driver = ctypes.CDLL(os.environ["GIRIH_CUDA_DRIVER"])
    x, y, z = (Array(driver, 1024) for _ in range(3))
    kept, filling = add[(4,)], fill[(4,)]
    one = least_us(lambda: filling(z, 1024, BLOCK=256), rounds)
    three = least_us(lambda: kept(x, y, z, 1024, BLOCK=256), rounds)
    sums = girih.Model.from_expr("x + y", {"device": "cuda"}, x=np.zeros(1024, np.float32), y=np.zeros(1024, np.float32))
    called = least_us(lambda: sums(x, y, out=z), rounds)
    native = sums._source.native
    ready = ([x.address, y.address], [(1024,), (1024,)], [], [(z.address, 4096)], 0)
    alone = least_us(lambda: native.run_addresses(*ready, on_device=True), rounds)
    few, many = (least_us(lambda model=chained(n): model(x, out=z), rounds) for n in (FEW, MANY))
    host = np.zeros(1024, np.float32)
    copied = least_us(lambda: kept(host, host, host, 1024, BLOCK=256), rounds)
    array = (three - one) / 2
    return {
        "a kept kernel, three arrays": three,
        "  describing each array": array,
        "  the rest of the launch": three - 3 * array,
        "the same of NumPy's arrays, which are copied": copied,
        "a model of one kernel, two arrays": called,
        "  Python, which looks at arrays": called - alone,
        "  the compiled part": alone,
        "each further kernel of a model": (many - few) / (MANY - FEW),
    }


def main(rounds, as_json):
    """Measures in a process of its own, whose driver is the stand-in."""
    ours = {"GIRIH_CUDA_DRIVER": str(_library.find("libcuda.so.1")), "GIRIH_SHIM_IDLE": "1", "GIRIH_DEVICE": "cuda"}
    command = [sys.executable, "-m", "girih.bench.standin", str(rounds)]
    done = subprocess.run(command, env={**os.environ, **ours}, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(done.returncode)
    rows = json.loads(done.stdout.splitlines()[-1])
    if as_json:
        print(json.dumps({"driver": "stand-in", "rows": rows}))
        return
    print("no GPU: a stand-in for the driver, whose launches return at once; microseconds of the host")
    for name, us in rows.items():
        goal = GOALS.get(name)
        print(f"{name:48}{us:8.2f}{'' if goal is None else f'   at most {goal:g} aimed at'}")


if __name__ == "__main__":
    print(json.dumps(measured(int(sys.argv[1]))))
