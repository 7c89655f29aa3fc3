"""Conversions of the 8-bit float that TTIR has no type for: fp8e4b15, a byte there."""

from triton.language import core


@core.builtin
def convert_fp8e4b15(arg, dst_ty, fp_downcast_rounding=None, _semantic=None):
    """Between fp8e4b15, whose numbers are bytes in TTIR, and other floats, as on NVIDIA's GPUs. Its exponent is that of fp16 without the
    highest bit, so both are shifts of one another; numbers from 1.75 on become 1.75, and the others round to the nearest, ties away from 0.
    """
    same_bits = {"bitcast": True, "_semantic": _semantic}
    if arg.type.scalar.is_fp8e4b15():
        bits = arg.to(core.uint8, **same_bits).to(core.uint16, _semantic=_semantic)
        sign = bits.__and__(0x80, _semantic=_semantic).__lshift__(8, _semantic=_semantic)
        rest = bits.__and__(0x7F, _semantic=_semantic).__lshift__(7, _semantic=_semantic)
        half = sign.__or__(rest, _semantic=_semantic).to(core.float16, **same_bits)
        return half.to(dst_ty.scalar, _semantic=_semantic)
    if not arg.type.scalar.is_fp16():
        arg = arg.to(core.float16, fp_downcast_rounding="rtz", _semantic=_semantic)
    bits = arg.to(core.uint16, **same_bits)
    size = bits.__and__(0x7FFF, _semantic=_semantic)
    size = core.minimum(size, core.full(size.shape, 0x3F00, core.uint16, _semantic=_semantic), _semantic=_semantic)
    size = size.__lshift__(1, _semantic=_semantic).__add__(0x80, _semantic=_semantic)
    sign = bits.__and__(0x8000, _semantic=_semantic)
    code = size.__or__(sign, _semantic=_semantic).__rshift__(8, _semantic=_semantic)
    return code.to(core.uint8, _semantic=_semantic).to(core.float8e4b15, **same_bits)
