"""The cost of a launch and of a compilation beyond cuTile's own part.

    python bench/launch.py [--json]

Each row is a median over many launches of a compiled kernel with one block and nothing to do. "dispatcher" is cuTile's
part alone: its `launch` on a driver whose functions return at once, built here with the C compiler. The rest is Girih's:
turning NumPy arrays into cuTile's arguments, its `launch` around cuTile's, and the driver's part of the launch.

The compilations are those of a new elementwise kernel in a process that has compiled another before: cuTile's part,
from Python to bytecode, and Girih's, from bytecode to loaded machine code, without and with the cache on disk.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NO_DRIVER = r"""
#include <stdint.h>
#include <string.h>
static int nothing(void) { return 0; }
static int number(int *out) { *out = 1; return 0; }
static int zero(int *out) { *out = 0; return 0; }
static int version(int *out) { *out = 13040; return 0; }
static int handle(void **out) { *out = (void *)1; return 0; }
static int second(void *in, void **out) { *out = (void *)1; return 0; }
static int attribute(int *out, int which, int device) { *out = which == 75 ? 10 : which == 76 ? 0 : 1 << 20; return 0; }
static int identity(void *in, uint64_t *out) { *out = 1; return 0; }
static int capturing(void *in, int *out) { *out = 0; return 0; }
static int text(int code, const char **out) { *out = "no driver"; return 0; }
int cuGetProcAddress_v2(const char *name, void **out, int api, uint64_t flags, void *status) {
  static const struct { const char *name; void *function; } table[] = {
      {"cuDriverGetVersion", version}, {"cuDeviceGetCount", number}, {"cuDeviceGet", zero},
      {"cuDeviceGetAttribute", attribute}, {"cuCtxGetCurrent", handle}, {"cuCtxPopCurrent", handle},
      {"cuDevicePrimaryCtxRetain", handle}, {"cuCtxGetDevice", zero}, {"cuCtxGetId", identity},
      {"cuStreamGetCtx", second}, {"cuStreamGetId", identity}, {"cuStreamIsCapturing", capturing},
      {"cuLibraryLoadData", handle}, {"cuLibraryGetKernel", handle}, {"cuGetErrorString", text},
  };
  for (unsigned i = 0; i < sizeof table / sizeof *table; i++)
    if (!strcmp(table[i].name, name)) { *out = table[i].function; return 0; }
  *out = nothing;
  return 0;
}
"""


def kernels():
    import cuda.tile as ct

    @ct.kernel
    def scalars(n: int):
        pass

    @ct.kernel
    def three(a, b, c):
        pass

    return scalars, three


def median_us(call, rounds=7, repeats=2000):
    call()
    samples = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        samples.append((time.perf_counter() - start) / repeats * 1e6)
    return statistics.median(samples)


def arguments():
    import numpy as np

    return tuple(np.zeros(1024, np.float32) for _ in range(3))


def dispatcher():
    """cuTile alone, in a process whose driver does nothing."""
    import ctypes

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "driver.c"
        source.write_text(NO_DRIVER)
        library = Path(folder) / "libcuda.so.1"
        compiler = os.environ.get("GIRIH_CC", "cc")
        command = [compiler, "-w", "-O2", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", library, source]
        subprocess.run(command, check=True)
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    import cuda.tile as ct
    from cuda.tile import _compile

    from girih import _girih
    from girih.cutile import arrays

    real = _compile.compile_tile

    def compile_tile(*args, **options):
        options |= {"return_cubin": False, "return_bytecode": True}
        result = real(*args, **options, bytecode_version=_compile.BytecodeVersion.V_13_4)
        result.cubin = bytes(result.bytecode)
        return result

    _compile.compile_tile = compile_tile
    scalars, three = kernels()
    given = arguments()
    prepared = _girih.prepare(given, arrays.classify)
    return {
        "one scalar": median_us(lambda: ct.launch(0, (1,), scalars, (5,))),
        "three arrays": median_us(lambda: ct.launch(0, (1,), three, prepared)),
    }


def girih():
    """The same under Girih, and compilations."""
    import girih.cutile

    girih.cutile.install()
    import cuda.tile as ct

    scalars, three = kernels()
    given = arguments()
    times = {
        "one scalar": median_us(lambda: ct.launch(0, (1,), scalars, (5,))),
        "three arrays": median_us(lambda: ct.launch(0, (1,), three, given)),
    }
    return {"launch": times, "compile": compilations(ct)}


def compilations(ct):
    """Seconds of cuTile's part and of Girih's, for one kernel that is new to this process."""
    from cuda.tile import _compile

    spent = []
    hosted = _compile.compile_tile

    def timed(*args, **options):
        start = time.perf_counter()
        try:
            return hosted(*args, **options)
        finally:
            spent.append(time.perf_counter() - start)

    _compile.compile_tile = timed

    @ct.kernel
    def elementwise(a, b, c):
        i = ct.bid(0)
        x = ct.load(a, (i,), (256,))
        y = ct.load(b, (i,), (256,))
        ct.store(c, (i,), ct.exp(x) * y + 1.0)

    a, b, c = arguments()
    start = time.perf_counter()
    ct.launch(0, (4,), elementwise, (a, b, c))
    whole = time.perf_counter() - start
    _compile.compile_tile = hosted
    return {"cutile": spent[0], "girih": whole - spent[0]}


def measure(what, **environment):
    command = [sys.executable, __file__, "--measure", what]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=os.environ | environment).stdout
    return json.loads(out.splitlines()[-1])


def main(argv):
    if argv[:1] == ["--measure"]:
        print(json.dumps({"dispatcher": dispatcher, "girih": girih}[argv[1]]()))
        return
    alone = measure("dispatcher")
    with tempfile.TemporaryDirectory() as cache:
        first = measure("girih", GIRIH_CACHE_DIR=cache)
        second = measure("girih", GIRIH_CACHE_DIR=cache)
    report = {
        "launch_us": {
            name: {"total": total, "dispatcher": alone[name], "beyond": total - alone[name]}
            for name, total in second["launch"].items()
        },
        "compile_ms": {
            name: {part: seconds * 1e3 for part, seconds in run["compile"].items()}
            for name, run in (("new", first), ("from the cache", second))
        },
    }
    if "--json" in argv:
        print(json.dumps(report))
        return
    print(f"{'launch, microseconds':24}{'total':>10}{'dispatcher':>12}{'beyond':>10}")
    for name, row in report["launch_us"].items():
        print(f"{name:24}{row['total']:10.2f}{row['dispatcher']:12.2f}{row['beyond']:10.2f}")
    print(f"\n{'compile, milliseconds':24}{'cuTile':>10}{'Girih':>12}")
    for name, row in report["compile_ms"].items():
        print(f"{name:24}{row['cutile']:10.2f}{row['girih']:12.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
