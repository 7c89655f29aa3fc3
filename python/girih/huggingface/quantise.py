"""Weights of 8 or 4 bits in place of floats: smaller, and read faster.

In: a model, and how many bits. Out: the same model, whose linear layers are `FewBits`.

Rows of a weight are cut into blocks of 32. A block has a scale, and each weight a code `c` of `bits` bits that stands for
`(c - 2**(bits-1)) * scale`. The weight farthest from 0 has the code 0, so the scale is `most / 2**(bits-1)`, where `most` is the largest
magnitude in the block. No weight is off by more than the scale, but for the rounding to its own element type. (ggml's format Q4_0 chooses
scales like this.)

Embeddings, norms, biases, and experts in one tensor stay as they are, and so does a layer whose rows are not a whole number of blocks.
"""

from __future__ import annotations

import torch
from torch import nn

from .folder import FolderError
from .load import QUANTISED

__all__ = ["BITS", "FewBits", "quantise"]

#: Bits of a weight by the names that the command line takes.
BITS = dict(zip(QUANTISED, (8, 4)))
#: Weights that have a scale in common.
BLOCK = 32
#: Weights that are quantised at a time: their floats take 64 MiB.
PART = 1 << 24


class FewBits(nn.Module):
    """A linear layer of quantised weights.

    Attributes:
        codes: u8[n, k/32, 32*bits/8]; the lower bits of a byte belong to the earlier weight.
        scales: [n, k/32] in the element type of the weights.
        bias: [n] or None.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None, bits: int):
        """`weight` is [n, k], and k a multiple of 32."""
        super().__init__()
        self.bits, self.bias = bits, bias
        rows, columns = weight.shape
        self.codes = nn.Buffer(torch.empty(rows, columns // BLOCK, BLOCK * bits // 8, dtype=torch.uint8))
        self.scales = nn.Buffer(torch.empty(rows, columns // BLOCK, dtype=weight.dtype))
        step = max(PART // columns, 1)
        for first in range(0, rows, step):
            part = slice(first, first + step)
            self.codes[part], self.scales[part] = quantised(weight[part], bits)

    def weight(self) -> torch.Tensor:
        """The weights that the codes stand for, [n, k]."""
        parts = [(self.codes >> at) & (2**self.bits - 1) for at in range(0, 8, self.bits)]
        codes = torch.stack(parts, -1).flatten(-2)
        return ((codes.to(self.scales.dtype) - 2 ** (self.bits - 1)) * self.scales.unsqueeze(-1)).flatten(1)

    def forward(self, x):
        return nn.functional.linear(x, self.weight(), self.bias)


def quantised(weight: torch.Tensor, bits: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The codes and the scales of a weight."""
    half = 2 ** (bits - 1)
    blocks = weight.float().unflatten(1, (-1, BLOCK))
    least, most = blocks.aminmax(dim=-1, keepdim=True)
    farthest = torch.where(-least > most, least, most)
    scales = (farthest / -half + 0.0).to(weight.dtype)
    # A scale of 0 stands for zeros, whatever their codes are.
    steps = torch.where(scales == 0, 1, scales.float())
    codes = (blocks / steps).round_().add_(half).clamp_(0, 2 * half - 1).to(torch.uint8)
    packed = codes[..., :: 8 // bits].clone()
    for at in range(1, 8 // bits):
        packed |= codes[..., at :: 8 // bits] << (at * bits)
    return packed, scales.squeeze(-1)


def quantise(model: nn.Module, kind: str) -> nn.Module:
    """Quantises a model's linear layers in place; `FolderError` where it has none. `kind` is "int8" or "int4"."""
    from transformers.pytorch_utils import Conv1D

    weights = {nn.Linear: lambda module: module.weight, Conv1D: lambda module: module.weight.t()}
    found = [(name, module) for name, module in model.named_modules() if type(module) in weights]
    found = [(name, module, weights[type(module)](module).detach()) for name, module in found]
    found = [(name, module, weight) for name, module, weight in found if weight.shape[1] % BLOCK == 0]
    if not found:
        raise FolderError(f"{type(model).__name__} has no linear layer whose rows are blocks of {BLOCK} weights, so --quantize does nothing")
    for name, module, weight in found:
        if not weight.isfinite().all():
            raise FolderError(f"the weight of {name} has elements that are not finite, which codes cannot stand for")
        model.set_submodule(name, FewBits(weight, module.bias, BITS[kind]))
    return model
