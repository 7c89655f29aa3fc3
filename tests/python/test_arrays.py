"""Arguments that a launch takes, and messages about those that it does not."""

import threading

import cuda.tile as ct
import ml_dtypes
import numpy as np
import pytest

import girih.cutile  # noqa: F401
from girih import _girih

T = 8


@ct.kernel
def copies(x, y):
    i = ct.bid(0)
    ct.store(y, (i,), ct.load(x, (i,), (T,)))


@ct.kernel
def copies_2d(x, y):
    i, j = ct.bid(0), ct.bid(1)
    ct.store(y, (i, j), ct.load(x, (i, j), (4, 4)))


@pytest.mark.parametrize(
    "dtype",
    [
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64"),
        *(ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2),
    ],
    ids=lambda d: np.dtype(d).name,
)
def test_every_element_type(dtype):
    x = (np.arange(16) % 2).astype(dtype)
    y = np.zeros(16, dtype)
    ct.launch(0, (2,), copies, (x, y))
    assert x.tobytes() == y.tobytes()


def test_strides_are_followed():
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    y = np.zeros((16, 16), np.float32)
    ct.launch(0, (2, 2), copies_2d, (x.T, y[::2, 4:12]))
    assert (y[::2, 4:12] == x.T).all()
    assert y.sum() == x.sum()


def test_no_dimensions():
    @ct.kernel
    def scales(x, factor, y):
        ct.store(y, (0,), ct.load(x, (0,), (T,)) * ct.gather(factor, ()))

    x, y = np.arange(T, dtype=np.float32), np.zeros(T, np.float32)
    ct.launch(0, (1,), scales, (x, np.array(3, np.float32), y))
    assert (y == 3 * x).all()


def test_what_the_compiler_refuses_is_cutiles_exception():
    # A view of no dimensions, which NVIDIA's compiler refuses too.
    @ct.kernel
    def loads(factor, y):
        ct.store(y, (0,), ct.load(y, (0,), (T,)) * ct.load(factor, (), ()))

    with pytest.raises(ct.TileCompilerExecutionError, match="rank 1 or more") as raised:
        ct.launch(0, (1,), loads, (np.array(3, np.float32), np.zeros(T, np.float32)))
    assert __file__ in str(raised.value) and "ct.load(factor" in str(raised.value)
    assert "Unknown location" not in str(raised.value)


def test_no_elements():
    x = np.zeros((0,), np.float32)
    y = np.full(T, 5, np.float32)

    @ct.kernel
    def pads(x, y):
        ct.store(y, (0,), ct.load(x, (0,), (T,), padding_mode=ct.PaddingMode.ZERO))

    ct.launch(0, (1,), pads, (x, y))
    assert (y == 0).all()


def test_lists_of_arrays():
    @ct.kernel
    def gathers(xs, y):
        i = ct.bid(0)
        ct.store(y, (i,), ct.load(xs[i], (0,), (T,)))

    xs = [np.full(T, i, np.float32) for i in range(3)]
    y = np.zeros(3 * T, np.float32)
    ct.launch(0, (3,), gathers, (xs, y))
    assert y.tolist() == np.repeat([0.0, 1.0, 2.0], T).tolist()


def test_tuples_of_arrays():
    @ct.kernel
    def adds(pair, more, y):
        total = ct.load(pair[0], (0,), (T,)) + ct.load(pair[1], (0,), (T,))
        ct.store(y, (0,), total + ct.load(more[0], (0,), (T,)) * more[1])

    one = np.ones(T, np.float32)
    y = np.zeros(T, np.float32)
    ct.launch(0, (1,), adds, ((one, 2 * one), (3 * one, 10.0), y))
    assert (y == 33).all()


def test_anything_with_the_cuda_array_interface():
    class Wrapped:
        def __init__(self, array):
            self.array = array

        @property
        def __cuda_array_interface__(self):
            return dict(self.array.__array_interface__, version=3)

    x, y = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    ct.launch(0, (2,), copies, (Wrapped(x), Wrapped(y)))
    assert (x == y).all()


def read_only():
    array = np.zeros(T, np.float32)
    array.flags.writeable = False
    return array


def odd_strides():
    return np.zeros(T, np.dtype([("a", np.float32), ("b", np.int8)]))["a"]


@pytest.mark.parametrize(
    "array, says",
    [
        (read_only(), "read-only.*copy"),
        (np.zeros(T, ">f4"), "byte order"),
        (np.array(["a"] * T), "elements of an unsupported type"),
        (np.array([None] * T), "elements of an unsupported type"),
        (odd_strides(), "not whole numbers of elements"),
        (np.zeros(T, ml_dtypes.float4_e2m1fn), "pack them into uint8"),
    ],
    ids=["read-only", "byte order", "text", "objects", "odd strides", "float4"],
)
def test_arrays_that_no_kernel_can_take(array, says):
    with pytest.raises(TypeError, match=says) as raised:
        ct.launch(0, (1,), copies, (array, np.zeros(T, np.float32)))
    assert str(raised.value).startswith("girih: ")


def test_cutile_itself_refuses_the_rest():
    with pytest.raises(TypeError):
        ct.launch(0, (1,), copies, ("text", np.zeros(T, np.float32)))
    with pytest.raises(TypeError):
        ct.launch(0, (1,), copies, (np.zeros(T, np.float32),))
    with pytest.raises(TypeError, match="tuple"):
        ct.launch(0, (1,), copies, [np.zeros(T, np.float32)] * 2)


def test_a_launch_keeps_no_array_alive():
    import gc
    import weakref

    class Array(np.ndarray):
        pass

    x = np.zeros(T, np.float32).view(Array)
    seen = weakref.ref(x)
    ct.launch(0, (1,), copies, (x, np.zeros(T, np.float32)))
    del x
    gc.collect()
    assert seen() is None


def test_many_threads_launch_at_once():
    errors = []

    def work(number):
        try:
            for _ in range(20):
                x = np.full(64, number, np.float32)
                y = np.zeros(64, np.float32)
                ct.launch(0, (8,), copies, (x, y))
                assert (y == number).all()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_tuning_measures_and_chooses():
    x, y = np.arange(1024, dtype=np.float32), np.zeros(1024, np.float32)

    @ct.kernel
    def tuned(x, y, t: ct.Constant[int]):
        i = ct.bid(0)
        ct.store(y, (i,), ct.load(x, (i,), (t,)) * 2)

    result = ct.tune.exhaustive_search(
        [64, 256],
        0,
        lambda t: (1024 // t,),
        tuned,
        lambda t: (x, y, t),
        quiet=True,
        flush_l2=False,
    )
    assert result.best.config in (64, 256)
    assert result.best.mean_us > 0
    assert len(result.successes) == 2 and not result.failures
    assert (y == 2 * x).all()


def test_tuning_ends_a_run_that_takes_too_long(monkeypatch):
    y = np.zeros(1, np.float32)
    tried = []
    alarm = _girih.Alarm
    # The limit of the run that ends is never reached, however busy the machine; that of the other at once.
    monkeypatch.setattr(_girih, "Alarm", lambda _, function: alarm(3600 if tried[-1] == 1 else 0, function))

    def arguments(n):
        tried.append(n)
        return y, n

    @ct.kernel
    def spins(y, n: int):
        total = ct.full((1,), 0.0, dtype=ct.float32)
        for i in range(n):
            for j in range(n):
                total = total + ct.sin(total) + 1.0
        ct.store(y, (0,), total)

    result = ct.tune.exhaustive_search(
        [1, 2_000_000_000],
        0,
        lambda n: (1,),
        spins,
        arguments,
        quiet=True,
        flush_l2=False,
        single_run_timeout_sec=1,
    )
    assert [m.config for m in result.successes] == [1]
    [(config, kind, text)] = result.failures
    assert config == 2_000_000_000 and kind.__name__ == "TileLaunchTimeoutError" and text.startswith("CUDA kernel launch exceeded timeout")
