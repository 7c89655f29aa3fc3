"""The rows of the suites: the computation, its data, and its amount of work."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import nn
from torch.nn import functional as F

from girih.bench import kernels, networks


@dataclass
class Row:
    name: str
    #: Makes the model, a module or a function of tensors, and its inputs.
    make: Callable[[], tuple]
    #: Girih's time over the best other's that is aimed at.
    goal: float = 1.0
    #: Additions and multiplications, where they bound it.
    flops: float = 0.0
    #: Which of the machine's limits these are held against: `flops` of f32, `bf16` or `int8`.
    unit: str = "flops"
    #: Bytes that must be moved, where they bound it; those of the inputs, weights and results when absent.
    bytes: float | None = None
    #: The same of a namespace of arrays, `numpy` or `jax.numpy`, and arrays.
    arrays: Callable | None = None
    #: The largest error relative to the largest value, against float64.
    tolerance: float = 1e-4
    #: The contestants that are left out, and why.
    without: dict[str, str] = field(default_factory=dict)
    #: Weights stay as they are, which an ONNX file says of its own; otherwise Girih looks whether somebody wrote to those that it packed.
    frozen: bool = False
    #: The ONNX file that Girih and ONNX Runtime load instead of the exported model: a function of the model.
    onnx: Callable | None = None
    #: Contestants that do it in their own way: functions of the model, its inputs and a number of threads, which return what runs it.
    by: dict[str, Callable] = field(default_factory=dict)
    #: The kernel that Girih runs instead of the exported model: a function that returns a function of the inputs and a
    #: number of threads.
    kernel: Callable | None = None
    #: The same for `girih.jit`, where the row's kernel is one of Triton's.
    as_girih: Callable | None = None
    #: Where it runs: `cpu` or `cuda`.
    device: str = "cpu"
    #: The kernel of `triton_kernels` that does the same.
    triton: str | None = None


class Function(nn.Module):
    """A function of tensors as a module, the form that is exported."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def of(function, *inputs):
    """A function that makes a module of this function, and random inputs of these shapes, or these tensors."""

    def make():
        torch.manual_seed(0)
        return Function(function), tuple(torch.randn(s) if isinstance(s, tuple) else s() for s in inputs)

    return make


def layer(module, *shape, dtype=torch.float32):
    """A function that makes a module, by `module()`, and its one input."""

    def make():
        torch.manual_seed(0)
        return module().eval().to(dtype), (torch.randn(*shape).to(dtype),)

    return make


def trained(module, *shape):
    """A function that makes a training step of a module, and its one input."""

    def make():
        torch.manual_seed(0)
        return networks.Step(module().train()), (torch.randn(*shape),)

    return make


def elementwise():
    for name, function, arrays in [
        ("tanh", torch.tanh, lambda np, x: np.tanh(x)),
        ("sin", torch.sin, lambda np, x: np.sin(x)),
        ("exp", torch.exp, lambda np, x: np.exp(x)),
        ("log", lambda x: torch.log(x.abs()), lambda np, x: np.log(np.abs(x))),
        ("erf", torch.erf, None),
        ("sigmoid", torch.sigmoid, None),
        ("silu", F.silu, None),
    ]:
        yield Row(f"{name} 4M", of(function, (2048, 2048)), 0.8, arrays=arrays)
    yield Row("gelu 32x18944", of(F.gelu, (32, 18944)), 0.8)
    yield Row("a * b + c 4M", of(lambda a, b, c: a * b + c, *[(2048, 2048)] * 3), 1.0, arrays=lambda np, a, b, c: a * b + c)
    yield Row("transpose 4096x4096", of(lambda x: x.t().contiguous(), (4096, 4096)), 0.9,
              arrays=lambda np, x: np.ascontiguousarray(x.T), without={"jax": "XLA only notes a layout"})  # fmt: skip
    yield Row("permute 0,2,1,3 of 8x128x16x64", of(lambda x: x.permute(0, 2, 1, 3).contiguous(), (8, 128, 16, 64)), 1.0)
    yield Row("cat 4 x 1024x256", of(lambda *x: torch.cat(x, 1), *[(1024, 256)] * 4), 1.0)


def reductions():
    square = (4096, 4096)
    yield Row("sum of columns 4096x4096", of(lambda x: x.sum(0), square), 1.0, arrays=lambda np, x: x.sum(0))
    yield Row("sum of rows 4096x4096", of(lambda x: x.sum(1), square), 1.0, arrays=lambda np, x: x.sum(1))
    yield Row("sum of columns 1Mx8", of(lambda x: x.sum(0), (1 << 20, 8)), 1.0, arrays=lambda np, x: x.sum(0))
    yield Row("sum of all 16M", of(lambda x: x.sum(), square), 1.0, arrays=lambda np, x: x.sum())
    yield Row("variance of columns 4096x1024", of(lambda x: x.var(0), (4096, 1024)), 1.0)
    yield Row("argmax of rows 4096x4096", of(lambda x: x.argmax(1), square), 1.0, arrays=lambda np, x: x.argmax(1))
    yield Row("max of columns 4096x1024", of(lambda x: x.amax(0), (4096, 1024)), 1.0, arrays=lambda np, x: x.max(0))
    yield Row("softmax 1024x128", of(lambda x: x.softmax(-1), (1024, 128)), 0.8)
    yield Row("softmax 4096x4096", of(lambda x: x.softmax(-1), square), 0.8)
    yield Row("layer norm 32x2048", layer(lambda: nn.LayerNorm(2048), 32, 2048), 0.8)
    yield Row("layer norm 4096x1024", layer(lambda: nn.LayerNorm(1024), 4096, 1024), 0.8)
    yield Row("RMSNorm 512x4096", layer(lambda: nn.RMSNorm(4096), 512, 4096), 0.9)
    yield Row("group norm 8x64x56x56", layer(lambda: nn.GroupNorm(8, 64), 8, 64, 56, 56), 0.9)
    yield Row("cross entropy 512x32000",
              of(F.cross_entropy, (512, 32000), lambda: torch.randint(0, 32000, (512,))), 1.0)  # fmt: skip
    yield Row("cumsum 1024x4096", of(lambda x: x.cumsum(1), (1024, 4096)), 0.8, arrays=lambda np, x: x.cumsum(1),
              tolerance=1e-3)  # fmt: skip
    yield Row("logsumexp 4096x1024", of(lambda x: x.logsumexp(1), (4096, 1024)), 1.0)


def matmul():
    for m, n, k in [(1024, 1024, 1024), (2048, 2048, 2048), (512, 3584, 3584), (32, 4096, 4096), (8, 4096, 4096), (1, 4096, 4096), (1024, 64, 1024), (4096, 4, 512)]:  # fmt: skip
        yield Row(f"{m}x{k} by {k}x{n}", of(torch.matmul, (m, k), (k, n)), 0.9, 2.0 * m * n * k,
                  arrays=lambda np, a, b: a @ b)  # fmt: skip
    for m, n, k in [(512, 3584, 3584), (128, 2048, 2048), (1, 4096, 4096), (1, 8192, 2048)]:
        yield Row(f"linear {m}x{k} to {n}", layer(lambda k=k, n=n: nn.Linear(k, n), m, k), 0.9, 2.0 * m * n * k)
    yield Row("64 products of 32x32x32", of(torch.bmm, (64, 32, 32), (64, 32, 32)), 0.9, 2.0 * 64 * 32**3, arrays=lambda np, a, b: a @ b)
    yield Row("32 products of 128x64x128", of(torch.bmm, (32, 128, 64), (32, 64, 128)), 0.9, 2.0 * 32 * 128 * 64 * 128, arrays=lambda np, a, b: a @ b)


def lowprec():
    bf16 = torch.bfloat16
    yield Row("bf16 1024x1024 by 1024x1024", of(lambda a, b: a.to(bf16) @ b.to(bf16), (1024, 1024), (1024, 1024)), 0.9, 2.0 * 1024**3, "bf16", tolerance=2e-2)
    for m in (32, 1):
        yield Row(f"bf16 linear {m}x4096 to 4096", layer(lambda: nn.Linear(4096, 4096, bias=False), m, 4096, dtype=bf16), 0.9, 2.0 * m * 4096**2, "bf16", tolerance=2e-2)
    i8 = lambda *s: lambda: torch.randint(-128, 128, s, dtype=torch.int8)  # noqa: E731
    yield Row("int8 1024x1024 by 1024x1024", of(torch._int_mm, i8(1024, 1024), i8(1024, 1024)), 0.9, 2.0 * 1024**3, "int8", tolerance=0)


def attention():
    for causal in (False, True):
        shape = (1, 16, 1024, 64)
        yield Row(f"attention 16 heads 1024x64{', causal' if causal else ''}",
                  of(lambda q, k, v, c=causal: F.scaled_dot_product_attention(q, k, v, is_causal=c), *[shape] * 3),
                  0.5, (0.5 if causal else 1.0) * 4 * 16 * 1024 * 1024 * 64)  # fmt: skip
    yield Row("attention, one query, 32 heads 2048x64",
              of(F.scaled_dot_product_attention, (1, 32, 1, 64), (1, 32, 2048, 64), (1, 32, 2048, 64)), 0.9)  # fmt: skip


def conv():
    def conv2d(c, f, size, hw, n=1, **options):
        padding = options.pop("padding", size // 2)
        return layer(lambda: nn.Conv2d(c, f, size, padding=padding, **options), n, c, hw, hw)

    def flops(c, f, size, out, n=1, groups=1):
        return 2.0 * n * f * out * out * c // groups * size * size

    yield Row("3x3 64 to 64, 56x56", conv2d(64, 64, 3, 56), 0.9, flops(64, 64, 3, 56))
    yield Row("the same, batch 8", conv2d(64, 64, 3, 56, n=8), 0.9, flops(64, 64, 3, 56, 8))
    yield Row("3x3 128 to 128, 28x28", conv2d(128, 128, 3, 28), 0.9, flops(128, 128, 3, 28))
    yield Row("3x3 256 to 256, 14x14", conv2d(256, 256, 3, 14), 0.9, flops(256, 256, 3, 14))
    yield Row("3x3 512 to 512, 7x7", conv2d(512, 512, 3, 7), 0.9, flops(512, 512, 3, 7))
    yield Row("3x3 512 to 512, 7x7, weights that stay", conv2d(512, 512, 3, 7), 0.9, flops(512, 512, 3, 7), frozen=True)
    yield Row("3x3 stride 2 64 to 128, 56x56", conv2d(64, 128, 3, 56, stride=2), 0.9, flops(64, 128, 3, 28))
    yield Row("7x7 stride 2 3 to 64, 224x224", conv2d(3, 64, 7, 224, stride=2), 0.9, flops(3, 64, 7, 112))
    yield Row("1x1 256 to 64, 56x56", conv2d(256, 64, 1, 56), 0.9, flops(256, 64, 1, 56))
    yield Row("1x1 stride 2 256 to 512, 56x56", conv2d(256, 512, 1, 56, stride=2), 0.9, flops(256, 512, 1, 28))
    yield Row("3x3 groups 4 64 to 64, 56x56", conv2d(64, 64, 3, 56, groups=4), 0.9, flops(64, 64, 3, 56, groups=4))
    yield Row("depthwise 3x3 144, 56x56", conv2d(144, 144, 3, 56, groups=144), 0.9)
    yield Row("depthwise 3x3 stride 2 144, 56x56", conv2d(144, 144, 3, 56, groups=144, stride=2), 0.9)
    yield Row("depthwise 5x5 240, 14x14", conv2d(240, 240, 5, 14, groups=240), 0.9)
    yield Row("1-D k5 64 to 64, 1024", layer(lambda: nn.Conv1d(64, 64, 5, padding=2), 4, 64, 1024), 0.9, 2.0 * 4 * 64 * 64 * 5 * 1024)
    yield Row("transposed 4x4 stride 2 64 to 32, 28x28", layer(lambda: nn.ConvTranspose2d(64, 32, 4, 2, 1), 1, 64, 28, 28), 1.0)
    yield Row("max-pool 3x3 stride 2 64, 112x112", layer(lambda: nn.MaxPool2d(3, 2, 1), 1, 64, 112, 112), 0.9)
    yield Row("average-pool 2x2 64, 56x56", layer(lambda: nn.AvgPool2d(2), 8, 64, 56, 56), 0.9)
    yield Row("mean of 7x7, 8x512", of(lambda x: x.mean((2, 3)), (8, 512, 7, 7)), 1.0)
    yield Row("resize bilinear 28 to 56, 64", of(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (1, 64, 28, 28)), 1.0)
    yield Row("resize bicubic 128 to 256, 16", of(lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"), (1, 16, 128, 128)), 1.0)
    grid = lambda: torch.rand(1, 64, 64, 2) * 2 - 1  # noqa: E731
    yield Row("samples of a grid 64x64, 32", of(lambda x, g: F.grid_sample(x, g, align_corners=False), (1, 32, 64, 64), grid), 1.0)
    yield Row("reflected border of 3, 16x128x128", of(lambda x: F.pad(x, (3, 3, 3, 3), mode="reflect"), (1, 16, 128, 128)), 1.0)


def layouts():
    """Tensors that are not row-major, and reductions down columns."""
    last = lambda *s: lambda: torch.randn(*s).to(memory_format=torch.channels_last)  # noqa: E731
    turned = lambda *s: lambda: torch.randn(*s).t()  # noqa: E731

    def images(module, *shape):
        def make():
            torch.manual_seed(0)
            return module().eval().to(memory_format=torch.channels_last), (last(*shape)(),)

        return make

    depthwise = lambda size, c=96: lambda: nn.Conv2d(c, c, size, padding=size // 2, groups=c)  # noqa: E731
    numpy_too = {"onnxruntime": "its inputs are row-major"}

    def row(name, make, goal=1.0, **options):
        return Row(name, make, goal, without=numpy_too, **options)

    yield row("sum of columns of x.t(), 1024x4096", of(lambda x: x.sum(0), turned(4096, 1024)), arrays=lambda np, x: x.sum(0))
    yield row("sum of rows of x.t(), 1024x4096", of(lambda x: x.sum(1), turned(4096, 1024)), arrays=lambda np, x: x.sum(1))
    yield row("gelu of x.t(), 1024x4096", of(F.gelu, turned(4096, 1024)))
    yield row("softmax of x.t(), 1024x4096", of(lambda x: x.softmax(-1), turned(4096, 1024)))
    yield row("8x4096 by w.t(), 4096x4096", of(torch.matmul, (8, 4096), turned(4096, 4096)), arrays=lambda np, a, b: a @ b)
    yield row("512x1024 by w.t(), 1024x1024", of(torch.matmul, (512, 1024), turned(1024, 1024)), 1.0, flops=2.0 * 512 * 1024**2,
              arrays=lambda np, a, b: a @ b)  # fmt: skip
    every_other = lambda: torch.randn(1024, 4096)[:, ::2]  # noqa: E731
    yield row("exp of every other column, 1024x2048", of(torch.exp, every_other), arrays=lambda np, x: np.exp(x))
    yield row("sum of rows of a slice, 1024x2048", of(lambda x: x.sum(1), lambda: torch.randn(1024, 4096)[:, 5:2053]),
              arrays=lambda np, x: x.sum(1))  # fmt: skip
    yield row("softmax down columns 1024x2048", of(lambda x: x.softmax(0), (1024, 2048)))
    yield row("log_softmax down columns 1024x2048", of(lambda x: x.log_softmax(0), (1024, 2048)))
    yield row("normalize down columns 1024x2048", of(lambda x: F.normalize(x, dim=0), (1024, 2048)))
    yield row("layer norm over channels 2x96x56x56", of(networks.norm_of_channels, (2, 96, 56, 56)))
    yield row("softmax 1023x1025", of(lambda x: x.softmax(-1), (1023, 1025)))
    yield row("softmax down columns 1023x1025", of(lambda x: x.softmax(0), (1023, 1025)))
    yield row("channels last: scale and relu 96, 56x56", images(lambda: nn.Sequential(nn.BatchNorm2d(96), nn.ReLU()), 1, 96, 56, 56))
    yield row("channels last: 3x3 64 to 64, 56x56", images(lambda: nn.Conv2d(64, 64, 3, padding=1), 1, 64, 56, 56), 1.0,
              flops=2.0 * 64 * 56 * 56 * 64 * 9)  # fmt: skip
    yield row("channels last: 1x1 64 to 128, 56x56", images(lambda: nn.Conv2d(64, 128, 1), 1, 64, 56, 56), 1.0,
              flops=2.0 * 64 * 56 * 56 * 128)  # fmt: skip
    for size in (3, 7):
        yield row(f"channels last: depthwise {size}x{size} 96, 56x56", images(depthwise(size), 1, 96, 56, 56))
    yield row("channels last: max-pool 3x3 stride 2 64, 112x112", images(lambda: nn.MaxPool2d(3, 2, 1), 1, 64, 112, 112))
    yield row("channels last: average-pool 2x2 64, 112x112", images(lambda: nn.AvgPool2d(2), 1, 64, 112, 112))
    yield row("channels last: mean of 56x56, 96", of(lambda x: x.mean((2, 3)), last(1, 96, 56, 56)))
    yield row("channels last: block of ResNet 64, 56x56", images(lambda: networks.Residual(64, 64, 1), 1, 64, 56, 56))
    yield row("channels last: block of ResNet 256, 14x14", images(lambda: networks.Residual(256, 256, 1), 1, 256, 14, 14))
    yield row("channels last: block of ConvNeXt 96, 56x56", images(lambda: networks.ConvNeXt(96), 1, 96, 56, 56))


def recurrent():
    yield Row("LSTM 32 steps, 8x128 to 128", layer(lambda: networks.First(nn.LSTM(128, 128)), 32, 8, 128), 1.0)
    yield Row("GRU 32 steps, 8x128 to 128", layer(lambda: networks.First(nn.GRU(128, 128)), 32, 8, 128), 1.0)


def order():
    yield Row("sort 64x4096", of(lambda x: x.sort(-1)[0], (64, 4096)), 1.0, arrays=lambda np, x: np.sort(x, -1))
    yield Row("argsort 64x4096", of(lambda x: x.argsort(dim=-1, stable=True), (64, 4096)), 1.0)
    yield Row("top 8 of 64x4096", of(lambda x: x.topk(8)[0], (64, 4096)), 1.0)
    yield Row("top 50 of 1x32000", of(lambda x: x.topk(50)[0], (1, 32000)), 1.0)
    index = lambda n, *s: lambda: torch.randint(0, n, s)  # noqa: E731
    yield Row("rows 4096 of 32000x512", of(lambda t, i: t[i], (32000, 512), index(32000, 4096)), 1.0, arrays=lambda np, t, i: t[i],
              bytes=2.0 * 4096 * 512 * 4)  # fmt: skip
    yield Row("gather 1024x4096", of(lambda x, i: x.gather(1, i), (1024, 4096), index(4096, 1024, 4096)), 1.0)
    yield Row("index_add 4096 rows into 1024x512", of(lambda x, i, y: x.index_add(0, i, y), (1024, 512), index(1024, 4096), (4096, 512)), 1.0)
    yield Row("scatter_add 1M into 64", of(lambda i: torch.zeros(64).scatter_add(0, i, torch.ones(1 << 20)), index(64, 1 << 20)), 0.8)


def blocks():
    for name, block, hidden in networks.decoder_blocks():
        for length in (1, 32, 128):
            yield Row(f"{name}, {length} tokens", layer(block, 1, length, hidden), 0.9)


def models():
    for n in (1, 8):
        yield Row(f"ResNet-18, batch {n}", layer(networks.resnet18, n, 3, 224, 224), 0.8, tolerance=1e-3, frozen=True)
    images = [("MobileNetV2", networks.mobilenet_v2), ("MobileNetV3-large", networks.mobilenet_v3_large), ("ConvNeXt-tiny", networks.convnext_tiny)]
    for name, model in images:
        yield Row(name, layer(model, 1, 3, 224, 224), 0.8, tolerance=1e-3, frozen=True)
    yield Row("MobileNetV2, weights that may change", layer(networks.mobilenet_v2, 1, 3, 224, 224), 0.8, tolerance=1e-3)
    yield Row("UNet, 128x128", layer(networks.UNet, 1, 3, 128, 128), 0.8, tolerance=1e-3, frozen=True)
    from girih.bench import quantised

    yield quantised.recurrent()
    yield Row("perceptron 784-512-10, batch 64", layer(networks.perceptron, 64, 784), 0.9, frozen=True)
    for name, model in [("ResNet-18", networks.resnet18), ("MobileNetV3-large", networks.mobilenet_v3_large)]:
        yield Row(f"{name}, training step, batch 8", trained(model, 8, 3, 224, 224), 1.0, tolerance=2e-2,
                  without={"onnxruntime": "it does not train"})  # fmt: skip


def launch():
    yield Row("a + b of 16 elements", of(torch.add, (16,), (16,)), 1.0)
    yield Row("linear 1x16 to 16, relu", layer(lambda: nn.Sequential(nn.Linear(16, 16), nn.ReLU()), 1, 16), 1.0)


def jit():
    """Kernels in Python, in the blocks that a user chose."""
    square = (4096, 4096)
    yield Row("histogram of 1M into 64", of(lambda x: torch.bincount(x, minlength=64).int(), lambda: torch.randint(0, 64, (1 << 20,), dtype=torch.int32)),
              0.8, arrays=lambda np, x: np.bincount(x, minlength=64), kernel=kernels.run_histogram)  # fmt: skip
    yield Row("saxpy 4096x4096", of(lambda x, y: torch.add(y, x, alpha=2.0), square, square), 1.0, arrays=lambda np, x, y: 2 * x + y,
              kernel=kernels.run_saxpy)  # fmt: skip
    yield Row("softmax 4096x1024", of(lambda x: x.softmax(-1), (4096, 1024)), 0.8, kernel=kernels.run_softmax)
    for m, n, k in [(1024, 1024, 1024), (512, 3584, 3584)]:
        yield Row(f"{m}x{k} by {k}x{n} in blocks of 128x128", of(torch.matmul, (m, k), (k, n)), 1.0, 2.0 * m * n * k,
                  arrays=lambda np, a, b: a @ b, kernel=kernels.run_product)  # fmt: skip


SUITES = {
    f.__name__: f
    for f in (elementwise, reductions, matmul, lowprec, attention, conv, recurrent, order, blocks, models, launch, jit, layouts)
}
#: Suites whose rows a module of their own has.
MODULES = {
    "decoder": "girih.bench.decoder",
    "gpu": "girih.bench.gpu",
    "llm": "girih.bench.llm",
    "quantised": "girih.bench.quantised",
    "triton": "girih.bench.triton_cpu",
}
#: The suite of first calls; each call is a process of its own.
FIRST = "compile"
#: The suite of models on the first GPU.
GPU = "gpu"
#: The suite of Triton's kernels on the processor.
TRITON = "triton"


def rows(suite, device):
    """The rows of a suite, on a device."""
    made = module(suite).rows() if suite in MODULES else SUITES[suite]()
    return (replace(row, device=device) if device else row for row in made)


def module(suite):
    try:
        return importlib.import_module(MODULES[suite])
    except ImportError as e:
        raise SystemExit(f"error: the suite `{suite}` needs `{e.name}`, which is not installed: `pip install {e.name}`") from e


def usual(suite):
    """Who takes part in a suite without being asked."""
    from girih.bench import contestants

    return module(suite).USUAL if suite == TRITON else contestants.USUAL
