"""The stand-in for CuPy: CuPy's names and CuPy's rules."""

import time

import cuda.tile as ct
import numpy as np
import pytest

import girih.cutile  # noqa: F401

cp = pytest.importorskip("cupy")
if "girih" not in cp.__version__:
    pytest.skip("a real CuPy is installed", allow_module_level=True)


@ct.kernel
def doubles(x, y):
    i = ct.bid(0)
    ct.store(y, (i,), ct.load(x, (i,), (8,)) * 2)


@pytest.mark.parametrize("stream", [cp.cuda.get_current_stream(), cp.cuda.Stream(non_blocking=True), cp.cuda.Stream.null])
def test_kernels_take_its_arrays_and_streams(stream):
    x = cp.arange(16, dtype=cp.float32)
    y = cp.empty_like(x)
    ct.launch(stream, (2,), doubles, (x, y))
    stream.synchronize()
    assert isinstance(y, cp.ndarray)
    np.testing.assert_array_equal(cp.asnumpy(y), 2 * np.arange(16, dtype=np.float32))


def test_arrays_are_copied_between_host_and_device():
    host = np.zeros(4)
    device = cp.asarray(host)
    host[0] = 1
    assert device[0] == 0
    back = device.get()
    device[1] = 2
    assert back[1] == 0
    assert cp.asarray(device) is device
    assert cp.array(device) is not device


def test_nothing_becomes_numpy_by_itself():
    x = cp.zeros(3)
    with pytest.raises(TypeError, match="get"):
        np.asarray(x)
    with pytest.raises(TypeError):
        x + np.ones(3)
    with pytest.raises(TypeError):
        np.ones(3) + x
    with pytest.raises(TypeError):
        cp.sum(np.ones(3))
    with pytest.raises((TypeError, ValueError, RuntimeError, BufferError)):
        np.from_dlpack(x)


def test_reductions_stay_arrays():
    total = cp.ones(4).sum()
    assert isinstance(total, cp.ndarray) and total.shape == ()
    assert float(total) == 4 and f"{total:.1f}" == "4.0" and total.item() == 4
    assert isinstance(cp.ones(4)[0], cp.ndarray)


def test_views_share_memory():
    x = cp.zeros((2, 3))
    x[0, 1][...] = 5
    row = x[1]
    row += 1
    assert x.get().tolist() == [[0, 5, 0], [1, 1, 1]]
    x[...] = np.arange(6.0).reshape(2, 3)
    assert x.T[2, 1] == 5


def test_numpys_functions_work_on_its_arrays():
    x = cp.asarray([1.0, 4.0])
    assert isinstance(np.sqrt(x), cp.ndarray)
    assert np.sqrt(x).get().tolist() == [1, 2]
    assert isinstance(cp.linalg.norm(x), cp.ndarray)
    assert isinstance(cp.concatenate([x, x]), cp.ndarray)
    assert cp.where(x > 2, x, 0).get().tolist() == [0, 4]
    assert (x @ x).item() == 17
    assert (2 - x).get().tolist() == [1, -2]
    assert cp.get_array_module(x) is cp and cp.get_array_module(np.ones(1)) is np


@pytest.mark.parametrize("make", ["rand", "randn", "random.random", "standard_normal", "uniform"])
def test_random_numbers_take_a_dtype(make):
    function = getattr(cp.random, make.removeprefix("random."))
    cp.random.seed(3)
    kwargs = {} if make in ("rand", "randn") else {"size": 5}
    args = (5,) if make in ("rand", "randn") else ()
    x = function(*args, **kwargs, dtype=cp.float32)
    assert x.shape == (5,) and x.dtype == cp.float32
    cp.random.seed(3)
    assert (function(*args, **kwargs, dtype=cp.float32) == x).all()


def test_comparisons():
    cp.testing.assert_allclose(cp.ones(3), np.ones(3))
    with pytest.raises(AssertionError):
        cp.testing.assert_array_equal(cp.ones(3), cp.zeros(3))


def test_what_it_has_not():
    with pytest.raises(AttributeError, match="stand-in"):
        cp.there_is_no_such_function
    with pytest.raises(AttributeError, match="compiles CUDA C"):
        cp.RawKernel


def test_events_measure_time():
    start, end = cp.cuda.Event(), cp.cuda.Event()
    before = time.perf_counter()
    start.record()
    end.record()
    end.synchronize()
    after = time.perf_counter()
    assert 0 <= cp.cuda.get_elapsed_time(start, end) <= (after - before) * 1000


def test_the_device():
    device = cp.cuda.Device()
    with device:
        device.synchronize()
    assert device.compute_capability == "100"
    assert cp.cuda.runtime.getDeviceCount() == 1
    assert b"Girih" in cp.cuda.runtime.getDeviceProperties(0)["name"]
    free, total = cp.cuda.runtime.memGetInfo()
    assert 0 < free < total
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match="only device 0"):
        cp.cuda.Device(1)


def test_a_real_cupy_goes_first(write, cutile):
    write("real/cupy.py", "__version__ = 'real'")
    script = write("real/script.py", "import cupy\nprint(cupy.__version__)")
    assert cutile(script).stdout == "real\n"


def test_without_girih_there_is_none(run):
    assert run("-c", "import importlib.util as u; print(u.find_spec('cupy'))").stdout == "None\n"
