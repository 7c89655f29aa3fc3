"""Launches of ``@girih.jit``: what arguments, grids and options may be, what makes a new specialisation, and what
happens beside a launch: threads, a fork, Ctrl-C, prints, the cache on disk. No timing."""

import os
import signal
import sys
import threading

import numpy as np
import pytest

import girih
import girih.language as tl


@girih.jit
def scale(x, out, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


@girih.jit
def count_up(out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, i, mask=i < n)


@girih.jit
def speak(x, BLOCK: tl.constexpr):
    tl.device_print("x", tl.load(x + tl.arange(0, BLOCK)))


X = np.arange(64, dtype=np.float32)


def scaled(factor=2.0, x=X, n=64, grid=1, BLOCK=64, **options):
    out = np.zeros(64, np.float32)
    scale[grid](x, out, n, factor, BLOCK=BLOCK, **options)
    return out


def specialisations(kernel):
    return len(kernel._dispatcher)


# ---- arguments


class Interface:
    def __init__(self, array):
        self.array = array

    @property
    def __array_interface__(self):
        return self.array.__array_interface__


class Capsule:
    """Hands memory over by DLPack, as a copy made for each call when `fresh`."""

    def __init__(self, array, device=(1, 0), fresh=False):
        self.array, self.device, self.fresh = array, device, fresh

    def __dlpack__(self, **options):
        return (self.array.copy() if self.fresh else self.array).__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device


@pytest.mark.parametrize("wrap", [Interface, Capsule, lambda a: a.view(np.matrix), lambda a: a.view(np.recarray)])
def test_arrays_of_other_kinds(wrap):
    out = np.zeros(64, np.float32)
    scale[1](wrap(X), wrap(out), 64, 3.0, BLOCK=64)
    assert np.array_equal(out.ravel(), X * 3)


def test_memory_of_a_temporary_lives_until_the_launch_is_over():
    big = np.arange(1 << 20, dtype=np.float32)
    out = np.zeros_like(big)
    scale[big.size // 1024](Capsule(big, fresh=True), out, big.size, 2.0, BLOCK=1024)
    assert np.array_equal(out, big * 2)


def test_a_memory_map(tmp_path):
    out = np.memmap(tmp_path / "out", np.float32, "w+", shape=64)
    scale[1](X, out, 64, 2.0, BLOCK=64)
    out.flush()
    assert np.array_equal(np.fromfile(tmp_path / "out", np.float32), X * 2)


def test_an_array_on_another_device_is_refused():
    with pytest.raises(ValueError, match="`x` is on another device"):
        scaled(x=Capsule(X, device=(10, 0)))


def test_what_dlpack_says_is_read_only_stays_so():
    out = np.zeros(64, np.float32)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="writes to `out`, but that array is read-only"):
        scale[1](X, Interface(out), 64, 2.0, BLOCK=64)
    assert not out.any()


def test_read_only_inputs_are_fine():
    x = X.copy()
    x.flags.writeable = False
    assert np.array_equal(scaled(x=x), X * 2)


@pytest.mark.parametrize("value", [np.float32(1.5), np.float64(1.5), np.float16(1.5), np.int64(3), np.uint8(3), np.bool_(True)])
def test_numpy_scalars_are_numbers(value):
    assert np.array_equal(scaled(value), X * float(value))


def test_numpy_scalars_as_sizes_and_constants():
    before = specialisations(scale)
    for _ in range(3):
        assert np.array_equal(scaled(n=np.int64(64), BLOCK=np.int32(64)), X * 2)
    assert np.array_equal(scaled(n=64, BLOCK=64), X * 2)
    assert specialisations(scale) <= before + 1


def test_a_column_of_a_matrix_is_passed_with_its_stride():
    @girih.jit
    def column(x, stride, out, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i * stride))

    x = np.arange(64 * 5, dtype=np.float32).reshape(64, 5)
    out = np.zeros(64, np.float32)
    column[1](x[:, 3], x.strides[0] // x.itemsize, out, BLOCK=64)
    assert np.array_equal(out, x[:, 3])


def test_empty_arrays():
    scale[1](X[:0], np.zeros(0, np.float32), 0, 2.0, BLOCK=64)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"])
def test_element_types(dtype):
    out = np.zeros(100, dtype)
    count_up[2](out, 100, BLOCK=64)
    assert np.array_equal(out, np.arange(100).astype(dtype))


def test_what_is_no_argument():
    for value, message in [
        (object(), "`factor` has the unsupported type object"),
        (np.float32, "annotate the parameter with `girih.constexpr`"),
        (np.datetime64(1, "s"), "`factor`"),
        (1j, "`factor` has the unsupported type complex"),
        (np.complex64(1), "`factor` has the unsupported type complex"),
    ]:
        with pytest.raises(TypeError, match=message):
            scaled(value)


# ---- grids


@pytest.mark.parametrize(
    "grid", [1, (1,), [1], (1, 1, 1), np.int64(1), (np.int32(1), 1), lambda meta: (girih.cdiv(meta["n"], meta["BLOCK"]),)]
)
def test_grids(grid):
    assert np.array_equal(scaled(grid=grid), X * 2)


def test_a_grid_function_sees_all_arguments_by_name():
    seen = {}
    scaled(grid=lambda meta: seen.update(meta) or (1,))
    assert sorted(seen) == ["BLOCK", "factor", "n", "out", "x"] and seen["BLOCK"] == 64 and seen["x"] is X


@pytest.mark.parametrize("device", ["cpu", "eval"])
@pytest.mark.parametrize("grid", [0, (0,), (1, 0), lambda meta: 0])
def test_a_grid_without_blocks_runs_nothing(grid, device):
    assert not scaled(grid=grid, device=device).any()


@pytest.mark.parametrize("grid", [1.0, "1", None, (1, None), (2**24,), 2**70, -1, lambda meta: 2.0])
def test_what_is_no_grid(grid):
    with pytest.raises(ValueError, match="a grid must consist of whole numbers from 0 to 16777215"):
        scaled(grid=grid)


def test_an_exception_of_the_grid_function_comes_through():
    with pytest.raises(ZeroDivisionError):
        scaled(grid=lambda meta: 1 // 0)


# ---- specialisations


def made_by(*launches, **options):
    """How many specialisations launches with these numbers make."""

    @girih.jit(**options)
    def kernel(out, n):
        tl.store(out, n)

    out = np.zeros(4, np.int64)
    for n in launches:
        kernel[1](out, n)
        assert out[0] == n
    return specialisations(kernel)


def test_integers_specialise_on_one_on_sixteen_and_on_their_width():
    assert made_by(1, 1) == 1
    assert made_by(16, 32, 0, -16) == 1
    assert made_by(2, 3, 17, -1) == 1
    assert made_by(1, 2, 16, 2**40, 2**40 + 1) == 5
    assert made_by(1, 2, 16, do_not_specialize=["n"]) == 1
    assert made_by(1, 2, 16, do_not_specialize=[1]) == 1


def test_arrays_specialise_on_alignment():
    buffer = np.zeros(64, np.float32)
    start = -(buffer.ctypes.data // 4) % 4
    before = specialisations(count_up)
    for offset in (0, 4, 1, 2, 3):
        count_up[1](buffer[start + offset :], 16, BLOCK=16)
    assert specialisations(count_up) <= before + 2


def test_constants_specialise_by_value():
    @girih.jit
    def kernel(out, C: tl.constexpr):
        tl.store(out, C)

    out = np.zeros(1, np.float32)
    for value, n in [(2, 1), (2, 1), (3, 2), (2.0, 3), (2.0, 3), (True, 4)]:
        kernel[1](out, value)
        assert out[0] == float(value) and specialisations(kernel) == n


def test_constants_of_other_kinds():
    @girih.jit
    def kernel(out, MODE: tl.constexpr, SHAPE: tl.constexpr, TYPE: tl.constexpr):
        value = SHAPE[0] * SHAPE[1]
        if MODE == "twice":
            value *= 2
        tl.store(out, tl.full((), value, TYPE))

    out = np.zeros(1, np.float32)
    for _ in range(2):
        kernel[1](out, "twice", (3, 5), tl.float32)
        assert out[0] == 30
        kernel[1](out, "once", (3, 5), tl.float32)
        assert out[0] == 15
    assert specialisations(kernel) == 2


# ---- options


def test_hints_for_gpus_change_nothing():
    assert np.array_equal(scaled(num_warps=8, num_stages=3, num_ctas=1, maxnreg=128), X * 2)


@pytest.mark.parametrize("options", [{"device": "eval"}, {"device": "cpu", "threads": 1}, {"check": True}, {"threads": 2}])
def test_options_of_a_launch(options):
    assert np.array_equal(scaled(**options), X * 2)


def test_checks_name_the_line():
    @girih.jit
    def beyond(x, out, BLOCK: tl.constexpr):
        at = tl.load(x + tl.arange(0, BLOCK))
        tl.store(out + at, at)

    at, out = np.array([0, 1, 2, 999999], np.int32), np.zeros(4, np.int32)
    for options in ({"check": True}, {"device": "eval"}):
        with pytest.raises(girih.OutOfBoundsError, match=r"tl\.store\(out \+ at, at\)"):
            beyond[1](at, out, BLOCK=4, **options)


ENVIRONMENT = """
    import numpy as np, girih, girih.language as tl

    @girih.jit
    def beyond(x, out):
        tl.store(out + tl.load(x), 1)

    try:
        beyond[1](np.array([1 << 20]), np.zeros(4, np.int32))
    except girih.OutOfBoundsError:
        print("found")
"""


@pytest.mark.parametrize("setting", [("GIRIH_DEVICE", "eval"), ("GIRIH_CHECK", "1")])
def test_options_of_the_environment(run, write, setting):
    done = run(write("kernel.py", ENVIRONMENT), env=[setting])
    assert done.stdout == "found\n", done.stderr


def test_warmup_compiles_and_runs_nothing():
    out = np.zeros(64, np.int32)
    count_up.warmup(out, 64, BLOCK=32, grid=(2,))
    assert not out.any()
    before = specialisations(count_up)
    count_up[2](out, 64, BLOCK=32)
    assert out[63] == 63 and specialisations(count_up) == before


def test_the_source_for_another_machine_is_not_there_yet():
    with pytest.raises(girih.UnsupportedError, match="CUDA source is not supported yet"):
        scale.source("cuda", X, X, 64, 1.0, BLOCK=64)


# ---- prints


@pytest.mark.parametrize("device", ["cpu", "eval"])
def test_prints_go_to_sys_stdout(capsys, device):
    speak[2](np.array([1, 2], np.int32), BLOCK=2, device=device)
    out = capsys.readouterr().out
    assert out.count("x") == 2 and "1, 2" in out


@pytest.mark.parametrize("device", ["cpu", "eval"])
def test_an_exception_where_it_prints_comes_through(monkeypatch, device):
    class Closed:
        def write(self, text):
            raise BrokenPipeError("closed")

    x = np.array([1, 2], np.int32)
    with monkeypatch.context() as patch:
        patch.setattr("sys.stdout", Closed())
        with pytest.raises(BrokenPipeError, match="closed"):
            speak[2](x, BLOCK=2, device=device)
    speak[2](x, BLOCK=2, device=device)


# ---- threads, processes, signals


def test_threads_launch_at_once():
    results, failures = {}, []
    barrier = threading.Barrier(8)

    def work(k):
        try:
            barrier.wait(20)
            for i in range(20):
                # Some specialisations are shared, some are a thread's own.
                results[k, i] = scaled(float(k), BLOCK=(64, 128)[(i + k) % 2], n=(64, 63)[i % 2])
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(100)
    assert failures == []
    for (k, i), got in results.items():
        n = (64, 63)[i % 2]
        assert np.array_equal(got[:n], X[:n] * k)


FORK = """
    import os, numpy as np, girih, girih.language as tl

    @girih.jit
    def fill(out, value, BLOCK: tl.constexpr):
        tl.store(out + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), value)

    def right(value):
        out = np.zeros(1 << 22, np.float32)
        fill[out.size // 1024](out, value, BLOCK=1024)
        return bool((out == value).all())

    assert right(1.0)
    child = os.fork()
    if child == 0:
        # A specialisation that is there already, and one that is not.
        good = right(2.0) and right(3)
        os._exit(0 if good else 7)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), right(4.0))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_kernels_run_after_a_fork(run, write):
    done = run(write("kernel.py", FORK))
    assert done.stdout == "0 True\n", done.stderr


# Block 0 says in a file that the kernel runs; block 1 goes on.
LONG = """
    import sys
    import numpy as np, girih, girih.language as tl

    @girih.jit
    def forever(out, flag, n):
        if tl.program_id(0) == 0:
            tl.store(flag, 1)
        else:
            total = tl.load(out)
            for i in range(n):
                total = total * 3 + i
            tl.store(out, total)

    out = np.zeros(1, np.int32)
    flag = np.memmap(sys.argv[1], np.int32, "w+", shape=1).view(np.ndarray)
    try:
        for _ in range(1000):
            forever[2](out, flag, 2_000_000_011)
    except KeyboardInterrupt:
        out[0] = 0
        forever[2](out, flag, 3)
        print("interrupted", out[0])
"""


@pytest.mark.parametrize("device", ["cpu", "eval"])
def test_ctrl_c_stops_a_long_kernel_and_the_next_one_runs(write, start, until, tmp_path, device):
    flag = tmp_path / "flag"
    process = start(write("long.py", LONG), flag, env={"GIRIH_DEVICE": device})
    until(lambda: process.poll() is not None or (flag.exists() and any(flag.read_bytes())))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=start.deadline)
    assert (out, process.returncode) == ("interrupted 5\n", 0), err


def test_a_handler_of_the_users_own_runs_once_the_kernel_is_done(run, write):
    script = """
        import os, signal, numpy as np, girih, girih.language as tl

        @girih.jit
        def one(out):
            tl.store(out, 1)

        seen = []
        signal.signal(signal.SIGINT, lambda *_: seen.append(1))
        out = np.zeros(1, np.int32)
        one[1](out)
        os.kill(os.getpid(), signal.SIGINT)
        one[1](out)
        print(seen, out[0])
    """
    assert run(write("kernel.py", script)).stdout == "[1] 1\n"


# ---- the cache on disk

CACHED = """
    import sys, numpy as np, girih, girih.language as tl

    @girih.jit
    def kernel(out, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, i * 7)

    out = np.zeros(32, np.int32)
    kernel[1](out, BLOCK=32)
    assert (out == np.arange(32) * 7).all()
"""


@pytest.fixture
def counting(tmp_path):
    """A C compiler that counts its compilations: the environment that names it, and a function that counts."""
    log, script = tmp_path / "log", tmp_path / "cc"
    log.touch()
    script.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {os.environ.get("GIRIH_CC") or "cc"} "$@"\n')
    script.chmod(0o755)
    environment = {"GIRIH_CC": str(script), "GIRIH_CACHE_DIR": str(tmp_path / "cache")}
    return environment, lambda: sum("-shared" in line for line in log.read_text().splitlines())


def test_another_process_finds_what_was_compiled(run, write, counting):
    environment, compilations = counting
    script = write("kernel.py", CACHED)
    for _ in range(3):
        done = run(script, env=environment)
        assert done.returncode == 0, done.stderr
    assert compilations() == 1


@pytest.mark.parametrize("content", [b"", b"\x7fELF nonsense", None])
def test_a_damaged_cache_does_no_harm(run, write, counting, tmp_path, content):
    environment, compilations = counting
    script = write("kernel.py", CACHED)
    assert run(script, env=environment).returncode == 0
    damaged = 0
    for path in (tmp_path / "cache").rglob("*"):
        if path.is_file():
            path.chmod(0o600)
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2] if content is None else content)
            damaged += 1
    assert damaged > 0
    done = run(script, env=environment)
    assert done.returncode == 0, done.stderr
    assert compilations() == 2


def test_a_cache_that_cannot_be_written_does_no_harm(run, write, tmp_path):
    (tmp_path / "file").write_text("no folder")
    done = run(write("kernel.py", CACHED), env={"GIRIH_CACHE_DIR": str(tmp_path / "file" / "cache")})
    assert done.returncode == 0 or "cache" in done.stderr, done.stderr


# ---- the module


def test_the_import_is_light(run):
    heavy = ["numpy", "json", "statistics", "tempfile", "girih.frontend.trace", "torch", "bdb"]
    code = f"import sys; before = set(sys.modules); import girih; print([m for m in {heavy} if m in set(sys.modules) - before])"
    assert run("-c", code).stdout == "[]\n"


def test_the_extension_is_loaded_once():
    assert girih._library.extension() is girih._library.extension() is sys.modules["girih._girih"]
