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


def passes(script, **variables):
    code, text = run(script, **variables)
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
