"""The cases of `tests/aten.py`: each handle of a decomposition rule with small operands.

A case names an overload of ATen (`softmax.int`) and its arguments as PyTorch takes them.
"""

import math

import torch

A = torch.ops.aten
F32, F16, BF16, F64, I64, I32, U8, BOOL = (
    torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool,
)  # fmt: skip

#: Handles that are not operations of ATen: functions of PyTorch's Python that the other front ends pass on.
COMPOSITE = {
    "swish", "normalize", "float", "half", "bfloat16", "double", "int", "long", "bool", "cpu", "softsign", "tanhshrink",
}  # fmt: skip


class Case:
    def __init__(self, name, overload, args, kwargs, ulps, unchecked):
        self.name, self.overload, self.args, self.kwargs = name, overload, args, kwargs
        self.ulps, self.unchecked = ulps, unchecked
        self.op = getattr(getattr(A, name), overload)

    def tensors(self):
        found = []

        def walk(value):
            if isinstance(value, torch.Tensor):
                found.append(value)
            elif isinstance(value, (list, tuple)):
                for v in value:
                    walk(v)

        for value in list(self.args) + list(self.kwargs.values()):
            walk(value)
        return found

    def __str__(self):
        def short(v):
            if isinstance(v, torch.Tensor):
                return f"{str(v.dtype).removeprefix('torch.')}{list(v.shape)}"
            if isinstance(v, (list, tuple)):
                return "[" + ", ".join(map(short, v)) + "]"
            return repr(v)

        args = [short(a) for a in self.args] + [f"{k}={short(v)}" for k, v in self.kwargs.items()]
        return f"{self.name}.{self.overload}({', '.join(args)})"


def r(*shape, dtype=F32):
    return torch.randn(*shape, dtype=F64).to(dtype)


def u(*shape, low=0.0, high=1.0, dtype=F32):
    return (torch.rand(*shape, dtype=F64) * (high - low) + low).to(dtype)


def ints(*shape, low=-9, high=10, dtype=I64):
    return torch.randint(low, high, shape, dtype=dtype)


def flags(*shape):
    return torch.rand(shape) > 0.5


ODD = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.5, 1.5, math.inf, -math.inf, math.nan, 1e-3, -7.25, 100.0])


def cases():
    found = []

    def add(spec, *args, ulps=8, unchecked=False, **kwargs):
        name, _, overload = spec.partition(".")
        if not hasattr(A, name) or (overload or "default") not in getattr(A, name).overloads():
            return
        found.append(Case(name, overload or "default", args, kwargs, ulps, unchecked))

    unary(add)
    special(add)
    polynomials(add)
    linalg(add)
    binary(add)
    activations(add)
    reductions(add)
    products(add)
    norms(add)
    views(add)
    parts(add)
    indexing(add)
    creation(add)
    attention(add)
    backward(add)
    spatial(add)
    losses(add)
    return found


def unary(add):
    for name in ("exp exp2 expm1 sin cos tan sinh cosh tanh atan asinh erf erfc sigmoid floor ceil round trunc frac neg abs "
                 "sign sgn square relu isnan isinf isfinite isposinf isneginf signbit logical_not positive fix negative "
                 "absolute sinc deg2rad rad2deg").split():  # fmt: skip
        for x in (r(3, 5), ODD, r(7, dtype=F64)):
            add(name, x, ulps=16)
        if name not in ("positive", "signbit", "erfc"):
            add(name, r(9, dtype=BF16), ulps=2)
            add(name, r(9, dtype=F16), ulps=2)
    for name in "exp sin neg abs sign square isnan isinf isfinite floor ceil trunc signbit sgn relu".split():
        add(name, ints(6))
        add(name, ints(6, dtype=I32))
    add("angle", ODD)
    add("angle", ints(5))
    for name in "log log2 log10 log1p sqrt rsqrt reciprocal acosh".split():
        add(name, u(20, low=1.0, high=9.0), ulps=16)
        add(name, ODD, ulps=16)
    add("log1p", u(20, low=-1e-4, high=1e-4))
    add("expm1", u(20, low=-1e-4, high=1e-4))
    add("expm1", torch.tensor([-200.0, 100.0, -math.inf, math.inf]))
    add("log1p", torch.tensor([1e-30, -1.0, -2.0, 1e30]))
    for name in "asin acos atanh logit".split():
        add(name, u(20, low=0.05, high=0.95) * (1 if name == "logit" else -1), ulps=32)
        add(name, torch.tensor([0.0, 1.0, 0.5]), ulps=16)
    add("logit", u(9), 0.25)
    add("round.decimals", r(9) * 100, decimals=1)
    add("nan_to_num", ODD)
    add("nan_to_num", ODD, 1.0, 2.0, -3.0)
    add("_to_copy", r(5) * 3, dtype=I32)
    far = torch.tensor([-2.18, -1.0, 127.6, 255.9, 300.7, -40000.0, 70000.0, 3e9, 5000000259.0, -1e10, 1e19, 1e20, math.inf, math.nan])
    for dtype in (I64, I32, torch.int16, torch.int8, U8):
        for of in (F32, F64, BF16, F16):
            add("_to_copy", far.to(of), dtype=dtype)
    add("_to_copy", r(5) * 3, dtype=F16)
    add("_to_copy", torch.tensor([0.0, 0.5, -1.0]), dtype=BOOL)
    add("_to_copy", flags(4), dtype=F32)
    add("_to_copy", ints(4), dtype=F64)
    add("to.dtype", r(5), F64)
    add("type_as", r(5), ints(2))


def special(add):
    spread = torch.cat([u(40, low=-20, high=20), u(20, low=-1, high=1), u(9, low=100, high=300), ODD])
    scaled = ("special_i0e", "special_i1e")
    for name in ("lgamma", "digamma", "i0", "special_i1", "special_modified_bessel_i0", "special_modified_bessel_i1", *scaled):
        near = spread.clamp(-30, 30) if "i0" in name or "i1" in name and name not in scaled else spread
        for dtype in (F32, F64) if "modified" in name else (F32, F64, BF16):
            add(name, near.to(dtype), ulps=4 if dtype == BF16 else 32)
        add(name, ints(6, low=1))
    for dtype in (F32, F64, BF16):
        ulps = 4 if dtype == BF16 else 32
        add("erfinv", torch.cat([u(40, low=-1, high=1), torch.tensor([0.0, 1.0, -1.0, 1.5, 1 - 2.0**-24])]).to(dtype), ulps=ulps)
        small = torch.tensor([0.0, 1.0, 0.5, -0.5, 1.5, 1e-30, 1e-10])
        if dtype != BF16:
            add("special_ndtri", torch.cat([u(40), small]).to(dtype), ulps=ulps)
    for dtype in (F32, F64):
        add("special_erfcx", torch.cat([u(60, low=-5, high=30), torch.tensor([0.0, 9.999, 10.001, 1e4, 1e30, math.inf, math.nan, -30.0])]).to(dtype), ulps=16)
    for n in (0, 1, 2, 3, 6):
        add("polygamma", n, u(40, low=0.05, high=30), ulps=64)
        odd = [-0.5, -1.25, -6.75, 0.0, math.inf, math.nan]
        add("polygamma", n, torch.tensor(odd if n < 2 else [*odd, -2.0]), ulps=64)
        # PyTorch's own first derivative is right to nine digits.
        if n != 1:
            add("polygamma", n, u(40, low=0.5, high=30, dtype=F64), ulps=64)


def polynomials(add):
    degrees = torch.arange(-2, 14).to(F32)
    for name in (*(f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"),
                 "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"):  # fmt: skip
        for dtype in (F32, F64):
            # Where a polynomial is near 0, PyTorch's recurrence loses what float64 does not.
            add(f"special_{name}", u(7, 16, low=-1, high=1, dtype=dtype), degrees.to(dtype), ulps=256)
            add(f"special_{name}", u(7, 6, low=-3, high=3, dtype=dtype), degrees[:6].to(dtype), ulps=256)
        add(f"special_{name}", torch.tensor([1.0, -1.0, 0.0]), torch.tensor(3.0))
        add(f"special_{name}.x_scalar", 0.5, degrees[:8])
        add(f"special_{name}.n_scalar", u(9, low=-1, high=1), 4, ulps=64)


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


def binary(add):
    x, y = r(3, 4), r(4)
    add("add.Tensor", x, y)
    add("add.Tensor", x, y, alpha=2)
    add("add.Tensor", ints(3), r(3))
    add("add.Tensor", r(3, dtype=F16), r(3, dtype=F32))
    add("add.Tensor", r(3, dtype=F16), r(3, dtype=BF16))
    add("add.Tensor", r(3, dtype=F16), torch.tensor(2.5, dtype=F64))
    add("add.Tensor", ints(3, dtype=I32), torch.tensor(2.5, dtype=F64))
    add("add.Tensor", flags(4), flags(4))
    add("add.Tensor", ints(5, dtype=U8, low=0, high=255), ints(5, dtype=torch.int8, low=-100, high=100))
    add("add.Scalar", ints(3), 2.5)
    add("add.Scalar", flags(3), 2)
    add("add.Scalar", r(3, dtype=F16), 2)
    add("sub.Tensor", x, y, alpha=0.5)
    add("sub.Scalar", ints(3), 4)
    add("subtract.Tensor", x, y)
    add("rsub.Scalar", x, 1.0)
    add("rsub.Scalar", x, 1.0, 3)
    add("rsub.Tensor", x, y, alpha=2)
    add("mul.Tensor", x, y)
    add("mul.Tensor", flags(4), flags(4))
    add("mul.Scalar", ints(4), 3)
    add("multiply.Tensor", x, y)
    for name in ("div", "divide"):
        add(f"{name}.Tensor", x, y)
    add("div.Tensor", ints(5), ints(5, low=1))
    add("div.Scalar", ints(5), 4)
    # A number that the integers' type cannot hold keeps its value.
    bytes_ = torch.tensor([0, 1, 7, 255], dtype=torch.uint8)
    add("div.Scalar", bytes_, -2)
    add("true_divide.Scalar", bytes_, 300)
    add("copysign.Scalar", bytes_, -2)
    add("xlogy.Scalar_Other", bytes_, 300)
    add("true_divide.Tensor", ints(5), ints(5, low=1))
    p, q = r(50) * 20, r(50)
    for mode in ("floor", "trunc"):
        add("div.Tensor_mode", p, q, rounding_mode=mode)
        add("div.Tensor_mode", ints(50, low=-99, high=99), ints(50, low=1), rounding_mode=mode)
        add("div.Tensor_mode", ints(50, low=-99, high=99), ints(50, low=-9, high=0), rounding_mode=mode)
    add("floor_divide", p, q)
    add("floor_divide", ints(50), ints(50, low=-5, high=0))
    for name in ("remainder", "fmod"):
        add(f"{name}.Tensor", p, q)
        add(f"{name}.Tensor", ints(50), ints(50, low=-5, high=0))
        add(f"{name}.Scalar", ints(50), 3)
    add("remainder.Scalar_Tensor", 5, ints(9, low=1))
    for e in (0, 1, 2, 3, 0.5, -0.5, -1, -2, 2.7):
        add("pow.Tensor_Scalar", u(9, low=0.1, high=4), e, ulps=16)
    add("pow.Tensor_Scalar", ints(9), 3)
    add("pow.Tensor_Scalar", ints(9), 5)
    add("pow.Tensor_Tensor", u(9), r(9), ulps=16)
    add("pow.Scalar", 2.0, r(9), ulps=16)
    add("float_power.Tensor_Scalar", u(9), 2.5)
    for name in ("minimum", "maximum", "fmin", "fmax"):
        add(name, ODD, ODD.flip(0))
        add(name, ints(9), ints(9))
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        add(f"{name}.Tensor", ODD, ODD.flip(0))
        add(f"{name}.Scalar", ints(9), 0)
        add(f"{name}.Scalar", ints(9), 0.5)
        add(f"{name}.Tensor", ints(9), r(9))
    for name in ("logical_and", "logical_or", "logical_xor"):
        add(name, flags(9), flags(9))
        add(name, ints(9, low=0, high=2), r(9))
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"):
        add(f"{name}.Tensor", ints(9, low=0), ints(9, low=0, high=6))
    for name in ("bitwise_left_shift", "bitwise_right_shift", "__lshift__", "__rshift__"):
        for dtype in (I64, I32, torch.int16, torch.int8, U8):
            low = 0 if dtype == U8 else -9
            amounts = torch.tensor([0, 1, 5, 7, 8, 31, 33, 63, 64, 100, -1 if low else 2, low], dtype=dtype)
            add(f"{name}.Tensor", ints(12, low=low, dtype=dtype), amounts)
        add(f"{name}.Scalar" if name.startswith("_") else f"{name}.Tensor_Scalar", ints(9), 2)
    add("bitwise_left_shift.Scalar_Tensor", 3, ints(9, low=0, high=6))
    for name in ("gcd", "lcm"):
        for dtype in (I64, I32, torch.int16, torch.int8):
            add(name, ints(40, low=-60, high=60, dtype=dtype), ints(40, low=-60, high=60, dtype=dtype))
        add(name, ints(4, 1, low=-60, high=60), ints(5, low=0, high=9, dtype=U8))
        add(name, torch.tensor(12), torch.tensor(18))
        add(name, ints(0), ints(0))
    add("gcd", torch.tensor([7540113804746346429, -(2**63), 0]), torch.tensor([4660046610375530309, 6, 0]))
    for dtype in (F32, F64, BF16, F16):
        edges = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.5, math.inf, -math.inf, math.nan, 1e-3, -7.25, 1e-40, 6e4], dtype=F64).to(dtype)
        add("frexp.Tensor", edges[torch.isfinite(edges)])
        if dtype != F16:
            add("nextafter", edges, edges.flip(0), ulps=0)
            add("nextafter", edges[:, None], torch.tensor([0.0, math.inf, -math.inf, 1.0], dtype=dtype), ulps=0)
    add("frexp.Tensor", r(3, 4) * 100)
    add("bitwise_and.Tensor", flags(9), flags(9))
    add("bitwise_not", ints(9))
    add("bitwise_not", flags(9))
    add("where.self", flags(3, 4), x, y)
    add("where.ScalarOther", flags(3, 4), x, 0.0)
    add("where.ScalarSelf", flags(3, 4), 1, x)
    add("where.Scalar", flags(3, 4), 1.0, 2.0)
    add("masked_fill.Scalar", x, flags(3, 4), -math.inf)
    add("masked_fill.Tensor", x, flags(4), torch.tensor(2.0))
    for name in ("clamp", "clip"):
        add(name, x, -0.5, 0.5)
        add(name, x, None, 0.5)
        add(name, ints(9), 0)
    add("clamp.Tensor", x, y, y + 1)
    add("clamp_min", x, 0.25)
    add("clamp_max", x, 0.25)
    for name in ("atan2", "arctan2", "hypot", "logaddexp"):
        add(name, r(9), r(9), ulps=16)
    add("logaddexp", torch.tensor([math.inf, -math.inf, 1.0]), torch.tensor([math.inf, -math.inf, -math.inf]))
    add("copysign.Tensor", ODD, ODD.flip(0))
    add("ldexp.Tensor", r(9), ints(9))
    add("ldexp.Tensor", ints(9), ints(9))
    add("xlogy.Tensor", torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.0, 2.0, 3.0]))
    for w in (0.25, 0.75):
        add("lerp.Scalar", x, r(3, 4), w)
    add("lerp.Tensor", x, r(3, 4), u(3, 4))
    add("addcmul", x, y, r(3, 4), value=0.5)
    add("addcdiv", x, y, u(3, 4, low=1, high=2), value=2)


def activations(add):
    for dtype in (F32, F64, BF16, F16):
        x = r(4, 6, dtype=dtype) * 3
        ulps = 16 if dtype in (F32, F64) else 2
        for name in "silu mish softsign tanhshrink selu relu6 hardsigmoid hardswish".split():
            add(name, x, ulps=ulps)
        add("log_sigmoid", x, ulps=ulps)
        add("log_sigmoid_forward", x, ulps=ulps)
        add("gelu", x, ulps=ulps)
        add("gelu", x, approximate="tanh", ulps=ulps)
        add("leaky_relu", x, 0.2, ulps=ulps)
        add("elu", x, 1.5, ulps=ulps)
        add("celu", x, 1.5, ulps=ulps)
        add("softplus", x, ulps=ulps)
        add("softplus", x, 2, 3, ulps=ulps)
        add("hardtanh", x, -0.5, 0.75)
        add("hardshrink", x)
        add("softshrink", x)
        add("threshold", x, 0.1, 20)
        add("glu", x, ulps=ulps)
    add("prelu", r(2, 3, 4), r(3))
    add("prelu", r(2, 3), r(1))
    add("_prelu_kernel", r(2, 3), r(2, 3))
    add("rrelu", r(5), 0.1, 0.3, False)
    add("dropout", r(5), 0.5, False)
    add("feature_dropout", r(5), 0.5, False)
    add("alpha_dropout", r(5), 0.5, False)
    add("native_dropout", r(5), 0.5, False)
    for name in ("softmax.int", "log_softmax.int"):
        add(name, r(3, 7) * 5, -1)
        add(name, r(3, 7, dtype=BF16) * 5, 0, ulps=2)
        add(name, ints(3, 4), 1, dtype=F32)
        add(name, torch.tensor(3.0), 0)
    add("_softmax", r(3, 7) * 100, 1, False)
    add("_log_softmax", r(3, 7) * 100, 1, False)
    add("_safe_softmax", torch.cat([r(2, 5), torch.full((1, 5), -math.inf)]), -1)


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


def views(add):
    x = r(2, 3, 4)
    for name in ("contiguous", "clone", "detach", "alias", "lift_fresh", "lift_fresh_copy", "lift", "resolve_conj", "resolve_neg"):
        add(name, x)
    add("copy", x, r(4))
    add("copy", x, ints(2, 3, 4))
    add("permute_copy", x, [2, 0, 1])
    add("unbind_copy.int", x, 1)
    add("narrow_copy", x, 1, 1, 2)
    for name in ("view", "reshape", "_unsafe_view", "view_copy"):
        add(name, x, [6, 4])
        add(name, x, [-1, 8])
    add("_reshape_alias", x, [6, 4], [4, 1])
    add("view_as", x, r(4, 6))
    add("reshape_as", x, r(4, 6))
    add("flatten.using_ints", x, 1)
    add("ravel", x)
    add("unflatten.int", r(2, 12), 1, [3, -1])
    add("unsqueeze", x, 1)
    add("unsqueeze", x, -1)
    y = r(1, 3, 1)
    add("squeeze", y)
    add("squeeze.dim", y, 0)
    add("squeeze.dims", y, [0, 1, 2])
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        add(name, torch.tensor(1.5))
        add(name, r(3))
        add(name, r(3, 4))
    add("permute", x, [2, 0, 1])
    add("transpose.int", x, 0, -1)
    add("t", r(3, 4))
    for name in ("numpy_T", "mT", "adjoint"):
        add(name, r(3, 4))
    add("swapaxes", x, 0, 2)
    add("swapdims", x, 0, 2)
    add("movedim.intlist", x, [0, 1], [2, 0])
    add("moveaxis.intlist", x, [0], [1])
    add("expand", r(3, 1), [2, 3, 4])
    add("expand", r(3, 1), [-1, 4])
    add("expand_as", r(3, 1), r(3, 4))
    add("broadcast_to", r(3, 1), [2, 3, 4])
    add("broadcast_tensors", [r(3, 1), r(4)])
    add("repeat", r(3, 2), [2, 3, 1])
    add("tile", r(3, 2), [2])
    add("repeat_interleave.self_int", r(3, 2), 3, 1)
    add("repeat_interleave.self_int", r(3, 2), 2)
    add("flip", x, [0, 2])
    add("roll", x, [1, -2], [0, 2])
    add("roll", x, [5])
    for k in (1, 2, 3, -1):
        add("rot90", r(3, 4), k)
    add("cat", [r(2, 3), r(4, 3), r(1, 3)])
    add("cat", [r(2, 3), ints(2, 1)], 1)
    add("cat", [torch.empty(0), r(2, 3)], 1)
    add("concat", [r(2, 3), r(2, 4)], -1)
    add("concatenate", [r(2), r(3)])
    add("stack", [r(2, 3), r(2, 3)], 1)
    # Elements of several kinds in turn.
    for kinds in (2, 3, 4, 5):
        add("stack", [r(5, 39) for _ in range(kinds)], -1)
    add("stack", [ints(67), ints(67)], -1)
    add("stack", [r(67) > 0, r(67) > 0.5, r(67) < 0], -1)
    add("hstack", [r(2), r(3)])
    add("vstack", [r(3), r(3)])
    for name in ("tril", "triu"):
        for k in (0, 1, -2):
            add(name, r(2, 4, 5), k)
    for offset in (0, 1, -2):
        add("diagonal", r(4, 5), offset)
        add("diag", r(4, 5), offset)
        add("diag", r(3), offset)
        add("diag_embed", r(2, 3), offset)
    add("diagonal", r(2, 4, 5), 0, 1, 2)
    add("trace", r(4, 5))
    add("trace", ints(4, 5))
    add("meshgrid.indexing", [r(3), r(4), r(2)], indexing="ij")
    add("meshgrid.indexing", [r(3), r(4)], indexing="xy")
    add("pixel_shuffle", r(2, 8, 3, 4), 2)
    add("pixel_unshuffle", r(2, 2, 6, 4), 2)
    add("channel_shuffle", r(2, 6, 2, 2), 3)


def parts(add):
    x = r(9, 4)
    for start, end, step in ((2, 7, 2), (None, None, 3), (-4, -1, 1), (3, 100, 1), (5, 2, 1)):
        add("slice.Tensor", x, 0, start, end, step)
    add("narrow", x, 0, 2, 5)
    add("select.int", x, 0, 3)
    add("select.int", x, 1, -1)
    add("unbind.int", x, 1)
    add("unfold", x, 0, 4, 2)
    add("unfold", torch.tensor(1.5), 0, 1, 1)
    add("unfold", torch.tensor(1.5), 0, 0, 1)
    for name in ("as_strided", "as_strided_copy"):
        add(name, x, [3, 4], [2, 5], 3)
    add("as_strided_scatter", x, r(3, 4), [3, 4], [1, 5], 3)
    add("as_strided", x, [2, 2, 2], [0, 1, 1])
    add("as_strided", x, [], [], 35)
    for name in ("split", "unsafe_split"):
        add(f"{name}.Tensor", x, 4)
    add("split_with_sizes", x, [2, 3, 4])
    add("chunk", x, 4)
    add("unsafe_chunk", x, 2, 1)
    add("tensor_split.sections", x, 4)
    add("tensor_split.indices", x, [2, 5])
    add("hsplit.int", x, 2)
    add("vsplit.int", x, 3)
    add("slice_scatter", x, r(3, 4), 0, 2, 5)
    add("slice_scatter", x, r(3, 4), 0, 1, 7, 2)
    add("select_scatter", x, r(4), 0, 3)
    add("select_scatter", x, r(9), 1, -1)
    for offset in (0, 1, -2):
        add("diagonal_scatter", r(4, 5), torch.diagonal(r(4, 5), offset).contiguous(), offset)


def indexing(add):
    x = r(6, 4, 3)
    add("embedding", r(7, 5), ints(2, 3, low=0, high=7))
    add("index_select", x, 1, ints(5, low=0, high=4))
    add("index_select", r(6), 0, torch.tensor(2))
    add("gather", r(4, 5), 1, ints(4, 3, low=0, high=5))
    add("gather", r(4, 5), 0, ints(2, 3, low=0, high=4))
    add("take_along_dim", r(4, 5), ints(4, 1, low=0, high=5), 1)
    add("take_along_dim", r(4, 5), ints(6, low=0, high=20))
    add("take", r(4, 5), ints(2, 3, low=-20, high=20))
    i, j = ints(5, low=-6, high=6), ints(5, low=-4, high=4)
    for name in ("index", "_unsafe_index"):
        add(f"{name}.Tensor", x, [i])
        add(f"{name}.Tensor", x, [None, j])
        add(f"{name}.Tensor", x, [i, j])
        add(f"{name}.Tensor", x, [i.reshape(5, 1), j])
    add("index.Tensor", x, [i, None, ints(5, low=0, high=3)])
    for name in ("index_put", "_unsafe_index_put"):
        add(name, x, [torch.tensor([1, -2])], r(2, 4, 3))
        add(name, x, [torch.tensor([1, 3]), torch.tensor([0, 2])], r(2, 3))
        add(name, x, [torch.tensor([1, 1])], r(2, 4, 3), True)
    add("index_put", r(3, 4), [flags(3, 4)], torch.tensor(1.5))
    at = torch.tensor([[2, 0, 1, 3], [1, 3, 0, 2]])
    add("scatter.src", r(5, 4), 0, at, r(2, 4))
    add("scatter.src", r(5, 4), 0, at, r(3, 6))
    add("scatter.value", r(5, 4), 1, at[:, :3], 2.5)
    add("scatter.reduce", r(5, 4), 0, at, r(2, 4), reduce="add")
    add("scatter.value_reduce", r(5, 4), 0, at, 2.0, reduce="multiply")
    add("scatter_add", r(5, 4), 0, torch.zeros(3, 4, dtype=I64), r(3, 4))
    for reduce in ("sum", "prod", "amax", "amin", "mean"):
        for whole in (True, False):
            add("scatter_reduce.two", r(5, 4), 0, at % 2, r(2, 4), reduce, include_self=whole)
            add("scatter_reduce.two", ints(5, 4), 0, at % 2, ints(2, 4), reduce, include_self=whole)
            add("scatter_reduce.two", r(5, 4, dtype=BF16), 0, at % 2, r(2, 4, dtype=BF16), reduce, include_self=whole, ulps=4)
            if reduce != "sum":
                add("index_reduce", r(5, 4), 0, torch.tensor([1, 1, 3]), r(3, 4), reduce, include_self=whole)
    point, zero = torch.tensor(1.5), torch.tensor(0)
    add("scatter.src", point, 0, zero, torch.tensor(2.5))
    add("scatter_add", point, 0, zero, torch.tensor(2.5))
    add("gather", point, 0, torch.zeros(1, dtype=I64))
    add("gather", point, 0, zero)
    add("gather", r(4), 0, torch.tensor(2))
    add("index_select", point, 0, zero)
    add("index_add", point, 0, zero, torch.tensor(2.5))
    add("index_copy", point, 0, zero, torch.tensor(2.5))
    add("index_fill.int_Scalar", point, 0, zero, 4.0)
    for accumulate in (False, True):
        add("put", r(4, 5), torch.tensor([[3, -1], [0, 19 if accumulate else 7]]), r(2, 2), accumulate)
    mask = flags(4, 5)
    add("masked_scatter", r(4, 5), mask, r(30))
    add("masked_scatter", r(4, 5), mask[0], r(5, 5))
    add("masked_scatter", ints(4, 5), mask, ints(20))
    add("index_add", r(5, 4), 0, torch.tensor([1, 1, 3]), r(3, 4), alpha=2)
    add("index_copy", r(5, 4), 1, torch.tensor([2, 0]), r(5, 2))
    add("index_fill.int_Scalar", r(5, 4), 0, torch.tensor([2, 0]), 1.5)
    add("index_fill.int_Tensor", r(5, 4), 0, torch.tensor([2, 0]), torch.tensor(1.5))
    add("index_reduce", r(5, 4), 0, torch.tensor([1, 1, 3]), r(3, 4), "amax")
    add("one_hot", ints(2, 3, low=0, high=5), 6)


    line = r(9).sort().values
    lines = r(3, 9).sort().values
    sorter = torch.tensor([3, 0, 2, 1])
    unsorted = torch.tensor([0.5, 2.5, 1.5, -1.0])
    for right in (False, True):
        add("searchsorted.Tensor", line, torch.cat([r(2, 5), line[:5].expand(1, 5)]), right=right)
        add("searchsorted.Tensor", lines, torch.cat([r(3, 5), lines[:, ::2]], 1), right=right, out_int32=True)
        add("searchsorted.Tensor", unsorted, r(7), right=right, sorter=sorter)
        add("searchsorted.Scalar", line, 0.25, right=right)
        add("bucketize.Tensor", ints(20), torch.tensor([-5, 0, 0, 3]), right=right)
        add("bucketize.Tensor", ODD, torch.tensor([-1.0, 0.5, 2.5, math.inf]), right=right)
        add("bucketize.Scalar", 2, torch.tensor([-5, 0, 2, 3]), right=right)
    add("searchsorted.Tensor", line, line, side="right")
    add("searchsorted.Tensor", torch.empty(0), r(3))


def creation(add):
    add("full", [2, 3], 1.5)
    add("full", [2], 3)
    add("full", [2], True)
    add("full", [2], 3, dtype=F16)
    add("zeros", [2, 3])
    add("ones", [2], dtype=I32)
    add("empty.memory_format", [2, 3], unchecked=True)
    add("empty_strided", [2, 3], [3, 1], unchecked=True)
    add("empty_permuted", [2, 3], [0, 1], unchecked=True)
    add("scalar_tensor", 2.5)
    add("scalar_tensor", 3, dtype=I64)
    x = r(2, 3)
    add("full_like", x, 2)
    add("zeros_like", x)
    add("ones_like", x, dtype=I64)
    add("empty_like", x, unchecked=True)
    add("new_full", x, [4], 7)
    add("new_zeros", ints(2), [4])
    add("new_ones", x, [4])
    add("new_empty", x, [4], unchecked=True)
    add("new_empty_strided", x, [4], [1], unchecked=True)
    add("fill.Scalar", x, 2)
    add("fill.Tensor", x, torch.tensor(2.0))
    add("zero", x)
    add("arange", 7)
    add("arange.start", 2, 9)
    add("arange.start_step", 2, 20, 3)
    add("arange.start_step", 9, -1, -2)
    add("arange.start_step", 0.0, 1.0, 0.1)
    add("arange", 7, dtype=F32)
    add("linspace", -1.0, 2.0, 7)
    add("linspace", 3, 3, 1)
    add("eye", 3)
    add("eye.m", 3, 4, dtype=I64)
    add("tril_indices", 3, 4)
    add("triu_indices", 3, 4, 1)


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
