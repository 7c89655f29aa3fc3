"""Operations of single elements: of one operand, of two, and activations."""

import math

import torch

from .operands import BF16, BOOL, F16, F32, F64, I32, I64, ODD, U8, flags, ints, r, u


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
