"""Operations on images, and gradients."""

import torch

from .operands import r, u

A = torch.ops.aten


def spatial(add):
    x = r(2, 4, 9, 8)
    add("conv1d", r(2, 4, 9), r(6, 4, 3), r(6), ulps=64)
    add("conv2d", x, r(6, 4, 3, 3), r(6), [2, 1], [1, 2], ulps=64)
    add("conv2d", x, r(6, 2, 3, 3), None, [1], [1], [2], 2, ulps=64)
    add("conv2d", x, r(4, 1, 3, 3), None, [1], [1], [1], 4, ulps=64)
    add("conv2d.padding", x, r(6, 4, 3, 2), None, [1], "same", ulps=64)
    add("conv2d", r(4, 9, 8), r(6, 4, 3, 3), ulps=64)
    add("conv3d", r(1, 2, 4, 5, 6), r(3, 2, 2, 3, 3), r(3), ulps=64)
    add("convolution", x, r(6, 4, 3, 3), r(6), [1, 1], [1, 1], [1, 1], False, [0, 0], 1, ulps=64)
    add("convolution", x, r(4, 3, 3, 3), r(6), [2, 2], [1, 1], [1, 1], True, [1, 1], 2, ulps=64)
    add("_convolution", x, r(6, 4, 3, 3), r(6), [1, 1], [1, 1], [1, 1], False, [0, 0], 1, False, False, False, False, ulps=64)
    add("conv_transpose1d", r(2, 4, 9), r(4, 6, 3), r(6), ulps=64)
    add("conv_transpose2d.input", x, r(4, 6, 3, 3), r(6), [2], [1], [1], 1, [1], ulps=64)
    add("conv_transpose3d.input", r(1, 2, 3, 4, 3), r(2, 3, 2, 2, 2), None, [2], ulps=64)
    y = x[:, :, :, 0].contiguous()
    add("max_pool1d", y, [3], [2], [1])
    add("max_pool2d", x, [3, 2], [2], [1], [1], True)
    add("max_pool3d", r(1, 2, 4, 5, 6), [2], [1])
    add("max_pool2d_with_indices", x, [3], [2], [1], [2])
    add("max_pool3d_with_indices", r(1, 2, 4, 5, 6), [2], [2])
    add("avg_pool1d", y, [3], [2], [1], ulps=32)
    add("avg_pool2d", x, [3], [2], [1], ulps=32)
    add("avg_pool2d", x, [3], [2], [1], True, False, ulps=32)
    add("avg_pool2d", x, [3], [2], [1], False, True, 5, ulps=32)
    add("avg_pool3d", r(1, 2, 4, 5, 6), [2], ulps=32)
    for size in (1, 3, 4):
        add("adaptive_avg_pool1d", y, [size], ulps=32)
        add("adaptive_avg_pool2d", x, [size, 4], ulps=32)
        add("_adaptive_avg_pool2d", x, [size, 5], ulps=32)
        add("adaptive_max_pool1d", y, [size])
        add("adaptive_max_pool2d", x, [size, 5])
    add("adaptive_avg_pool3d", r(1, 2, 4, 5, 6), [2, 3, 3], ulps=32)
    add("_adaptive_avg_pool3d", r(1, 2, 4, 5, 6), [2, 3, 3], ulps=32)
    add("adaptive_max_pool3d", r(1, 2, 4, 5, 6), [2, 3, 3])
    for exact in ("upsample_nearest", "_upsample_nearest_exact"):
        add(f"{exact}1d", y, [18])
        add(f"{exact}1d", y, [5])
        add(f"{exact}2d", x, [18, 12])
        add(f"{exact}2d.vec", x, None, [2.0, 2.0])
        add(f"{exact}3d", r(1, 1, 2, 3, 4), [4, 6, 4])
    for align in (False, True):
        add("upsample_linear1d", y, [14], align, ulps=64)
        add("upsample_bilinear2d", x, [18, 5], align, ulps=64)
        add("upsample_bilinear2d.vec", x, None, align, [2.0, 1.5], ulps=64)
        add("upsample_trilinear3d", r(1, 1, 2, 3, 4), [4, 5, 3], align, ulps=64)
        add("upsample_bicubic2d", x, [13, 5], align, ulps=64)
    add("_upsample_bilinear2d_aa", x, [5, 4], False, ulps=64)
    add("_upsample_bicubic2d_aa", x, [5, 4], False, ulps=64)
    for grid, image, name in ((u(2, 5, 6, 2, low=-1.5, high=1.5), x, "grid_sampler_2d"),
                              (u(1, 2, 3, 4, 3, low=-1.5, high=1.5), r(1, 2, 3, 4, 5), "grid_sampler_3d")):  # fmt: skip
        for mode in (0, 1, 2)[: 3 if name.endswith("2d") else 2]:
            for padding in (0, 1, 2):
                for align in (False, True):
                    add(name, image, grid, mode, padding, align, ulps=64)
    add("constant_pad_nd", x, [1, 2, -1, 3], 0.5)
    for mode in ("constant", "reflect", "replicate", "circular"):
        add("pad", x, [1, 2, 3, 0], mode)
    add("_pad_circular", x, [1, 2, 3, 0])
    for name, pads, z in (
        ("1d", [2, 3], y), ("2d", [1, 2, 3, 0], x), ("3d", [1, 0, 2, 1, 1, 1], r(1, 2, 3, 4, 5)),
    ):  # fmt: skip
        add(f"reflection_pad{name}", z, pads)
        add(f"replication_pad{name}", z, pads)


def backward(add):
    """Gradients that are operations of their own; those of all else are PyTorch's pieces."""
    x, w, c = r(2, 4, 9, 8), r(6, 2, 3, 3), [6]
    y = A.convolution(x, w, None, [2, 1], [1, 2], [1, 1], False, [0, 0], 2)
    add("convolution_backward", r(*y.shape), x, w, c, [2, 1], [1, 2], [1, 1], False, [0, 0], 2, [True] * 3, ulps=64)
    w = r(4, 3, 3, 3)
    y = A.convolution(x, w, None, [2, 2], [1, 1], [1, 1], True, [1, 1], 2)
    add("convolution_backward", r(*y.shape), x, w, c, [2, 2], [1, 1], [1, 1], True, [1, 1], 2, [True] * 3, ulps=64)
    for n, z in ((2, x), (3, r(1, 2, 4, 5, 6))):
        window = [3, 2, 2][:n], [2, 2, 1][:n], [1] * n, [1] * n
        y, at = getattr(A, f"max_pool{n}d_with_indices")(z, *window)
        add(f"max_pool{n}d_with_indices_backward", r(*y.shape), z, *window, False, at, ulps=32)
        for ceil, counted, divisor in ((False, True, None), (True, False, None), (False, True, 5)):
            y = getattr(A, f"avg_pool{n}d")(z, *window[:3], ceil, counted, divisor)
            add(f"avg_pool{n}d_backward", r(*y.shape), z, *window[:3], ceil, counted, divisor, ulps=32)
    q, k, v, g = (r(2, 3, n, 8) for n in (5, 7, 7, 5))
    sdpa = A._scaled_dot_product_flash_attention_for_cpu
    for causal, mask in ((False, None), (True, None), (False, r(2, 3, 5, 7))):
        y, lse = sdpa(q, k, v, 0.0, causal, attn_mask=mask)
        add("_scaled_dot_product_flash_attention_for_cpu_backward", g, q, k, v, y, lse, 0.0, causal, attn_mask=mask, ulps=64)
    x, m, s = r(4, 6, 5), r(6), u(6, low=0.5, high=2)
    for training in (True, False):
        add("_native_batch_norm_legit_functional", x, r(6), r(6), m, s, training, 0.1, 1e-5, ulps=32)
    add("_batch_norm_with_update_functional", x, r(6), r(6), m, s, 0.1, 1e-5, ulps=32)
