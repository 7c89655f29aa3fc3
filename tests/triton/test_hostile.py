"""Arguments and kernels that Girih cannot run are refused with a reason; threads and processes that are forked run kernels."""

import multiprocessing
import os
import threading

import kernels
import numpy as np
import pytest
import triton
import triton.language as tl

import girih
from girih.triton import Array


def of(*values, dtype="float32"):
    return np.array(values, dtype=dtype).view(Array)


@triton.jit
def _assembly(x):
    v = tl.load(x)
    v = tl.inline_asm_elementwise("mov $0, $1;", "=r,r", [v], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(x, v)


@triton.jit
def _dropped(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + tl.load(x + i), 1.0)


def line_of(kernel, text):
    """The line of this file where a kernel says something."""
    import inspect

    lines, first = inspect.getsourcelines(kernel.fn)
    return first + next(i for i, line in enumerate(lines) if text in line)


def test_inline_assembly_is_refused_at_its_line():
    with pytest.raises(girih.CompilationError) as raised:
        _assembly[(1,)](of(0))
    shown = str(raised.value)
    assert f"test_hostile.py:{line_of(_assembly, 'inline_asm')}" in shown and "write the same in functions of" in shown, shown


def test_gluon_is_refused():
    gluon = pytest.importorskip("triton.experimental.gluon")

    @gluon.jit
    def kernel(x):
        pass

    with pytest.raises(NotImplementedError, match="Gluon"):
        kernel[(1,)](of(1))


def test_accesses_out_of_bounds(monkeypatch):
    x = of(0, 1, 2, 900, dtype="int32")
    out = of(*[0] * 4)
    monkeypatch.setenv("GIRIH_CHECK", "1")
    _dropped.device_caches.clear()
    with pytest.raises(girih.OutOfBoundsError, match="test_hostile.py") as raised:
        _dropped[(1,)](x, out, 4, BLOCK=4)
    assert "_dropped" in str(raised.value) or "out" in str(raised.value)


def test_threads_launch_at_the_same_time():
    wrong = []

    def work(seed):
        for n in range(1, 200, 17):
            x = np.random.default_rng(seed).standard_normal(n).astype("float32").view(Array)
            out = np.zeros(n, dtype="float32").view(Array)
            kernels.add[(1,)](x, x, out, n, BLOCK=256)
            if not np.array_equal(out, x + x):
                wrong.append((seed, n))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def _in_a_child(answers):
    x, out = of(1, 2, 3), of(0, 0, 0)
    kernels.add[(1,)](x, x, out, 3, BLOCK=256)
    answers.put(out.tolist())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="it forks")
def test_a_forked_process_launches():
    x, out = of(1, 2, 3), of(0, 0, 0)
    kernels.add[(1,)](x, x, out, 3, BLOCK=256)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_in_a_child, args=(answers,))
    child.start()
    assert answers.get(timeout=60) == [2, 4, 6]
    child.join(60)
    assert child.exitcode == 0


def test_arrays_that_may_not_be_written():
    x, out = of(1, 2, 3), of(0, 0, 0)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="`out`.*read-only"):
        kernels.add[(1,)](x, x, out, 3, BLOCK=256)


def test_tensors_without_memory():
    torch = pytest.importorskip("torch")
    out = torch.zeros(4)
    freed = torch.ones(4)
    freed.untyped_storage().resize_(0)
    for x, message in [(torch.ones(4, device="meta"), "meta|memory"), (freed, "memory"), (torch.ones(4).to_sparse(), "layout|storage|access")]:
        with pytest.raises((ValueError, RuntimeError, TypeError, NotImplementedError), match=message):
            kernels.add[(1,)](x, out, out, 4, BLOCK=256)


def test_a_strided_tensor_is_memory_as_it_lies():
    torch = pytest.importorskip("torch")
    x, out = torch.arange(8.0)[::2], torch.zeros(4)
    with pytest.warns(RuntimeWarning, match="not contiguous"):
        kernels.add[(1,)](x, x, out, 4, BLOCK=256)
    assert out.tolist() == [0, 2, 4, 6]


@triton.jit
def _lengths(begin, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(begin + i + 1, i < n) - tl.load(begin + i, i < n), i < n)


@pytest.mark.parametrize("check", ["0", "1"])
def test_a_pointer_goes_past_the_end_of_a_view_as_far_as_its_storage(monkeypatch, check):
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("GIRIH_CHECK", check)
    _lengths.device_caches.clear()
    begin, out = torch.tensor([0, 3, 4, 9, 20]), torch.zeros(8, dtype=torch.int64)
    _lengths[(1,)](begin[:-1], out, 4, BLOCK=4)
    assert out.tolist() == [3, 1, 5, 11, 0, 0, 0, 0]
    with pytest.raises((ValueError, girih.KernelError), match="begin"):
        _lengths[(1,)](begin[:-1], out, 5, BLOCK=8)
    assert out.tolist() == [3, 1, 5, 11, 0, 0, 0, 0]
