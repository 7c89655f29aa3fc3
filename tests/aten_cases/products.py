"""Products, factorisations and attention."""

import math

import torch

from .operands import BF16, BOOL, F32, F64, flags, ints, r


def linalg(add):
    def rows(*shape, dtype=F32):
        return r(*shape, dtype=dtype)

    def positive(*shape, dtype=F32):
        a = r(*shape, dtype=F64)
        return (a @ a.mT + torch.eye(shape[-1], dtype=F64)).to(dtype)

    singular = torch.tensor([[1.0, 2.0, 4.0], [2.0, 4.0, 8.0], [0.0, 1.0, 2.0]])
    for dtype in (F32, F64):
        for shape in ((1, 1), (5, 5), (2, 3, 4, 4), (0, 3, 3), (0, 0), (2, 0, 0)):
            a = rows(*shape, dtype=dtype)
            add("_linalg_det", a, ulps=256)
            add("_linalg_slogdet", a, ulps=256)
            add("linalg_inv_ex", a, ulps=1024)
            add("linalg_cholesky_ex", positive(*shape, dtype=dtype), ulps=64)
            add("linalg_cholesky_ex", positive(*shape, dtype=dtype), upper=True, ulps=64)
            b = rows(*shape[:-1], 3, dtype=dtype)
            for left in (True, False):
                x = b if left else b.mT.contiguous()
                add("_linalg_solve_ex", a, x, left=left, ulps=1024)
                for upper in (True, False):
                    # Far from singular: a triangle of random numbers is not.
                    t = a + 4 * torch.eye(shape[-1], dtype=dtype)
                    for unit in (True, False):
                        add("linalg_solve_triangular", t, x, upper=upper, left=left, unitriangular=unit, ulps=1024)
                factors, pivots = torch.linalg.lu_factor(a)
                for adjoint in (True, False):
                    add("linalg_lu_solve", factors, pivots, x, left=left, adjoint=adjoint, ulps=1024)
        for shape in ((4, 4), (3, 6), (2, 6, 3)):
            a = rows(*shape, dtype=dtype)
            add("linalg_lu_factor_ex", a, ulps=64)
            add("linalg_lu", a, ulps=64)
            add("lu_unpack", *torch.linalg.lu_factor(a))
            add("lu_unpack", *torch.linalg.lu_factor(a), unpack_data=False)
            add("lu_unpack", *torch.linalg.lu_factor(a), unpack_pivots=False)
        a = rows(2, 4, 4, dtype=dtype) + 4 * torch.eye(4, dtype=dtype)
        for upper in (True, False):
            for transpose in (True, False):
                add("triangular_solve", rows(2, 4, 2, dtype=dtype), a, upper, transpose, ulps=1024)
            l = torch.linalg.cholesky(positive(4, 4, dtype=dtype), upper=upper)
            add("cholesky_solve", rows(3, 4, 2, dtype=dtype), l, upper, ulps=1024)
            add("cholesky_inverse", l, upper, ulps=1024)
    add("_linalg_solve_ex", rows(4, 4), rows(4), ulps=1024)
    add("_linalg_solve_ex", rows(2, 4, 4), rows(2, 4), ulps=1024)
    add("_linalg_solve_ex", rows(2, 1, 4, 4), rows(3, 4, 2), ulps=1024)
    add("_linalg_det", singular)
    add("linalg_lu_factor_ex", singular)
    add("linalg_cholesky_ex", torch.eye(3) - torch.diag(torch.tensor([0.0, 2.0, 0.0])), unchecked=True)


def products(add):
    for dtype in (F32, F64, BF16):
        ulps = 32 if dtype != BF16 else 4
        a, b = r(3, 8, dtype=dtype), r(8, 5, dtype=dtype)
        add("mm", a, b, ulps=ulps)
        add("matmul", r(2, 3, 8, dtype=dtype), b, ulps=ulps)
        add("linear", r(2, 3, 8, dtype=dtype), r(5, 8, dtype=dtype), r(5, dtype=dtype), ulps=ulps)
        add("addmm", r(5, dtype=dtype), a, b, ulps=ulps)
    add("mm", ints(3, 4), ints(4, 2))
    add("matmul", r(8), r(8, 5), ulps=32)
    add("matmul", r(2, 3, 8), r(8), ulps=32)
    add("matmul", r(8), r(8), ulps=32)
    add("matmul", r(2, 1, 3, 8), r(4, 8, 5), ulps=32)
    add("bmm", r(2, 3, 8), r(2, 8, 5), ulps=32)
    add("mv", r(3, 8), r(8), ulps=32)
    add("dot", r(8), r(8), ulps=32)
    add("vdot", r(8), r(8), ulps=32)
    add("inner", r(3, 8), r(5, 8), ulps=32)
    add("addmm", r(3, 5), r(3, 8), r(8, 5), beta=0.5, alpha=2, ulps=32)
    add("addmm", torch.full((5,), math.nan), r(3, 8), r(8, 5), beta=0, ulps=32)
    add("addmv", r(3), r(3, 8), r(8), ulps=32)
    add("baddbmm", r(2, 3, 5), r(2, 3, 8), r(2, 8, 5), beta=2, alpha=0.5, ulps=32)
    add("addbmm", r(3, 5), r(2, 3, 8), r(2, 8, 5), ulps=32)
    add("_int_mm", ints(17, 8, low=-100, high=100, dtype=torch.int8), ints(8, 16, low=-100, high=100, dtype=torch.int8))
    add("outer", r(3), r(4))
    add("ger", r(3), r(4))
    add("_trilinear", r(2, 3), r(5, 3, 4), r(2, 4), [1, 3], [0], [1, 2], [2, 3], ulps=64)
    add("bilinear", r(2, 3), r(2, 4), r(5, 3, 4), r(5), ulps=64)
    for equation, *shapes in (
        ("ij,jk->ik", (3, 8), (8, 5)), ("bij,bjk->bik", (2, 3, 8), (2, 8, 5)), ("ij->ji", (3, 4)), ("ii->i", (4, 4)),
        ("ii", (4, 4)), ("i,j->ij", (3,), (4,)), ("bhqd,bhkd->bhqk", (2, 2, 3, 8), (2, 2, 5, 8)), ("ij,jk", (3, 8), (8, 5)),
        ("...ij,...jk->...ik", (2, 3, 8), (8, 5)), ("ab,bc,cd->ad", (2, 3), (3, 4), (4, 5)), ("ijk->i", (2, 3, 4)),
        ("ij,k->i", (3, 4), (5,)),
    ):  # fmt: skip
        add("einsum", equation, [r(*s) for s in shapes], ulps=64)


def attention(add):
    sdpa = "scaled_dot_product_attention"
    q, k, v = r(2, 4, 5, 8), r(2, 4, 7, 8), r(2, 4, 7, 6)
    add(sdpa, q, k, v, ulps=64)
    add(sdpa, q, k, v, is_causal=True, ulps=64)
    add(sdpa, q, k, v, flags(5, 7), ulps=64)
    add(sdpa, q, k, v, torch.zeros(5, 7, dtype=BOOL), ulps=64)
    add(sdpa, q, k, v, r(2, 1, 5, 7), ulps=64)
    add(sdpa, q, k, v, scale=0.25, ulps=64)
    add(sdpa, q, r(2, 2, 7, 8), r(2, 2, 7, 8), is_causal=True, enable_gqa=True, ulps=64)
    add(sdpa, r(4, 5, 8), r(4, 7, 8), r(4, 7, 8), ulps=64)
    add(sdpa, q.to(BF16), k.to(BF16), v.to(BF16), ulps=4)
    w = r(2, 4, 7, 8)
    add("_scaled_dot_product_flash_attention_for_cpu", q, k, w, ulps=64)
    add("_scaled_dot_product_flash_attention_for_cpu", q, k, w, 0.0, True, ulps=64)
    add("_scaled_dot_product_flash_attention_for_cpu", q, k, w, attn_mask=r(2, 4, 5, 7), ulps=64)
    add("_scaled_dot_product_attention_math", q, k, w, ulps=64)
