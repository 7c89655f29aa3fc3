"""Pointers as Triton takes them: into the middle of memory, from which a kernel may go either way, and objects with an address and a type."""

import numpy as np
import pytest
import triton
import triton.language as tl

from girih.triton import Array


@triton.jit
def copied(x, out, n, step, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i * step, i < n), i < n)


@pytest.fixture(params=["cpu", "eval", "sim", "check"], autouse=True)
def device(request, monkeypatch):
    monkeypatch.setenv("GIRIH_DEVICE", "cpu" if request.param == "check" else request.param)
    monkeypatch.setenv("GIRIH_CHECK", "1" if request.param == "check" else "0")
    copied.device_caches.clear()
    return request.param


def test_arrays_that_run_backwards():
    x, out = np.arange(100, dtype=np.float32), np.zeros(40, np.float32)
    backwards = x[70:30:-1]
    copied[(3,)](backwards.view(Array), out.view(Array), 40, -1, BLOCK=16)
    assert (out == backwards).all()


def test_a_tensor_in_the_middle_of_its_storage():
    torch = pytest.importorskip("torch")
    x, out = torch.arange(100.0), torch.zeros(40)
    copied[(3,)](x[70:], out, 40, -1, BLOCK=16)
    assert torch.equal(out, x[31:71].flip(0))
    copied[(3,)](x[10:11], out, 40, 2, BLOCK=16)
    assert torch.equal(out, x[10:90:2])


class Typed:
    """An address and an element type: Triton asks nothing else of a tensor."""

    def __init__(self, tensor, offset, dtype=None):
        self.tensor, self.offset, self.dtype = tensor, offset, dtype or tensor.dtype

    def data_ptr(self):
        return self.tensor.data_ptr() + self.offset * self.tensor.element_size()


def test_an_object_with_an_address_and_a_type(device):
    torch = pytest.importorskip("torch")
    from girih import OutOfBoundsError

    x, out = torch.arange(100.0), torch.zeros(40)
    copied[(3,)](Typed(x, 60), Typed(out, 0), 40, -1, BLOCK=16)
    assert torch.equal(out, x[21:61].flip(0))
    # One that names its storage.
    stored = Typed(x, 70)
    stored.untyped_storage = x.untyped_storage
    copied[(3,)](stored, out, 40, -1, BLOCK=16)
    assert torch.equal(out, x[31:71].flip(0))
    # The same memory as other elements.
    words = torch.zeros(40, dtype=torch.int32)
    copied[(3,)](Typed(x, 5, torch.int32), words, 40, 1, BLOCK=16)
    assert torch.equal(words, x[5:45].view(torch.int32))
    if device in ("eval", "check"):
        with pytest.raises(OutOfBoundsError):
            copied[(3,)](Typed(x, 38), out, 40, -1, BLOCK=16)


def test_an_object_that_points_nowhere():
    torch = pytest.importorskip("torch")
    nowhere = Typed(torch.zeros(1), 0)
    nowhere.data_ptr = lambda: 64
    with pytest.raises(ValueError, match="the argument `x` is the address 0x40, which is in no tensor"):
        copied[(1,)](nowhere, torch.zeros(4), 4, 1, BLOCK=16)
