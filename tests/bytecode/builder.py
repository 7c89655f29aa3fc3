"""Modules written operation by operation with the encoder of the installed cuda-tile package, for modules that its
compiler never emits. In: a version and a function that calls the encoder. Out: the bytes of a module.

    with module(version) as (m, data):
        with m.entry("k", ["f32"]) as (b, [x]):
            code.encode_AbsFOp(b, m.type("f32"), x)

Types are spelled as in the text: "4x2xf32", "4xptr<f32>", "token"."""
import contextlib
import math

import cuda.tile._bytecode as code
from cuda.tile._bytecode import BytecodeVersion, PtrAttr, SimpleType
from cuda.tile._bytecode.writer import encode_varint

V13_1, V13_2, V13_3, V13_4, V13_5 = VERSIONS = list(BytecodeVersion)
ELEMENTS = {
    "i1": SimpleType.I1, "i4": SimpleType.I4, "i8": SimpleType.I8, "i16": SimpleType.I16, "i32": SimpleType.I32,
    "i64": SimpleType.I64, "f16": SimpleType.F16, "bf16": SimpleType.BF16, "f32": SimpleType.F32,
    "tf32": SimpleType.TF32, "f64": SimpleType.F64, "f8E4M3FN": SimpleType.F8E4M3FN, "f8E5M2": SimpleType.F8E5M2,
    "f8E8M0FNU": SimpleType.F8E8M0FNU, "f4E2M1FN": SimpleType.F4E2M1FN, "f8E5M3FNU": SimpleType.FNV8E5M3FNU,
}
SINCE = {"f8E8M0FNU": V13_2, "f4E2M1FN": V13_3, "i4": V13_3, "f8E5M3FNU": V13_4}
DYNAMIC = code.DYNAMIC_SHAPE


def elements(version, floats=True, integers=True):
    """The element types of a version."""
    return [e for e in ELEMENTS if SINCE.get(e, V13_1) <= version and (floats if "f" in e else integers)]


def bits_of(value, element):
    """The bytes of one element as the constant table holds them."""
    if element[0] == "i":
        width = max(int(element[1:]), 8)
        return (int(value) & ((1 << width) - 1)).to_bytes(width // 8, "little")
    kind = ELEMENTS[element]
    return code.float_to_bits(float(value), kind).to_bytes((code.float_bit_size(kind) + 7) // 8, "little")


class Module:
    def __init__(self, writer):
        self.writer = writer
        self.version = writer.version
        self.types = writer.type_table
        self.debug = writer.debug_attr_table

    def type(self, spelled):
        """The id of a tile or token type."""
        if spelled == "token":
            return self.types.Token
        *shape, element = spelled.split("x") if not spelled.startswith("ptr") else [spelled]
        return self.types.tile(self.element(element), [int(n) for n in shape])

    def element(self, spelled):
        if spelled.startswith("ptr<"):
            return self.types.pointer(self.element(spelled[4:-1]), PtrAttr.Missing)
        return self.types.simple(ELEMENTS[spelled])

    def tensor(self, element, shape, strides, attr=PtrAttr.Missing):
        sizes = [DYNAMIC if n is None else n for n in shape]
        return self.types.tensor_view(self.element(element), sizes, [DYNAMIC if n is None else n for n in strides], attr)

    def constant(self, b, spelled, value):
        """A tile of one number, or of a flat list of them."""
        element = spelled.split("x")[-1]
        if not isinstance(value, list):
            raw = (b"\xff" if value else b"\0") if element == "i1" else bits_of(value, element)
        elif element == "i1":
            packed = sum(1 << i for i, bit in enumerate(value) if bit)
            raw = packed.to_bytes((len(value) + 7) // 8, "little")
        else:
            raw = b"".join(bits_of(v, element) for v in value)
        return code.encode_ConstantOp(b, self.type(spelled), raw)

    def counting(self, b, spelled):
        """A tile of 1, 2, 3 and so on."""
        count = math.prod(int(n) for n in spelled.split("x")[:-1])
        return self.constant(b, spelled, [i + 1 for i in range(count)])

    @contextlib.contextmanager
    def entry(self, name, parameters=(), hints=None, debug=code.MISSING_DEBUG_ATTR_ID, returns=True):
        ids = [self.type(p) if isinstance(p, str) else p for p in parameters]
        with self.writer.function(name=name, parameter_types=ids, result_types=(), entry_point=True, hints=hints or {},
                                  debug_attr=debug) as (b, values):
            b.cur_debug_attr = debug
            yield b, values
            if returns:
                code.encode_ReturnOp(b, ())

    def string(self, text):
        return self.writer._string_table[text.encode()].string_id


@contextlib.contextmanager
def module(version, functions=1, producer=None):
    """Yields (Module, buffer); the buffer holds the bytes when the block ends."""
    buffer = bytearray()
    with code.write_bytecode(functions, buffer, version) as writer:
        made = Module(writer)
        number = None if producer is None else made.string(producer)
        yield made, buffer
    if number is not None:
        assert buffer.pop() == 0
        payload = bytearray()
        encode_varint(number, payload)
        buffer += bytes([7, len(payload)]) + payload + b"\0"
