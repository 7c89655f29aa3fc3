"""Operands of cases: tensors of random numbers, and numbers that are easily forgotten."""

import math

import torch

F32, F16, BF16, F64, I64, I32, U8, BOOL = (
    torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool,
)  # fmt: skip


def r(*shape, dtype=F32):
    return torch.randn(*shape, dtype=F64).to(dtype)


def u(*shape, low=0.0, high=1.0, dtype=F32):
    return (torch.rand(*shape, dtype=F64) * (high - low) + low).to(dtype)


def ints(*shape, low=-9, high=10, dtype=I64):
    return torch.randint(low, high, shape, dtype=dtype)


def flags(*shape):
    return torch.rand(shape) > 0.5


ODD = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.5, 1.5, math.inf, -math.inf, math.nan, 1e-3, -7.25, 100.0])
