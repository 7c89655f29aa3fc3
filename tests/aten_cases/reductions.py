"""Reductions, norms and losses."""

import math

import torch

from .operands import BF16, F32, F64, I32, I64, ODD, flags, ints, r, u


def reductions(add):
    x = r(3, 4, 5)
    for name in ("cummax", "cummin"):
        add(name, x, 1)
        add(name, ints(3, 9), -1)
        add(name, torch.cat([ODD, ODD]), 0)
        add(name, flags(7), 0)
        add(name, torch.tensor(1.5), 0)
    data = torch.cat([r(50), torch.tensor([math.nan, 9.0, -9.0])])
    for p in (0.0, 1.0, 2.0, 3.0, math.inf):
        add("_cdist_forward", r(2, 3, 4), r(5, 4), p, None, ulps=64)
        add("dist", r(3, 4), r(4), p, ulps=64)
    add("nanmedian", data)
    add("nanmedian.dim", torch.stack([data, data.flip(0), r(53)]), 1)
    add("nanmedian", torch.full([3], math.nan))
    add("nanmedian.dim", torch.stack([data, r(53)], 1), 0, True)
    add("nanmedian", ints(6))
    add("histc", data, 7, -2, 2)
    add("histc", data[:50], 5)
    add("histc", torch.ones(4), 4)
    for name in ("sum", "mean"):
        add(name, x, ulps=32)
        add(f"{name}.{'dim_IntList' if name == 'sum' else 'dim'}", x, [1], ulps=32)
        add(f"{name}.{'dim_IntList' if name == 'sum' else 'dim'}", x, [0, -1], True, ulps=32)
        add(f"{name}.{'dim_IntList' if name == 'sum' else 'dim'}", r(3, 70, dtype=BF16), [1], ulps=4)
    add("sum", ints(3, 4))
    add("sum", flags(3, 4))
    add("sum.dim_IntList", ints(3, 4, dtype=I32), [0], dtype=I32)
    add("prod", x, ulps=64)
    add("prod.dim_int", x, 1, ulps=64)
    add("nansum", ODD[10:])
    add("nanmean", ODD[10:])
    add("count_nonzero", ints(3, 4, low=0, high=2))
    add("count_nonzero.dim_IntList", ints(3, 4, low=0, high=2), [1])
    for name in ("var", "std", "var_mean", "std_mean"):
        add(f"{name}.correction", x, [1], correction=1, ulps=32)
        add(f"{name}.correction", x, None, correction=0, keepdim=True, ulps=32)
        add(f"{name}.dim", x, [0, 2], False, ulps=32)
    for name in ("amax", "amin"):
        add(name, x, [1])
        add(name, x, [])
        add(name, ints(3, 4), [0], True)
        add(name, ODD.reshape(2, 7), [1])
    for name in ("max", "min"):
        add(name, x)
        add(f"{name}.dim", x, 1)
        add(f"{name}.dim", x, 2, True)
        add(f"{name}.other", x, r(5))
    add("aminmax", x, dim=1)
    for name in ("argmax", "argmin"):
        add(name, x)
        add(name, x, 1)
        add(name, x, 2, True)
    for name in ("any", "all"):
        add(name, flags(3, 4))
        add(f"{name}.dim", flags(3, 4), 1)
        add(f"{name}.dim", r(3, 4), 0, True)
        add(f"{name}.dims", flags(3, 4, 5), [0, 2])
    for p in (0, 1, 2, 3, math.inf, -math.inf):
        add("linalg_vector_norm", x, p, [1], ulps=64)
    add("norm.Scalar", x, 2, ulps=32)
    add("norm.ScalarOpt_dim", x, 3, [0], ulps=64)
    add("frobenius_norm.dim", x, [1], ulps=32)
    add("logsumexp", x * 20, [1])
    add("logsumexp", torch.tensor([[-math.inf, -math.inf], [math.inf, 1.0]]), [1])
    for dim in (0, 1, -1):
        add("logcumsumexp", r(5, 37) * 20, dim)
    add("logcumsumexp", torch.tensor([-math.inf, 1.0, -math.inf, math.inf, 2.0, math.nan, 1.0]), 0)
    add("logcumsumexp", r(9, dtype=F64), 0)
    add("logcumsumexp", r(9, dtype=BF16), 0, ulps=16)
    add("logcumsumexp", torch.tensor(2.5), 0)
    add("mode", ints(4, 9, low=0, high=3))
    add("mode", ints(9, 4, low=0, high=3), 0)
    add("mode", ints(4, 9, low=0, high=3, dtype=I32).to(F32), 1, True)
    add("mode", torch.tensor(3))
    for name in ("cumsum", "cumprod"):
        add(name, x, 1, ulps=64)
        add(name, ints(3, 4, low=1, high=4), 0)
        add(name, flags(5), 0)
    for dtype in (F32, I64):
        y = torch.randperm(24).reshape(4, 6).to(dtype)
        for descending in (False, True):
            add("sort", y, 1, descending)
            add("sort.stable", ints(4, 9, low=0, high=3), stable=True, dim=0, descending=descending)
            add("argsort", y, 0, descending)
        add("topk", y, 3)
        add("topk", y, 2, 0, False)
        add("msort", y)
        add("kthvalue", y, 2)
        add("median", y)
        add("median.dim", y, 1, True)


def norms(add):
    x = r(2, 6, 5)
    for dtype in (F32, BF16):
        ulps = 32 if dtype == F32 else 3
        y = x.to(dtype)
        add("layer_norm", y, [5], r(5, dtype=dtype), r(5, dtype=dtype), ulps=ulps)
        add("layer_norm", y, [6, 5], ulps=ulps)
        add("rms_norm", y, [5], r(5, dtype=dtype), ulps=ulps)
    add("rms_norm", x, [6, 5], None, 1e-3, ulps=32)
    add("native_layer_norm", x, [5], r(5), None, 1e-5, ulps=32)
    add("group_norm", x, 3, r(6), r(6), ulps=32)
    add("native_group_norm", r(2, 6, 4), r(6), r(6), 2, 6, 4, 3, 1e-5, ulps=32)
    add("instance_norm", r(2, 3, 4, 4), r(3), r(3), None, None, True, 0.1, 1e-5, False, ulps=32)
    m, v = r(6), u(6, low=0.5, high=2)
    add("batch_norm", x, r(6), r(6), m, v, False, 0.1, 1e-5, False, ulps=32)
    add("batch_norm", x, None, None, m, v, False, 0.1, 1e-5, False, ulps=32)
    add("native_batch_norm", x, r(6), r(6), m, v, False, 0.1, 1e-5, ulps=32)
    add("_native_batch_norm_legit_no_training", x, r(6), r(6), m, v, 0.1, 1e-5, ulps=32)
    add("_native_batch_norm_legit.no_stats", x, r(6), r(6), True, 0.1, 1e-5, ulps=32)
    add("_batch_norm_no_update", x, r(6), r(6), m, v, 0.1, 1e-5, ulps=32)
    add("cosine_similarity", r(3, 4), r(3, 4), ulps=32)
    add("pairwise_distance", r(3, 4), r(3, 4), ulps=32)


def losses(add):
    x, t = r(5, 7), ints(5, low=0, high=7)
    t2 = t.clone()
    t2[1] = -100
    for reduction in (0, 1, 2):
        add("cross_entropy_loss", x, t2, None, reduction, ulps=32)
        add("cross_entropy_loss", x, t, u(7), reduction, -100, 0.1, ulps=32)
        add("cross_entropy_loss", x, torch.softmax(r(5, 7), 1), None, reduction, ulps=32)
        add("nll_loss_nd", torch.log_softmax(x, 1), t2, None, reduction, ulps=32)
        add("nll_loss", torch.log_softmax(x, 1), t2, u(7), reduction, ulps=32)
        add("nll_loss2d", r(2, 3, 4, 5), ints(2, 4, 5, low=0, high=3), None, reduction, ulps=32)
        for name in ("mse_loss", "l1_loss", "soft_margin_loss"):
            add(name, r(4, 5), r(4, 5), reduction, ulps=32)
        add("smooth_l1_loss", r(4, 5), r(4, 5), reduction, 0.5, ulps=32)
        add("huber_loss", r(4, 5), r(4, 5), reduction, 0.7, ulps=32)
        add("binary_cross_entropy", u(4, 5), u(4, 5), None, reduction, ulps=32)
        add("binary_cross_entropy_with_logits", r(4, 5), u(4, 5), None, u(5), reduction, ulps=32)
        add("kl_div", r(4, 5), u(4, 5), reduction, ulps=32)
    add("cross_entropy_loss", r(2, 3, 4), ints(2, 4, low=0, high=3), ulps=32)
    add("cross_entropy_loss", r(7), torch.tensor(3), ulps=32)
    add("nll_loss_forward", x, t2, None, 1, -100, ulps=32)
    add("nll_loss_forward", x, t, u(7), 2, -100, ulps=32)
    add("nll_loss2d_forward", r(2, 3, 4, 5), ints(2, 4, 5, low=0, high=3), None, 1, -100, ulps=32)
    add("kl_div", r(4, 5), r(4, 5), 1, log_target=True, ulps=32)
