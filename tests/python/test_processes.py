"""Kernels among forks, signals, threads and faults: what a program may do around a launch, and during one."""

import os
import signal
import subprocess

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

# ---- forks

JIT = """
    import numpy as np, girih, girih.language as tl

    @girih.jit
    def fill(out, value, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, value)

    def right(value, out=None):
        out = np.zeros(1 << 14, np.float32) if out is None else out
        fill[out.size // 1024](out, value, BLOCK=1024)
        return bool((out == value).all())

    def fresh():
        # A specialisation that is not there yet.
        out = np.zeros(1 << 14, np.int64)
        fill[out.size // 1024](out, 7, BLOCK=1024)
        return bool((out == 7).all())
"""

CUTILE = """
    import numpy as np, girih.cutile
    girih.cutile.install()
    import cuda.tile as ct

    @ct.kernel
    def fill(out, value: ct.Constant[float]):
        ct.store(out, (ct.bid(0),), ct.full((1024,), value, dtype=out.dtype))

    def right(value):
        out = np.zeros(1 << 14, np.float32)
        ct.launch(0, (out.size // 1024,), fill, (out, float(int(value) % 2)))
        return bool((out == int(value) % 2).all())

    def fresh():
        out = np.zeros(1 << 14, np.int32)
        ct.launch(0, (out.size // 1024,), fill, (out, 5.0))
        return bool((out == 5).all())
"""

# A thread launches without end while the main thread forks; each child launches and ends.
FORKS = """
    import os, sys, threading, time

    assert right(1.0) and right(2.0)
    going = True

    def launches():
        while going:
            assert right(1.0)

    thread = threading.Thread(target=launches)
    thread.start()
    hung = wrong = 0
    for i in range(int(sys.argv[1])):
        child = os.fork()
        if child == 0:
            good = right(2.0) and right(1.0) and (i % 50 != 0 or fresh())
            os._exit(0 if good else 7)
        end = time.monotonic() + 120
        while True:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                wrong += status != 0
                break
            if time.monotonic() > end:
                os.kill(child, 9)
                os.waitpid(child, 0)
                hung += 1
                break
            time.sleep(0.0005)
        if hung:
            break
    going = False
    thread.join()
    print(hung, wrong, right(2.0))
"""


@pytest.mark.parametrize("device", ["cpu", "eval"])
@pytest.mark.parametrize("kind", ["jit", "cutile"])
def test_a_child_launches_while_another_thread_did(run, write, device, kind):
    script = write("kernel.py", {"jit": JIT, "cutile": CUTILE}[kind] + FORKS)
    count = 200 if device == "cpu" else 20
    done = run(script, count, env={"GIRIH_DEVICE": device, "GIRIH_THREADS": "3"})
    assert done.stdout == "0 0 True\n", done.stdout + done.stderr


# ---- signals

# Block 0 says in a file that the kernel runs; block 1 goes on until the second file says so.
JIT_LONG = """
    import numpy as np, girih, girih.language as tl

    @girih.jit
    def long(flag, n):
        if tl.program_id(0) == 0:
            tl.store(flag, 1)
        else:
            total = 1
            for i in range(n):
                total = total * 3 + i
            tl.store(flag + 1, total)

    @girih.jit
    def one(out):
        tl.store(out, 1)

    def launch_one():
        out = np.zeros(1, np.int32)
        one[1](out)
        return out[0]

    def launch(flag):
        for _ in range(1000):
            long[2](flag, 2_000_000_011)
"""

CUTILE_LONG = """
    import numpy as np, girih.cutile
    girih.cutile.install()
    import cuda.tile as ct

    @ct.kernel
    def long(flag, n: int):
        if ct.bid(0) == 0:
            ct.store(flag, (0,), ct.full((1,), 1, dtype=ct.int32))
        else:
            total = ct.full((1,), 1, dtype=ct.int32)
            for i in range(n):
                for j in range(n):
                    total = total * 3 + i
            ct.store(flag, (1,), total)

    @ct.kernel
    def one(out):
        ct.store(out, (0,), ct.full((1,), 1, dtype=ct.int32))

    def launch_one():
        out = np.zeros(1, np.int32)
        ct.launch(0, (1,), one, (out,))
        return out[0]

    def launch(flag):
        ct.launch(0, (2,), long, (flag, 2_000_000_000))
"""

SIGNALS = """
    import os, signal, sys

    class Enough(Exception):
        pass

    def counts(number, _):
        print("handled", launch_one(), flush=True)

    def raises(number, _):
        raise Enough

    assert launch_one() == 1
    signal.signal(signal.SIGUSR1, counts)
    signal.signal(signal.SIGTERM, raises)
    flag = np.memmap(sys.argv[1], np.int32, "w+", shape=2).view(np.ndarray)
    try:
        launch(flag)
    except Enough:
        print("enough", launch_one())
"""


@pytest.mark.parametrize("device", ["cpu", "eval"])
@pytest.mark.parametrize("kind", ["jit", "cutile"])
def test_signals_are_handled_while_a_kernel_runs(write, start, until, tmp_path, device, kind):
    flag = tmp_path / "flag"
    script = write("kernel.py", {"jit": JIT_LONG, "cutile": CUTILE_LONG}[kind] + SIGNALS)
    process = start(script, flag, env={"GIRIH_DEVICE": device})
    until(lambda: process.poll() is not None or (flag.exists() and any(flag.read_bytes()[:4])))
    for _ in range(2):
        process.send_signal(signal.SIGUSR1)
        # A handler that returns, and launches a kernel of its own; the long one goes on.
        assert process.stdout.readline() == "handled 1\n", process.communicate()[1]
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=start.deadline)
    assert (out, process.returncode) == ("enough 1\n", 0), err


# ---- threads

THREADS = """
    import os, signal, sys, threading, time

    flag = np.memmap(sys.argv[1], np.int32, "w+", shape=2).view(np.ndarray)

    def watches():
        while not flag[0]:
            time.sleep(0.001)
        print("the other thread runs", flush=True)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=watches)
    thread.start()
    try:
        launch(flag)
    except KeyboardInterrupt:
        thread.join()
        print("interrupted")
"""


@pytest.mark.parametrize("kind", ["jit", "cutile"])
def test_other_threads_run_while_a_kernel_does(write, start, tmp_path, kind):
    script = write("kernel.py", {"jit": JIT_LONG, "cutile": CUTILE_LONG}[kind] + THREADS)
    process = start(script, tmp_path / "flag")
    out, err = process.communicate(timeout=start.deadline)
    assert (out, process.returncode) == ("the other thread runs\ninterrupted\n", 0), err


# ---- faults

JIT_WILD = """
    import numpy as np, girih, girih.language as tl

    @girih.jit
    def wild(at, out):
        tl.store(out, tl.load(out + tl.load(at)))

    def launch(far):
        out = np.zeros(1, np.int32)
        wild[1](np.array([far], np.int64), out)
        return out[0]
"""

CUTILE_WILD = """
    import numpy as np, girih.cutile
    girih.cutile.install()
    import cuda.tile as ct

    @ct.kernel
    def wild(at, out):
        base = ct.load(at, (0,), (1,))
        value = ct.gather(out, base, check_bounds=False)
        ct.scatter(out, ct.full((1,), 0, dtype=ct.int64), value)

    def launch(far):
        out = np.zeros(1, np.int32)
        ct.launch(0, (1,), wild, (np.array([far], np.int64), out))
        return out[0]
"""

FAULTS = """
    import sys, threading

    if sys.argv[1] == "faulthandler":
        import faulthandler
        faulthandler.enable()

    def tries():
        assert launch(0) == 0
        try:
            launch(1 << 40)
        except girih.GirihError if "GirihError" in dir(girih) else Exception as error:
            print(type(error).__name__, "wild" in str(error), "GIRIH_CHECK" in str(error) or "check=True" in str(error))
        print(launch(0), flush=True)

    tries()
    thread = threading.Thread(target=tries)
    thread.start()
    thread.join()
    if sys.argv[1] == "late":
        import faulthandler
        faulthandler.enable()
        tries()
    # What is not a kernel's is as it was.
    import ctypes
    ctypes.string_at(0)
"""


@pytest.mark.parametrize("other", ["none", "faulthandler", "late"])
@pytest.mark.parametrize("kind", ["jit", "cutile"])
def test_a_fault_is_an_exception_that_names_the_kernel(run, write, kind, other):
    done = run(write("kernel.py", {"jit": JIT_WILD, "cutile": CUTILE_WILD}[kind] + FAULTS), other)
    times = 3 if other == "late" else 2
    assert done.stdout == "OutOfBoundsError True True\n0\n" * times, done.stdout + done.stderr
    assert done.returncode == -signal.SIGSEGV
    assert done.stderr.count("Fatal Python error: Segmentation fault") == (other != "none")


# ---- many short blocks

JIT_SHORT = """
    import os, signal, threading, numpy as np, girih, girih.language as tl

    @girih.jit
    def short(out, B: tl.constexpr):
        i = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(out + i, tl.load(out + i) + 1)

    out = np.zeros(1 << 24, np.int8)
    short[1](out, B=16)
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        short[out.size // 16](out, B=16)
        print("ended")
    except KeyboardInterrupt:
        print("interrupted", bool((out != 0).all()))
"""


def test_many_short_blocks_are_interrupted(run, write):
    done = run(write("kernel.py", JIT_SHORT), env={"GIRIH_DEVICE": "eval"})
    assert done.stdout == "interrupted False\n", done.stdout + done.stderr


# ---- limits and signals while a compiler runs

JIT_ONE = """
    import os, sys, numpy as np, girih, girih.language as tl

    @girih.jit
    def one(out, B: tl.constexpr):
        tl.store(out + tl.arange(0, B), 1)

    def launch(size):
        out = np.zeros(size, np.int32)
        one[1](out, B=size)
        return bool(out.all())
"""

FEW = """
    import resource

    # Read before others may not look.
    girih.Model.from_expr("x + 1", x="f32[4]")
    launch(4)
    os.environ.update(GIRIH_CACHE_DIR=sys.argv[1], HOME=sys.argv[1])
    if os.getuid() == 0:
        os.chmod(sys.argv[1], 0o777)
        os.setuid(65534)
    for limit in (1, 2, 3, 5, 8):
        resource.setrlimit(resource.RLIMIT_NPROC, (limit, 8))
        try:
            assert launch(8 * limit) or True
        except Exception as error:
            assert isinstance(error, (girih.GirihError, OSError)), repr(error)
    print("ended")
"""


def test_a_limit_on_processes_is_no_panic(run, write, tmp_path):
    done = run(write("kernel.py", JIT_ONE + FEW), tmp_path)
    assert done.stdout == "ended\n", done.stdout + done.stderr
    assert "panicked" not in done.stderr, done.stderr


@pytest.mark.parametrize("how", ["SIGTERM", "SIGHUP", "SIGQUIT", "SIGXCPU"])
def test_signals_that_end_python_end_its_compiler(start, write, until, tmp_path, how):
    """They are Python's default ones: nobody handles them."""
    mark = f"girih-python-{os.getpid()}-{how}"
    slow, begun, tmp = tmp_path / "slow", tmp_path / "begun", tmp_path / "tmp"
    slow.write_text(f"#!/bin/sh\ncase \"$*\" in *-shared*) touch {begun}; sh -c 'sleep 100; : {mark}';; esac\nexec cc \"$@\"\n")
    slow.chmod(0o755)
    tmp.mkdir()
    env = {"GIRIH_CC": str(slow), "TMPDIR": str(tmp), "GIRIH_CACHE_DIR": str(tmp_path / "cache")}
    process = start(write("kernel.py", JIT_ONE + "\n    launch(4)\n"), env=env)
    until(lambda: process.poll() is not None or begun.exists())
    process.send_signal(getattr(signal, how))
    out, err = process.communicate(timeout=start.deadline)
    assert process.returncode == -getattr(signal, how), out + err
    running = lambda: subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    until(lambda: not any(mark in line for line in running().splitlines()))
    assert not list(tmp.iterdir())
    assert not [p for p in (tmp_path / "cache" / "v1").iterdir() if p.is_dir()]


WARNS = """
    import warnings
    warnings.simplefilter("error", RuntimeWarning)
    try:
        launch(4)
        print("nothing is said")
    except RuntimeWarning as warning:
        print("chmod go-w" in str(warning))
    print(launch(8))
"""


def test_a_cache_that_others_may_write_is_told(run, write, tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    done = run(write("kernel.py", JIT_ONE + WARNS), env={"GIRIH_CACHE_DIR": str(cache)})
    assert done.stdout == "True\nTrue\n", done.stdout + done.stderr
