"""Random models whose weights are written to between calls, by every way there is to write to them."""

from __future__ import annotations

import ctypes
import random
from dataclasses import dataclass, replace

import torch

__all__ = ["WRITES", "Changing", "differences", "make"]


def numpy_view(p):
    p.detach().numpy()[...] *= 0.5


def one_element(p):
    p.data[(-1,) * p.dim()] = 3.0


def of_storage(p):
    other = torch.empty(0, dtype=p.dtype).set_(p.untyped_storage())
    other.data.mul_(-0.5)


def moved_bytes(p):
    """As a library would that knows nothing of PyTorch."""
    bytes_ = (p.data * 1.5).contiguous()
    if p.is_contiguous():
        ctypes.memmove(p.data_ptr(), bytes_.data_ptr(), p.nbytes)
    else:
        p.data.copy_(bytes_)


def exchanged(p):
    p.data = (p.data * 0.7).clone()


def given_storage(p):
    new = p.detach().clone() * 0.9
    with torch.no_grad():
        p.set_(new.untyped_storage(), 0, p.shape, new.stride())


def by_dlpack(p):
    torch.from_dlpack(p.detach()).data.add_(0.125)


def counted(p):
    with torch.no_grad():
        p.mul_(0.75)


def in_inference_mode(p):
    with torch.inference_mode():
        p.data.add_(0.25)


#: Ways to write to a parameter, most of them past PyTorch's count of writes.
WRITES = {
    "data.mul_": lambda p: p.data.mul_(2),
    "data.clamp_": lambda p: p.data.clamp_(-0.01, 0.01),
    "data of a row": lambda p: p.data[0].zero_(),
    "data of a transposed view": lambda p: p.data.transpose(0, -1).add_(0.5),
    "detach().data": lambda p: p.detach().data.neg_(),
    "numpy": numpy_view,
    "one element": one_element,
    "storage": of_storage,
    "bytes": moved_bytes,
    "data = ": exchanged,
    "set_": given_storage,
    "dlpack": by_dlpack,
    "counted": counted,
    "inference mode": in_inference_mode,
}


#: Layers of images of 8 channels.
LAYERS = (
    "torch.nn.Conv2d(8, 8, 3, padding=1)", "torch.nn.Conv2d(8, 8, 1, bias=False)", "torch.nn.Conv2d(8, 8, 3, padding=1, groups=8)",
    "torch.nn.BatchNorm2d(8)", "torch.nn.ReLU()", "torch.nn.GroupNorm(2, 8)", "torch.nn.Linear(6, 6)", "torch.nn.LayerNorm(6)",
    "torch.nn.PReLU(8)", "torch.nn.ConvTranspose2d(8, 8, 3, padding=1)", "torch.nn.Softmax(1)",
)  # fmt: skip
FORMATS = ("contiguous_format", "channels_last")
#: Batch sizes; a batch of 0 has nothing to compute.
BATCHES = (2, 1, 3, 0)


@dataclass(frozen=True)
class Changing:
    """A model, how it and its inputs lie, and what is written: (number of the parameter, way)."""

    layers: tuple[str, ...]
    formats: tuple[str, str]
    batches: tuple[int, ...]
    writes: tuple[tuple[int, str], ...]
    seed: int

    def text(self) -> str:
        return f"# tests/torch_programs/weights.py\n{self!r}\n"

    def smaller(self):
        for at in range(len(self.writes)):
            yield replace(self, writes=self.writes[:at] + self.writes[at + 1 :])
        for at in range(len(self.layers)) if len(self.layers) > 1 else ():
            yield replace(self, layers=self.layers[:at] + self.layers[at + 1 :])


def make(rng: random.Random) -> Changing:
    layers = tuple(rng.choice(LAYERS) for _ in range(rng.choice((1, 2, 3, 4))))
    writes = tuple((rng.randrange(8), rng.choice(list(WRITES))) for _ in range(rng.choice((3, 5, 8))))
    batches = tuple(rng.choice(BATCHES) for _ in range(3))
    return Changing(layers, (rng.choice(FORMATS), rng.choice(FORMATS)), batches, writes, rng.randrange(1 << 20))


def differences(case: Changing, backend="girih", **options):
    """The differences from PyTorch, one sentence each."""
    torch._dynamo.reset()
    torch.manual_seed(case.seed)
    model = torch.nn.Sequential(*(eval(layer, {"torch": torch}) for layer in case.layers)).eval()
    model = model.to(memory_format=getattr(torch, case.formats[0]))
    run = torch.compile(model, backend=backend, **options)
    tensors = [*model.parameters(), *(b for b in model.buffers() if b.is_floating_point())]
    found = []
    for at, write in enumerate((None, *case.writes)):
        if write is not None and tensors:
            p = tensors[write[0] % len(tensors)]
            if not (write[1].startswith("data of") and p.dim() < 2):
                WRITES[write[1]](p)
        batch = case.batches[at % len(case.batches)]
        x = torch.randn(batch, 8, 6, 6).to(memory_format=getattr(torch, case.formats[1]))
        with torch.no_grad():
            given, wanted = run(x), model(x)
        where = f"call {at}, after {write}, batch {batch}"
        if not torch.allclose(given, wanted, rtol=1e-3, atol=1e-4, equal_nan=True):
            found.append(f"{where}: {(given - wanted).abs().max().item()} apart")
        elif given.numel() and given.stride() != wanted.stride():
            found.append(f"{where}: strides {given.stride()}, not {wanted.stride()}")
    return found
