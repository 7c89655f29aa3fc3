"""Threads that compile, odd sources, little stack: a clear exception or the right result, never a crash."""

import linecache
import sys
import threading

import girih
import girih.language as tl
import numpy as np
import pytest

devices = pytest.mark.parametrize("device", ["cpu", "eval"])


@girih.jit
def fill(x, n, value, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, value, i < n)


def filled(value, block=128, device=None):
    x = np.zeros(1000, np.float32)
    fill[(girih.cdiv(1000, block),)](x, 1000, float(value), BLOCK=block, device=device)
    return x


def kernel_of(text, name):
    """The function `kernel` of a text, as a notebook defines it."""
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    namespace = {"girih": girih, "tl": tl}
    exec(compile(text, name, "exec"), namespace)
    return namespace["kernel"]


def in_threads(work, count):
    """Runs `work(i)` in threads at once, and raises the exception of one of them."""
    failures = []

    def guarded(i):
        try:
            work(i)
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    if failures:
        raise failures[0]


# ---- threads


@devices
def test_threads_compile_at_once(device):
    def make(start):
        @girih.jit
        def kernel(x):
            total = 0
            for i in range(start, start + 20):
                total += i
            tl.store(x, total)

        return kernel

    def work(i):
        x = np.zeros(1, np.int32)
        make(i)[1](x, device=device)
        assert x[0] == sum(range(i, i + 20))

    in_threads(work, 6)


def test_threads_compile_one_specialisation():
    @girih.jit
    def kernel(x, N: tl.constexpr):
        tl.store(x, N)

    def work(i):
        x = np.zeros(1, np.int32)
        kernel[1](x, N=12)
        assert x[0] == 12

    in_threads(work, 8)
    assert len(kernel._dispatcher) == 1


def test_errors_in_threads_are_their_own():
    def work(i):
        @girih.jit
        def wrong(x):
            tl.store(x, nothing)  # noqa: F821

        if i % 2:
            assert (filled(i) == i).all()
        else:
            with pytest.raises(girih.CompilationError, match="`nothing` is not defined"):
                wrong[1](np.zeros(1, np.float32))

    in_threads(work, 6)


# ---- grids and arguments


def test_a_grid_that_never_ends():
    import itertools

    with pytest.raises(ValueError, match="at most three dimensions"):
        fill[itertools.count(1)](np.zeros(8, np.float32), 8, 1.0, BLOCK=8)


def test_a_launch_inside_of_a_grid_function():
    def grid(meta):
        assert (filled(7) == 7).all()
        return (1,)

    x = np.zeros(8, np.float32)
    fill[grid](x, 8, 1.0, BLOCK=8)
    assert (x == 1).all()


def test_the_arrays_interface_raises():
    class Broken:
        @property
        def __array_interface__(self):
            raise RuntimeError("gone")

    with pytest.raises(RuntimeError, match="gone"):
        fill[1](Broken(), 8, 1.0, BLOCK=8)


# ---- sources


def test_a_cell_of_a_notebook():
    kernel = kernel_of("@girih.jit\ndef kernel(x):\n    tl.store(x, 5)\n", "<cell 1>")
    x = np.zeros(1, np.int32)
    kernel[1](x)
    assert x[0] == 5
    broken = kernel_of("@girih.jit\ndef kernel(x):\n    tl.store(x, y)\n", "<cell 2>")
    with pytest.raises(girih.CompilationError, match="(?s)<cell 2>:3:17: `y` is not defined.*tl.store"):
        broken[1](x)


def test_without_source():
    namespace = {"girih": girih}
    exec("@girih.jit\ndef kernel(x):\n    girih.store(x, 1)\n", namespace)
    with pytest.raises(girih.CompilationError, match="the source of the kernel `kernel` cannot be read"):
        namespace["kernel"][1](np.zeros(1, np.int32))


def run_nested(body, n=70):
    kernel = kernel_of(f"@girih.jit\ndef kernel(x, n):\n{body}", f"<nested {hash(body)}>")
    x = np.ones(1, np.int32)
    kernel[1](x, n, device="eval")
    return int(x[0])


def test_expressions_nested_deep():
    assert run_nested(f"    tl.store(x, {' + '.join(['n'] * 200)})\n") == 200 * 70
    with pytest.raises(girih.CompilationError, match="nested too deep"):
        run_nested(f"    tl.store(x, {' + '.join(['n'] * 900)})\n")
    assert (filled(4) == 4).all()


def test_branches_nested_deep():
    depth = 60
    branches = "".join("    " * (i + 1) + f"if n > {i}:\n" for i in range(depth))
    assert run_nested(branches + "    " * (depth + 1) + "tl.store(x, n)\n") == 70
    others = "".join(f"    elif n == {i}:\n        tl.store(x, {2 * i})\n" for i in range(1, 90))
    assert run_nested("    if n == 0:\n        tl.store(x, 0)\n" + others) == 140


def test_a_long_kernel():
    lines = "    a = a + n\n" * 1000
    assert run_nested(f"    a = n\n{lines}    tl.store(x, a)\n") == 1001 * 70


def test_little_stack_left():
    @girih.jit
    def kernel(x, n):
        if n > 2:
            for i in range(n):
                tl.store(x + i, tl.load(x + i) + i * 2 + (3 - n))

    def deep(n):
        return deep(n - 1) if n else kernel[1](np.zeros(64, np.int32), 5)

    failed = 0
    for left in range(10, 100, 10):
        depth = sys.getrecursionlimit() - len_of_stack() - left
        try:
            deep(depth)
        except (RecursionError, girih.CompilationError):
            failed += 1
    assert failed
    kernel[1](np.zeros(64, np.int32), 5)


def len_of_stack():
    frame, count = sys._getframe(), 0
    while frame is not None:
        frame, count = frame.f_back, count + 1
    return count


def test_many_kernels_are_freed():
    import gc
    import weakref

    @girih.jit
    def first(x):
        tl.store(x, 1)

    alive = weakref.ref(first)
    first[1](np.zeros(1, np.int32), device="eval")
    del first
    gc.collect()
    assert alive() is None
