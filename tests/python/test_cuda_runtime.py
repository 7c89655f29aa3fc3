"""`device="cuda"` on the stand-in for a driver: each script has a process of its own, since a process has one driver."""

import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap

import pytest

from girih import _library

SETUP = """
import ctypes, sys
import numpy as np
import girih
import girih.language as tl

driver = ctypes.CDLL(__import__("os").environ["GIRIH_CUDA_DRIVER"])


class Array:
    '''An array of the device, as CuPy has one.'''

    def __init__(self, values, stream=None, strides=None):
        values = np.ascontiguousarray(values)
        self.shape, self.dtype, self.bytes, self.stream = values.shape, values.dtype, values.nbytes, stream
        self.strides, address = strides, ctypes.c_uint64()
        assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(max(1, self.bytes))) == 0
        self.address = address.value
        to = ctypes.c_uint64(self.address)
        assert driver.cuMemcpyHtoD_v2(to, values.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(self.bytes)) == 0

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.address, False), "version": 3,
                "strides": self.strides, "stream": self.stream}

    def get(self):
        out = np.empty(self.shape, self.dtype)
        at = ctypes.c_uint64(self.address)
        assert driver.cuMemcpyDtoH_v2(out.ctypes.data_as(ctypes.c_void_p), at, ctypes.c_size_t(self.bytes)) == 0
        return out


@girih.jit
def scale(x, y, n, BLOCK: girih.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    tl.store(y + at, v * 2 + 1, mask=at < n)


x = np.arange(1000, dtype=np.float32)
grid = (girih.cdiv(1000, 256),)
"""


def run(script, setup=SETUP, **variables):
    env = {**os.environ, "GIRIH_CUDA_DRIVER": str(_library.find("libcuda.so.1")), **variables}
    with tempfile.TemporaryDirectory() as folder:
        # The source of a kernel is a file's.
        file = pathlib.Path(folder) / "script.py"
        file.write_text(setup + textwrap.dedent(script))
        done = subprocess.run([sys.executable, file], capture_output=True, text=True, env=env, timeout=300)
    return done.returncode, done.stdout + done.stderr


def passes(script, setup=SETUP, **variables):
    code, text = run(script, setup, **variables)
    assert code == 0, text


@pytest.mark.parametrize("capability", ["8.0", "9.0", "10.0", "12.0"])
def test_arrays_of_the_device_and_of_the_host(capability):
    passes(
        """
        stream = ctypes.c_size_t()
        assert driver.cuStreamCreate(ctypes.byref(stream), 0) == 0
        for at in (None, 1, 2, stream.value):
            a, b = Array(x, at), Array(np.zeros_like(x), at)
            scale[grid](a, b, 1000, BLOCK=256, device="cuda")
            driver.cuStreamSynchronize(ctypes.c_size_t(at or 0))
            np.testing.assert_array_equal(b.get(), x * 2 + 1)
        host = np.zeros_like(x)
        scale[grid](Array(x), host, 1000, BLOCK=256, device="cuda")
        np.testing.assert_array_equal(host, x * 2 + 1)
        host[:] = 0
        scale[grid](x, host, 1000, BLOCK=256, device="cuda")
        np.testing.assert_array_equal(host, x * 2 + 1)
        """,
        GIRIH_SHIM_CAPABILITY=capability,
    )


def test_the_environment_chooses_the_device():
    passes(
        """
        a, b = Array(x), Array(np.zeros_like(x))
        scale[grid](a, b, 1000, BLOCK=256)
        np.testing.assert_array_equal(b.get(), x * 2 + 1)
        """,
        GIRIH_DEVICE="cuda",
    )


def test_arrays_of_the_device_do_not_go_to_other_devices():
    code, text = run("scale[grid](Array(x), np.zeros_like(x), 1000, BLOCK=256)")
    assert code != 0 and 'the argument `x` is on a CUDA device; launch with device="cuda"' in text


def test_without_a_driver_the_message_says_what_is_missing():
    kernel = "import numpy as np\nimport girih\nimport girih.language as tl\n" + SETUP[SETUP.index("@girih.jit") :]
    launch = "scale[grid](x, x, 1000, BLOCK=256, device='cuda')"
    code, text = run(launch, kernel, GIRIH_CUDA_DRIVER="/nonexistent/libcuda.so")
    assert code != 0 and "/nonexistent/libcuda.so cannot be used" in text, text


def test_an_array_of_the_device_that_is_too_short_is_refused():
    code, text = run(
        """
        scale[grid](Array(x), Array(np.zeros(10, np.float32)), 1000, BLOCK=256, device="cuda")
        """
    )
    assert code != 0 and "buffer `y` holds 10 elements, but the kernel writes index 999" in text, text


# DLPack as CuPy and PyTorch have it: an array with strides, which says to which stream it is told.
DLPACK = """
from girih import device


class Lent:
    '''An array of the device that only DLPack describes.'''

    def __init__(self, array, view=lambda values: values, number=0):
        self.array, self.view, self.number, self.streams = array, view, number, []

    def __dlpack_device__(self):
        return 2, self.number

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        words = np.ctypeslib.as_array((ctypes.c_char * self.array.bytes).from_address(self.array.address))
        return girih._girih.relabel(self.view(words.view(self.array.dtype).reshape(self.array.shape)).__dlpack__())


"""


@pytest.mark.parametrize("capability", ["8.0", "9.0", "10.0", "12.0"])
def test_kernels_take_what_dlpack_describes(capability):
    passes(
        """
        a, b = Lent(Array(x)), Lent(Array(np.zeros_like(x)))
        scale[grid](a, b, 1000, BLOCK=256, device="cuda")
        np.testing.assert_array_equal(b.array.get(), x * 2 + 1)
        assert a.streams == [1], a.streams
        # Every second element, from the second on: the kernel gets the address of the first of them.
        even = Lent(Array(x), lambda values: values[1::2])
        assert device.view(even).strides == (8,) and device.view(even).address == even.array.address + 4
        for refused, words in ((Lent(Array(x), number=1), "device 1"), (Lent(Array(x.astype(np.complex64))), "type 5")):
            try:
                scale[grid](refused, b, 1000, BLOCK=256, device="cuda")
                raise SystemExit("not refused")
            except girih.GirihError as error:
                assert words in str(error), error
        """,
        SETUP + DLPACK,
        GIRIH_SHIM_CAPABILITY=capability,
    )


def test_arrays_that_were_met_before():
    """They are read without Python, and unusual ones are refused all the same."""
    passes(
        """
        a, b = Array(x), Array(np.zeros_like(x))
        for _ in range(3):
            scale[grid](a, b, 1000, BLOCK=256, device="cuda")
            np.testing.assert_array_equal(b.get(), x * 2 + 1)
        even = Array(x, strides=(8,))
        even.shape = (500,)
        half = Array(np.zeros(500, np.float32))
        scale[grid](even, half, 500, BLOCK=256, device="cuda")
        np.testing.assert_array_equal(half.get(), x[:500] * 2 + 1)
        odd = Array(x)
        odd.address += 2
        try:
            scale[grid](odd, b, 10, BLOCK=256, device="cuda")
            raise SystemExit("not refused")
        except ValueError as error:
            assert "which its elements of 4 bytes do not divide" in str(error), error
        model = girih.Model.from_expr("x * 2 + y", {"device": "cuda"}, x="f32[1000]", y="f32[1000]")
        one, out = Array(np.ones_like(x)), Array(np.zeros_like(x))
        for _ in range(3):
            model(a, one, out=out)
            np.testing.assert_array_equal(out.get(), x * 2 + 1)
            np.testing.assert_array_equal(model(a, one).numpy(), x * 2 + 1)
        assert type(model._quick).__name__ == "QuickOnDevice" and model._quick((a, one), None) is not None
        for given, to in (((a, one), a), ((a, half), None), ((a, x), None), ((a, Array(x.astype(np.float64))), None)):
            assert model._quick(given, to) is None
        for to in (a, half, x):
            try:
                model(a, one, out=to)
                assert to is x
            except girih.ProgramError as error:
                assert "overlaps" in str(error) or "the run gives float32[1000]" in str(error), error
        """
    )


MODEL = """
model = girih.Model.from_expr("torch.softmax(x @ w + b, -1)", {"device": "cuda"}, x="f32[40, 64]", w="f32[64, 48]", b="f32[48]")
random = np.random.default_rng(1)
x, w, b = (random.standard_normal(shape).astype(np.float32) for shape in ((40, 64), (64, 48), (48,)))
want = girih.Model.from_expr("torch.softmax(x @ w + b, -1)", x=x, w=w, b=b)(x, w, b)


def same(array):
    np.testing.assert_allclose(array, want, rtol=1e-5, atol=1e-6)


"""


@pytest.mark.parametrize("capability", ["8.0", "9.0", "10.0", "12.0"])
def test_a_model_reads_and_writes_arrays_of_the_device_where_they_are(capability):
    passes(
        """
        stream = ctypes.c_size_t()
        assert driver.cuStreamCreate(ctypes.byref(stream), 0) == 0
        for at in (None, 1, 2, stream.value):
            there = [Array(a, at) for a in (x, w, b)]
            given = model(*there)
            assert isinstance(given, device.Array) and given.__cuda_array_interface__["stream"] == (at or 1)
            same(given.numpy())
            out = Array(np.zeros_like(want), at)
            assert model(*there, out=out) is out
            same(out.get())
        # Some on the host, some on the device, by either interface, and results where they are wanted.
        mixed = x, Lent(Array(w)), Array(b)
        same(model(*mixed).numpy())
        host = np.zeros_like(want)
        model(*mixed, out=host)
        same(host)
        same(model(x, w, b))
        # What a model gives goes on, by both interfaces.
        again = girih.Model.from_expr("x * 2", {"device": "cuda"}, x="f32[40, 48]")
        first = model(*there)
        same(again(first).numpy() / 2)
        capsule = first.__dlpack__()
        address, kind, shape, strides = girih._girih.described(capsule)
        assert (kind, shape) == ((2, 32), [40, 48]) and address == first.__cuda_array_interface__["data"][0]
        """,
        SETUP + DLPACK + MODEL,
        GIRIH_SHIM_CAPABILITY=capability,
    )


def test_arrays_of_the_device_that_do_not_fit_are_refused():
    passes(
        """
        X, W, B = Array(x), Array(w), Array(b)
        host = girih.Model.from_expr("x * 2", x="f32[40, 64]")
        refusals = [
            (lambda: host(X), "is on a CUDA device: make the model with device"),
            (lambda: model(Array(x.astype(np.float64)), W, B), "input `x` is float64"),
            (lambda: model(W, W, B), "has extent 64 along axis 0"),
            (lambda: model(Array(x, strides=(4, 160)), W, B), "not C-contiguous"),
            (lambda: model(X, W, B, out=X), "`out` for `out` is float32[40, 64]"),
            (lambda: model(X, W, B, out=Array(want, strides=(4, 160))), "must be C-contiguous"),
        ]
        square = girih.Model.from_expr("x * 2", {"device": "cuda"}, x="f32[40, 64]")
        refusals.append((lambda: square(X, out=X), "overlaps another array"))
        for run, words in refusals:
            try:
                run()
                raise SystemExit(f"not refused: {words}")
            except girih.ProgramError as error:
                assert words in str(error), (words, str(error))
        """,
        SETUP + DLPACK + MODEL,
    )


def test_arrays_of_the_device_that_are_not_aligned_are_copied():
    passes(
        """
        odd = Array(np.concatenate([[np.float32(0)], x.ravel()]))
        place = Lent(odd, lambda values: values[1:].reshape(40, 64))
        same(model(place, Array(w), Array(b)).numpy())
        room = Array(np.zeros(want.size + 1, np.float32))
        model(place, Array(w), Array(b), out=Lent(room, lambda values: values[1:].reshape(want.shape)))
        same(room.get()[1:].reshape(want.shape))
        assert room.get()[0] == 0
        """,
        SETUP + DLPACK + MODEL,
    )


def test_a_file_for_all_shapes_on_the_device():
    passes(
        """
        import onnx
        from onnx import TensorProto, helper

        weights = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32)
        held = onnx.numpy_helper.from_array(weights, "w")
        nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Reshape", ["p", "to"], ["y"])]
        typed = [("x", TensorProto.FLOAT, ["batch", 8]), ("to", TensorProto.INT64, [2])]
        inputs = [helper.make_tensor_value_info(*port) for port in typed]
        output = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", "columns"])
        proto = helper.make_model(helper.make_graph(nodes, "test", inputs, [output], [held]))
        proto.ir_version = 8
        model = girih.Model.from_onnx(proto.SerializeToString(), device="cuda")
        for batch, to in ((4, (8, 3)), (6, (3, 12)), (4, (8, 3))):
            x = np.random.default_rng(batch).standard_normal((batch, 8)).astype(np.float32)
            # What the shape of the result depends on is read on the device too.
            y = model(Array(x), Array(np.array(to, np.int64)))
            np.testing.assert_allclose(y.numpy(), (x @ weights).reshape(to), rtol=1e-5)
        """
    )


def test_memory_that_only_a_capsule_keeps_lives_until_the_launch():
    passes(
        """
        import weakref

        class Fresh(Lent):
            '''Copies itself for whoever asks; the copy is freed with its capsule.'''

            def __dlpack__(self, stream=None):
                copy = Array(self.array.get())
                held = type("Held", (ctypes.c_char * copy.bytes,), {}).from_address(copy.address)
                weakref.finalize(held, lambda: freed.append(driver.cuMemFree_v2(ctypes.c_uint64(copy.address))))
                return girih._girih.relabel(np.frombuffer(held, copy.dtype).__dlpack__())

        freed = []
        b = Array(np.zeros_like(x))
        scale[grid](Fresh(Array(x)), b, 1000, BLOCK=256, device="cuda")
        np.testing.assert_array_equal(b.get(), x * 2 + 1)
        assert freed == [0], freed
        model = girih.Model.from_expr("x * 2", {"device": "cuda"}, x="f32[1000]")
        np.testing.assert_array_equal(model(Fresh(Array(x))).numpy(), x * 2)
        assert freed == [0, 0], freed
        """,
        SETUP + DLPACK,
    )
