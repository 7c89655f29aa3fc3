"""Networks that people run, with random weights."""

from __future__ import annotations

import torch
from torch import nn


class First(nn.Module):
    """The first result of a module that has several."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)[0]


def convolution(c, f, size, stride=1, groups=1, activation=nn.ReLU):
    parts = [nn.Conv2d(c, f, size, stride, size // 2, groups=groups, bias=False), nn.BatchNorm2d(f)]
    return nn.Sequential(*parts, *([activation()] if activation else []))


class Residual(nn.Module):
    """A basic block of ResNet (He et al., 2015)."""

    def __init__(self, c, f, stride):
        super().__init__()
        self.body = nn.Sequential(convolution(c, f, 3, stride), convolution(f, f, 3, activation=None))
        same = c == f and stride == 1
        self.short = nn.Identity() if same else convolution(c, f, 1, stride, activation=None)

    def forward(self, x):
        return torch.relu(self.body(x) + self.short(x))


def resnet18():
    parts, c = [convolution(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for f, stride in [(64, 1), (128, 2), (256, 2), (512, 2)]:
        parts += [Residual(c, f, stride), Residual(f, f, 1)]
        c = f
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


class ConvNeXt(nn.Module):
    """A block of ConvNeXt (Liu et al., 2022)."""

    def __init__(self, c):
        super().__init__()
        self.depthwise, self.norm = nn.Conv2d(c, c, 7, padding=3, groups=c), nn.LayerNorm(c)
        self.wide, self.narrow = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)
        self.scale = nn.Parameter(torch.ones(c))

    def forward(self, x):
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.scale * self.narrow(nn.functional.gelu(self.wide(y)))
        return x + y.permute(0, 3, 1, 2)


class Turned(nn.Module):
    """A layer norm over the channels of images, between the stages of ConvNeXt."""

    def __init__(self, c):
        super().__init__()
        self.norm = nn.LayerNorm(c)

    def forward(self, x):
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def convnext_tiny():
    parts, c = [nn.Conv2d(3, 96, 4, 4), Turned(96)], 96
    for f, depth in [(96, 3), (192, 3), (384, 9), (768, 3)]:
        parts += [Turned(c), nn.Conv2d(c, f, 2, 2)] if f != c else []
        parts += [ConvNeXt(f) for _ in range(depth)]
        c = f
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(c), nn.Linear(c, 1000))


class UNet(nn.Module):
    """Images that are made smaller and large again, with what was seen at each size on the way (Ronneberger et al., 2015)."""

    def __init__(self, c=32, levels=4):
        super().__init__()
        twice = lambda c, f: nn.Sequential(convolution(c, f, 3), convolution(f, f, 3))  # noqa: E731
        widths = [c << level for level in range(levels)]
        self.down = nn.ModuleList(twice(i, o) for i, o in zip([3, *widths], widths))
        self.inner = twice(widths[-1], 2 * widths[-1])
        self.larger = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in reversed(widths))
        self.up = nn.ModuleList(twice(2 * w, w) for w in reversed(widths))
        self.last = nn.Conv2d(c, 2, 1)

    def forward(self, x):
        seen = []
        for part in self.down:
            seen.append(part(x))
            x = nn.functional.max_pool2d(seen[-1], 2)
        x = self.inner(x)
        for larger, part in zip(self.larger, self.up):
            x = part(torch.cat([seen.pop(), larger(x)], 1))
        return self.last(x)


def norm_of_channels(x):
    """A layer norm over the channels of images that have them first."""
    mean = x.mean(1, keepdim=True)
    variance = (x - mean).pow(2).mean(1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + 1e-6)


class Squeeze(nn.Module):
    """Channels scaled by a function of their means (squeeze and excitation)."""

    def __init__(self, c):
        super().__init__()
        inner = max(8, (c // 4 + 4) // 8 * 8)
        parts = [nn.Conv2d(c, inner, 1), nn.ReLU(), nn.Conv2d(inner, c, 1), nn.Hardsigmoid()]
        self.scale = nn.Sequential(nn.AdaptiveAvgPool2d(1), *parts)

    def forward(self, x):
        return x * self.scale(x)


class Inverted(nn.Module):
    """An inverted residual of MobileNetV3 (Howard et al., 2019)."""

    def __init__(self, c, size, inner, f, squeeze, activation, stride):
        super().__init__()
        parts = [convolution(c, inner, 1, activation=activation)] if inner != c else []
        parts.append(convolution(inner, inner, size, stride, inner, activation))
        parts += [Squeeze(inner)] if squeeze else []
        self.body = nn.Sequential(*parts, convolution(inner, f, 1, activation=None))
        self.same = c == f and stride == 1

    def forward(self, x):
        return x + self.body(x) if self.same else self.body(x)


def mobilenet_v2():
    """Inverted residuals without squeezes (Sandler et al., 2018)."""
    relu = nn.ReLU6
    parts, c = [convolution(3, 32, 3, 2, activation=relu)], 32
    for wider, f, times, stride in [
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    ]:  # fmt: skip
        for at in range(times):
            parts.append(Inverted(c, 3, wider * c, f, False, relu, stride if at == 0 else 1))
            c = f
    parts += [convolution(c, 1280, 1, activation=relu), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*parts, nn.Linear(1280, 1000))


def mobilenet_v3_large():
    relu, swish = nn.ReLU, nn.Hardswish
    rows = [
        (3, 16, 16, False, relu, 1), (3, 64, 24, False, relu, 2), (3, 72, 24, False, relu, 1),
        (5, 72, 40, True, relu, 2), (5, 120, 40, True, relu, 1), (5, 120, 40, True, relu, 1),
        (3, 240, 80, False, swish, 2), (3, 200, 80, False, swish, 1), (3, 184, 80, False, swish, 1),
        (3, 184, 80, False, swish, 1), (3, 480, 112, True, swish, 1), (3, 672, 112, True, swish, 1),
        (5, 672, 160, True, swish, 2), (5, 960, 160, True, swish, 1), (5, 960, 160, True, swish, 1),
    ]  # fmt: skip
    parts, c = [convolution(3, 16, 3, 2, activation=swish)], 16
    for size, inner, f, squeeze, activation, stride in rows:
        parts.append(Inverted(c, size, inner, f, squeeze, activation, stride))
        c = f
    parts += [convolution(c, 960, 1, activation=swish), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*parts, nn.Linear(960, 1280), swish(), nn.Linear(1280, 1000))


def perceptron():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10))


class Step(nn.Module):
    """A step of training: the mean of the squares of a model's output, and its gradient by all parameters, end to end: that by
    one of them may be nothing but rounding, as that by a bias before a batch norm is."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *inputs):
        with torch.enable_grad():
            loss = self.model(*inputs).square().mean()
            gradients = torch.autograd.grad(loss, [*self.model.parameters()])
        return loss, torch.cat([g.flatten() for g in gradients])


class Block(nn.Module):
    """A decoder block of Llama: RMSNorm, rotary embedding, grouped heads, causal, a gated perceptron."""

    def __init__(self, hidden, inner, heads, groups, bias=False):
        super().__init__()
        self.heads, self.groups, self.width = heads, groups, hidden // heads
        self.before, self.after = nn.RMSNorm(hidden, eps=1e-5), nn.RMSNorm(hidden, eps=1e-5)
        self.q = nn.Linear(hidden, hidden, bias=bias)
        self.k = nn.Linear(hidden, groups * self.width, bias=bias)
        self.v = nn.Linear(hidden, groups * self.width, bias=bias)
        self.o = nn.Linear(hidden, hidden, bias=False)
        self.gate, self.up = nn.Linear(hidden, inner, bias=False), nn.Linear(hidden, inner, bias=False)
        self.down = nn.Linear(inner, hidden, bias=False)

    def turned(self, x):
        at = torch.arange(x.shape[2], dtype=torch.float32, device=x.device)[:, None]
        rates = 10000.0 ** (-torch.arange(0, self.width, 2, dtype=torch.float32, device=x.device) / self.width)
        angles = torch.cat([at * rates] * 2, -1)
        one, other = x.chunk(2, -1)
        return x * angles.cos().to(x.dtype) + torch.cat([-other, one], -1) * angles.sin().to(x.dtype)

    def forward(self, x):
        n, length, hidden = x.shape
        normed = self.before(x)
        split = lambda y, heads: y.view(n, length, heads, self.width).transpose(1, 2)  # noqa: E731
        q, k = self.turned(split(self.q(normed), self.heads)), self.turned(split(self.k(normed), self.groups))
        v = split(self.v(normed), self.groups)
        k, v = (t.repeat_interleave(self.heads // self.groups, 1) for t in (k, v))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(mixed.transpose(1, 2).reshape(n, length, hidden))
        normed = self.after(x)
        return x + self.down(nn.functional.silu(self.gate(normed)) * self.up(normed))


def decoder_blocks():
    """Names, the function that makes a block, and the width of its rows."""
    yield "TinyLlama block", lambda: Block(2048, 5632, 32, 4), 2048
    yield "Qwen2.5-7B block", lambda: Block(3584, 18944, 28, 4, bias=True), 3584
