"""Bytecode that cuda-tile's compiler never writes, or not at every version: each operation with each of its attributes,
each type, each kind of debug location. One function writes one module; it asks `m.version` for what a version admits.

    MODULES: name -> function from a version to the bytes of a module, or None where that version has nothing of it"""
import functools

import cuda.tile._bytecode as code
from builder import DYNAMIC, V13_2, V13_3, V13_4, V13_5, elements, module
from cuda.tile._bytecode import (AtomicRMWMode, Bounded, ComparisonOrdering, ComparisonPredicate, DivBy, EntryHints, Float,
                                 Integer, IntegerOverflow, LoadStoreHints, MemoryOrderingSemantics, MemoryScope,
                                 MultimemReductionKind, PaddingValue, PtrAttr, RoundingMode, Signedness,
                                 SymbolVisibility)
from cuda.tile._bytecode.attribute import (Bool, Dictionary, OptimizationHints, SameElements, make_load_store_hints)
from cuda.tile._bytecode.basic import encode_int_list, encode_varint

MODULES = {}
NEAREST, SIGNED, UNSIGNED, NO_OVERFLOW = RoundingMode.NEAREST_EVEN, Signedness.Signed, Signedness.Unsigned, IntegerOverflow.NONE
IEEE = [RoundingMode.NEAREST_EVEN, RoundingMode.ZERO, RoundingMode.NEGATIVE_INF, RoundingMode.POSITIVE_INF]
TRUNCATE = RoundingMode.NEAREST_INT_TO_ZERO


class Same(SameElements):
    """The predicate for which the package has a class and no encoder."""

    def encode_tagged(self, string_table, buf):
        buf.append(9)
        encode_int_list(self.values, 8, buf)


def writes(since=None, functions=1, producer=None, preview=False):
    def register(function):
        @functools.wraps(function)
        def write(version):
            if since is not None and version < since:
                return None
            with module(version, functions, producer if version >= V13_3 else None) as (m, buffer):
                function(m)
            buffer[10] |= preview
            return bytes(buffer)
        MODULES[function.__name__] = write
        return function
    return register


def hints(m, **fields):
    return make_load_store_hints({"default" if m.version >= V13_3 else "sm_100": LoadStoreHints(**fields)})


def identity(m, element, value):
    if element.startswith("i"):
        return Integer(m.element(element), int(element[1:]), value)
    return Float(value, code.SimpleType[element.upper()], m.types)


@writes()
def floats_unary(m):
    with m.entry("floats_unary", ["f32", "f64", "f16", "bf16"]) as (b, values):
        for name in ["AbsF", "Ceil", "CosH", "Cos", "Floor", "Log2", "Log", "NegF", "SinH", "Sin", "Tan"]:
            encode = getattr(code, f"encode_{name}Op")
            for value, element in zip(values, ["f32", "f64", "f16", "bf16"]):
                encode(b, m.type(element), value)
        t, x = m.type("f32"), values[0]
        code.encode_ExpOp(b, t, x, RoundingMode.FULL)
        code.encode_TanHOp(b, t, x, RoundingMode.FULL)
        if m.version >= V13_2:
            code.encode_TanHOp(b, t, x, RoundingMode.APPROX)
        if m.version >= V13_3:
            code.encode_ExpOp(b, t, x, RoundingMode.APPROX)
        for flush in [False, True]:
            code.encode_Exp2Op(b, t, x, flush)
            code.encode_RsqrtOp(b, t, x, flush)
            for rounding in [*IEEE, RoundingMode.APPROX]:
                code.encode_SqrtOp(b, t, x, rounding, flush)


@writes()
def floats_binary(m):
    with m.entry("floats_binary", ["f32", "f32", "f64"]) as (b, [x, y, d]):
        t = m.type("f32")
        for name in ["AddF", "SubF", "MulF", "DivF"]:
            encode = getattr(code, f"encode_{name}Op")
            for rounding in IEEE:
                encode(b, t, x, y, rounding, False)
            encode(b, t, x, y, NEAREST, True)
            encode(b, m.type("f64"), d, d, NEAREST, False)
        for rounding in [RoundingMode.APPROX, RoundingMode.FULL]:
            code.encode_DivFOp(b, t, x, y, rounding, True)
        for rounding in IEEE:
            code.encode_FmaOp(b, t, x, y, x, rounding, rounding is RoundingMode.ZERO)
        for nan in [False, True]:
            for flush in [False, True]:
                code.encode_MaxFOp(b, t, x, y, nan, flush)
                code.encode_MinFOp(b, t, x, y, nan, flush)
        code.encode_RemFOp(b, t, x, y)
        code.encode_FPowFOp(b, t, x, y)
        for predicate in ComparisonPredicate:
            for ordering in ComparisonOrdering:
                code.encode_CmpFOp(b, m.type("i1"), x, y, predicate, ordering)
        if m.version >= V13_2:
            code.encode_Atan2Op(b, t, x, y)
        if m.version >= V13_4:
            code.encode_FPowIOp(b, t, x, m.constant(b, "i32", 3))


@writes()
def integers(m):
    with m.entry("integers", ["i32", "i32", "i64", "i8"]) as (b, [x, y, wide, narrow]):
        t, t1 = m.type("i32"), m.type("i1")
        for name in ["AddI", "SubI", "MulI", "ShLI"]:
            for overflow in IntegerOverflow:
                getattr(code, f"encode_{name}Op")(b, t, x, y, overflow)
            getattr(code, f"encode_{name}Op")(b, m.type("i64"), wide, wide, NO_OVERFLOW)
        for name in ["MaxI", "MinI", "RemI", "ShRI"]:
            for signedness in Signedness:
                getattr(code, f"encode_{name}Op")(b, t, x, y, signedness)
        for signedness, rounding in [(SIGNED, RoundingMode.ZERO), (UNSIGNED, RoundingMode.ZERO),
                                     (SIGNED, RoundingMode.NEGATIVE_INF), (SIGNED, RoundingMode.POSITIVE_INF),
                                     (UNSIGNED, RoundingMode.POSITIVE_INF)]:
            code.encode_DivIOp(b, t, x, y, signedness, rounding)
        code.encode_NegIOp(b, t, x, NO_OVERFLOW)
        if m.version >= V13_2:
            code.encode_NegIOp(b, t, x, IntegerOverflow.NSW)
        code.encode_AbsIOp(b, m.type("i8"), narrow)
        code.encode_MulhiIOp(b, t, x, y)
        for name in ["AndI", "OrI", "XOrI"]:
            getattr(code, f"encode_{name}Op")(b, t, x, y)
        for predicate in ComparisonPredicate:
            for signedness in Signedness:
                code.encode_CmpIOp(b, t1, x, y, predicate, signedness)


@writes()
def conversions(m):
    floats = [e for e in elements(m.version, integers=False) if e != "f4E2M1FN"]
    with m.entry("conversions", ["f32", "i32", "i64", "ptr<f32>"]) as (b, [f, i, wide, p]):
        for element in floats:
            rounding = RoundingMode.ZERO if element == "f8E8M0FNU" else NEAREST
            if element not in ("f32", "f8E5M3FNU"):
                code.encode_FToFOp(b, m.type(element), f, rounding)
        if m.version >= V13_2:
            code.encode_FToFOp(b, m.type("f8E8M0FNU"), f, RoundingMode.POSITIVE_INF)
        for signedness in Signedness:
            code.encode_FToIOp(b, m.type("i32"), f, signedness, TRUNCATE, False)
            code.encode_IToFOp(b, m.type("f64"), i, signedness, NEAREST)
            code.encode_ExtIOp(b, m.type("i64"), i, signedness)
        if m.version >= V13_4:
            code.encode_FToIOp(b, m.type("i8"), f, UNSIGNED, TRUNCATE, True)
        for overflow in IntegerOverflow:
            code.encode_TruncIOp(b, m.type("i8"), i, overflow)
        code.encode_TruncIOp(b, m.type("i1"), i, NO_OVERFLOW)
        code.encode_BitcastOp(b, m.type("i32"), f)
        code.encode_IntToPtrOp(b, m.type("ptr<i8>"), wide)
        code.encode_PtrToIntOp(b, m.type("i64"), p)
        code.encode_PtrToPtrOp(b, m.type("ptr<bf16>"), p)
        if m.version >= V13_3:
            small = code.encode_TruncIOp(b, m.type("8xi4"), m.constant(b, "8xi8", 5), NO_OVERFLOW)
            code.encode_ExtIOp(b, m.type("8xi32"), small, SIGNED)
            packed = code.encode_PackOp(b, m.type("4xi8"), small)
            code.encode_UnpackOp(b, m.type("2xf16"), packed)
            code.encode_UnpackOp(b, m.type("8xf4E2M1FN"), packed)
            code.encode_FToFOp(b, m.type("8xf4E2M1FN"), m.constant(b, "8xf32", 1.5), NEAREST)


@writes()
def constants(m):
    with m.entry("constants") as (b, _):
        for element in elements(m.version):
            if element in ("i4", "f4E2M1FN", "f8E5M3FNU"):
                continue
            for value in [0, 1]:
                m.constant(b, element, value)
            m.constant(b, f"4x{element}", 1)
            m.constant(b, f"4x{element}", [1, 0, 1, 1] if element == "i1" else [1, 2, 4, 8])
        for element, value in [("f32", float("nan")), ("f32", float("inf")), ("f64", float("-inf")), ("f16", -0.0),
                               ("f32", 1e-40), ("f32", 3.1415927410125732), ("f64", 0.1), ("bf16", 1e30),
                               ("f64", 5e-324), ("f8E4M3FN", float("nan")), ("f8E5M2", float("inf")),
                               ("i8", -128), ("i16", -5), ("i32", -(1 << 31)), ("i64", (1 << 63) - 1)]:
            m.constant(b, element, value)
        m.constant(b, "2x2xi32", [1, -2, 3, -4])
        m.constant(b, "2x1x2xf32", [0.5, -1.25, 1e10, float("inf")])
        m.constant(b, "16xi1", [i % 3 == 0 for i in range(16)])
        m.constant(b, "2x4xi1", [True, False, False, True, True, True, False, True])
        m.constant(b, "1x1xi64", -1)


@writes()
def small_floats(m):
    """Constants of the narrowest formats."""
    with m.entry("small_floats") as (b, _):
        m.constant(b, "8xf8E4M3FN", [0, 1, -1, 448, 0.015625, 2, -0.5, 3])
        m.constant(b, "4xf8E5M2", [0, -1, 57344, 0.25])
        m.constant(b, "4xtf32", [1, -2, 0.5, 3])
        if m.version >= V13_2:
            m.constant(b, "4xf8E8M0FNU", [1, 2, 0.5, 2.0**100])
        if m.version >= V13_3:
            m.constant(b, "4xf4E2M1FN", [1, 2, -0.5, 6])
            m.constant(b, "4xf4E2M1FN", 1.5)
        if m.version >= V13_4:
            m.constant(b, "4xf8E5M3FNU", [1, 2, 0.5, 3])


@writes()
def shapes(m):
    with m.entry("shapes", ["i32", "f32"]) as (b, [n, x]):
        one = code.encode_ReshapeOp(b, m.type("1x1xf32"), x)
        tile = code.encode_BroadcastOp(b, m.type("4x8xf32"), one)
        code.encode_PermuteOp(b, m.type("8x4xf32"), tile, [1, 0])
        for dim, shape in [(0, "8x8xf32"), (1, "4x16xf32")]:
            code.encode_CatOp(b, m.type(shape), tile, tile, dim)
        part = code.encode_ExtractOp(b, m.type("2x4xf32"), tile, [n, n])
        condition = m.constant(b, "4x8xi1", True)
        code.encode_SelectOp(b, m.type("4x8xf32"), condition, tile, tile)
        for element in ["i8", "i16", "i32", "i64"]:
            code.encode_IotaOp(b, m.type(f"16x{element}"))
        cube = code.encode_ReshapeOp(b, m.type("2x4x2x2xf32"), tile)
        code.encode_PermuteOp(b, m.type("2x2x2x4xf32"), cube, [3, 2, 0, 1])
        code.encode_GetTileBlockIdOp(b, *[m.type("i32")] * 3)
        code.encode_GetNumTileBlocksOp(b, *[m.type("i32")] * 3)
        if m.version >= V13_4:
            code.encode_InsertOp(b, m.type("4x8xf32"), part, tile, [n, n])


@writes()
def products(m):
    with m.entry("products") as (b, _):
        f8, acc = m.constant(b, "16x32xf8E4M3FN", 1), m.constant(b, "16x16xf32", 0)
        f8_t = m.constant(b, "32x16xf8E4M3FN", 1)
        pairs = [("f16", "f32"), ("f16", "f16"), ("bf16", "f32"), ("tf32", "f32"), ("f32", "f32"), ("f64", "f64"),
                 ("f8E5M2", "f16")]
        for element, result in pairs:
            lhs, rhs = m.constant(b, f"16x8x{element}", 1), m.constant(b, f"8x16x{element}", 1)
            code.encode_MmaFOp(b, m.type(f"16x16x{result}"), lhs, rhs, m.constant(b, f"16x16x{result}", 0), False)
        code.encode_MmaFOp(b, m.type("16x16xf32"), f8, f8_t, acc, m.version >= V13_3)
        batch = m.constant(b, "2x4x4xf16", 1)
        code.encode_MmaFOp(b, m.type("2x4x4xf32"), batch, batch, m.constant(b, "2x4x4xf32", 0), False)
        i8 = m.constant(b, "16x16xi8", 1)
        for lhs, rhs in [(SIGNED, SIGNED), (UNSIGNED, SIGNED), (SIGNED, UNSIGNED)]:
            code.encode_MmaIOp(b, m.type("16x16xi32"), i8, i8, m.constant(b, "16x16xi32", 0), lhs, rhs)
        if m.version >= V13_3:
            scale, scale_t = m.constant(b, "16x1xf8E8M0FNU", 1), m.constant(b, "1x16xf8E8M0FNU", 1)
            code.encode_MmaFScaledOp(b, m.type("16x16xf32"), f8, f8_t, acc, scale, scale_t)


@writes()
def pointers(m):
    """Loads and stores through pointers with each combination of optional operands."""
    with m.entry("pointers", ["ptr<f32>", "ptr<i8>"]) as (b, [p, _]):
        index = code.encode_IotaOp(b, m.type("8xi32"))
        one = code.encode_ReshapeOp(b, m.type("1xptr<f32>"), p)
        many = code.encode_BroadcastOp(b, m.type("8xptr<f32>"), one)
        at = code.encode_OffsetOp(b, m.type("8xptr<f32>"), many, index)
        mask, pad = m.constant(b, "8xi1", True), m.constant(b, "8xf32", 0)
        tile, token = m.type("8xf32"), m.types.Token
        start = code.encode_MakeTokenOp(b, token)
        weak = (MemoryOrderingSemantics.WEAK, None)
        orders = [weak] + [(o, s) for o in (MemoryOrderingSemantics.RELAXED, MemoryOrderingSemantics.ACQUIRE)
                           for s in MemoryScope]
        tokens = []
        for order, scope in orders:
            _, t = code.encode_LoadPtrTkoOp(b, tile, token, at, None, None, None, order, scope, None)
            tokens.append(t)
        for padding in [None, pad]:
            for after in [None, start]:
                for hint in [None, hints(m, latency=3)]:
                    code.encode_LoadPtrTkoOp(b, tile, token, at, mask, padding, after, *weak, hint)
        joined = code.encode_JoinTokensOp(b, token, tokens)
        for order, scope in [weak, (MemoryOrderingSemantics.RELAXED, MemoryScope.SYS),
                             (MemoryOrderingSemantics.RELEASE, MemoryScope.TL_BLK)]:
            for with_mask in [None, mask]:
                code.encode_StorePtrTkoOp(b, token, at, pad, with_mask, joined, order, scope, hints(m, latency=1))
        code.encode_StorePtrTkoOp(b, token, at, pad, None, None, *weak, None)
        if m.version >= V13_3:
            local = code.encode_AllocaOp(b, m.type("ptr<f32>"), 64, 16, False)
            code.encode_AllocaOp(b, m.type("ptr<i8>"), 1, 1, True)
            code.encode_StorePtrTkoOp(b, token, local, m.constant(b, "f32", 2), None, None, *weak, None)


@writes()
def atomics(m):
    with m.entry("atomics", ["ptr<i32>", "ptr<f32>", "ptr<i64>"]) as (b, [p, q, r]):
        token = code.encode_MakeTokenOp(b, m.types.Token)
        i32, i64, f32, i1 = (m.constant(b, e, 1) for e in ("i32", "i64", "f32", "i1"))
        types = (m.type("i32"), m.types.Token)
        for order in list(MemoryOrderingSemantics)[1:]:
            for scope in MemoryScope:
                code.encode_AtomicCASTkoOp(b, *types, p, i32, i32, None, token, order, scope)
        code.encode_AtomicCASTkoOp(b, *types, p, i32, i32, i1, None, MemoryOrderingSemantics.RELAXED, MemoryScope.SYS)
        code.encode_AtomicCASTkoOp(b, m.type("f32"), m.types.Token, q, f32, f32, i1, token,
                                   MemoryOrderingSemantics.ACQ_REL, MemoryScope.DEVICE)
        for mode in AtomicRMWMode:
            where, value, result = (q, f32, "f32") if mode is AtomicRMWMode.ADDF else (p, i32, "i32")
            for mask, after in [(None, None), (i1, token)]:
                code.encode_AtomicRMWTkoOp(b, m.type(result), m.types.Token, where, value, mask, after,
                                           MemoryOrderingSemantics.ACQ_REL, MemoryScope.DEVICE, mode)
        code.encode_AtomicRMWTkoOp(b, m.type("i64"), m.types.Token, r, i64, i1, None, MemoryOrderingSemantics.RELAXED,
                                   MemoryScope.TL_BLK, AtomicRMWMode.UMAX)


@writes()
def views(m):
    """Each view type with each padding, loaded from and stored to."""
    t = m.types
    with m.entry("views", ["ptr<f32>", "i32", "i64", "ptr<i8>"]) as (b, [p, n, wide, q]):
        token = code.encode_MakeTokenOp(b, t.Token)
        weak = (MemoryOrderingSemantics.WEAK, None)
        matrix_type = m.tensor("f32", [None, 128], [None, 1])
        matrix = code.encode_MakeTensorViewOp(b, matrix_type, p, [n], [n])
        code.encode_MakeTensorViewOp(b, m.tensor("f32", [], []), p, [], [])
        code.encode_MakeTensorViewOp(b, m.tensor("i8", [4, 8, 16], [128, 16, 1]), q, [], [])
        code.encode_MakeTensorViewOp(b, m.tensor("i8", [None], [None]), q, [wide], [wide])
        tile = m.type("4x8xf32")
        value = m.constant(b, "4x8xf32", 0)
        # Which indices are known to be inside, said by every access since 13.4.
        outside = [[x, y] if m.version >= V13_4 else [] for x in (False, True) for y in (False, True)]
        kinds = [t.partition_view([4, 8], matrix_type, [0, 1], padding) for padding in PaddingValue]
        kinds.append(t.partition_view([4, 8], matrix_type, [1, 0], PaddingValue.Zero))
        if m.version >= V13_3:
            kinds += [t.strided_view([4, 8], [3, 5], matrix_type, order, padding)
                      for order, padding in [([0, 1], PaddingValue.Missing), ([1, 0], PaddingValue.NegInf)]]
        for number, kind in enumerate(kinds):
            make = code.encode_MakePartitionViewOp if number <= len(PaddingValue) else code.encode_MakeStridedViewOp
            view = make(b, kind, matrix)
            code.encode_LoadViewTkoOp(b, tile, t.Token, view, [n, n], token, *weak, None,
                                      outside[number % 4])
            if number % 3 == 0:
                code.encode_StoreViewTkoOp(b, t.Token, value, view, [n, n], None, *weak,
                                           hints(m, latency=7, allow_tma=False), outside[0])
            code.encode_GetIndexSpaceShapeOp(b, [m.type("i32")] * 2, view)
        code.encode_GetTensorShapeOp(b, [m.type("i64")] * 2, matrix)
        code.encode_LoadViewTkoOp(b, tile, t.Token, view, [wide, wide], None, MemoryOrderingSemantics.RELAXED,
                                  MemoryScope.SYS, hints(m, latency=2), outside[0])
        code.encode_LoadViewTkoOp(b, tile, t.Token, view, [n, n], token, MemoryOrderingSemantics.ACQUIRE,
                                  MemoryScope.DEVICE, None, outside[0])
        code.encode_StoreViewTkoOp(b, t.Token, value, view, [n, n], token, MemoryOrderingSemantics.RELEASE,
                                   MemoryScope.TL_BLK, None, outside[0])
        if m.version >= V13_3:
            for padding in [PaddingValue.Missing, PaddingValue.Nan]:
                scattered = code.encode_MakeGatherScatterViewOp(
                    b, t.gather_scatter_view([4, 8], matrix_type, 0, padding), matrix)
                rows = code.encode_IotaOp(b, m.type("4xi32"))
                code.encode_LoadViewTkoOp(b, tile, t.Token, scattered, [rows, n], token, *weak, None, outside[0])
                code.encode_StoreViewTkoOp(b, t.Token, value, scattered, [rows, n], token, *weak, None, outside[0])


@writes(since=V13_3)
def reductions_in_memory(m):
    t = m.types
    with m.entry("reductions_in_memory", ["ptr<i32>", "ptr<f16>", "i32"]) as (b, [p, q, n]):
        token = code.encode_MakeTokenOp(b, t.Token)
        for element, pointer, modes in [("i32", p, [x for x in AtomicRMWMode if x.name not in ("ADDF", "XCHG")]),
                                        ("f16", q, [AtomicRMWMode.ADDF])]:
            whole = m.tensor(element, [64, 64], [64, 1])
            tensor = code.encode_MakeTensorViewOp(b, whole, pointer, [], [])
            view = code.encode_MakePartitionViewOp(b, t.partition_view([8, 8], whole, [0, 1], PaddingValue.Missing), tensor)
            value = m.constant(b, f"8x8x{element}", 1)
            for mode in modes:
                for after, scope in [(None, MemoryScope.TL_BLK), (token, MemoryScope.DEVICE)]:
                    inbounds = [True, False] if m.version >= V13_5 else []
                    code.encode_AtomicRedViewTkoOp(b, t.Token, view, [n, n], value, after,
                                                   MemoryOrderingSemantics.RELAXED, scope, mode, inbounds)


@writes()
def control(m):
    """Loops in loops and branches in them; values after a region take the numbers that the region used."""
    i32, f32, tile = m.type("i32"), m.type("f32"), m.type("4xf32")
    with m.entry("control", ["i32", "f32", "i1"]) as (b, [n, x, flag]):
        zero, one = m.constant(b, "i32", 0), m.constant(b, "i32", 1)
        body = code.encode_ForOp(b, [f32, i32], zero, n, one, [x, zero], False)
        with body.new_block([i32, f32, i32]) as (i, total, count):
            branch = code.encode_IfOp(b, [f32], flag)
            with branch.new_block([]):
                inner = code.encode_ForOp(b, [f32], zero, i, one, [total], m.version >= V13_2)
                with inner.new_block([i32, f32]) as (_, carried):
                    code.encode_ContinueOp(b, [code.encode_AddFOp(b, f32, carried, x, NEAREST, False)])
                code.encode_YieldOp(b, inner.done())
            with branch.new_block([]):
                early = code.encode_IfOp(b, [], flag)
                with early.new_block([]):
                    code.encode_ContinueOp(b, [total, count])
                with early.new_block([]):
                    code.encode_YieldOp(b, [])
                early.done()
                code.encode_YieldOp(b, [total])
            [chosen] = branch.done()
            code.encode_ContinueOp(b, [chosen, code.encode_AddIOp(b, i32, count, one, NO_OVERFLOW)])
        total, count = body.done()
        plain = code.encode_ForOp(b, [], zero, count, one, [], False)
        with plain.new_block([i32]):
            code.encode_ContinueOp(b, [])
        plain.done()
        loop = code.encode_LoopOp(b, [tile], [count])
        with loop.new_block([i32]) as (k,):
            less = code.encode_CmpIOp(b, m.type("i1"), k, n, ComparisonPredicate.LESS_THAN, SIGNED)
            branch = code.encode_IfOp(b, [], less)
            with branch.new_block([]):
                code.encode_ContinueOp(b, [code.encode_AddIOp(b, i32, k, one, NO_OVERFLOW)])
            with branch.new_block([]):
                code.encode_BreakOp(b, [m.constant(b, "4xf32", 1)])
            branch.done()
            code.encode_BreakOp(b, [m.counting(b, "4xf32")])
        [result] = loop.done()
        code.encode_NegFOp(b, tile, result)
        endless = code.encode_LoopOp(b, [], [])
        with endless.new_block([]):
            code.encode_BreakOp(b, [])
        endless.done()
        leave = code.encode_IfOp(b, [], flag)
        with leave.new_block([]):
            code.encode_ReturnOp(b, [])
        with leave.new_block([]):
            code.encode_YieldOp(b, [])
        leave.done()
        code.encode_AbsFOp(b, f32, total)


@writes()
def folds(m):
    f32, i32 = m.type("f32"), m.type("i32")
    with m.entry("folds") as (b, _):
        tile, ids = m.constant(b, "4x8xf32", 1), m.constant(b, "4x8xi32", 1)
        for dim, shape in [(0, "8xf32"), (1, "4xf32")]:
            fold = code.encode_ReduceOp(b, [m.type(shape)], [tile], dim, [identity(m, "f32", 0.0)])
            with fold.new_block([f32, f32]) as (lhs, rhs):
                code.encode_YieldOp(b, [code.encode_AddFOp(b, f32, lhs, rhs, NEAREST, False)])
            fold.done()
        pair = code.encode_ReduceOp(b, [m.type("4xf32"), m.type("4xi32")], [tile, ids], 1,
                                    [identity(m, "f32", float("-inf")), identity(m, "i32", -1)])
        with pair.new_block([f32, f32, i32, i32]) as (x, y, i, k):
            more = code.encode_CmpFOp(b, m.type("i1"), x, y, ComparisonPredicate.GREATER_THAN, ComparisonOrdering.ORDERED)
            code.encode_YieldOp(b, [code.encode_SelectOp(b, f32, more, x, y), code.encode_SelectOp(b, i32, more, i, k)])
        pair.done()
        for reverse in [False, True]:
            scan = code.encode_ScanOp(b, [m.type("4x8xf32")], [tile], 1, reverse, [identity(m, "f32", 1.0)])
            with scan.new_block([f32, f32]) as (lhs, rhs):
                code.encode_YieldOp(b, [code.encode_MulFOp(b, f32, lhs, rhs, RoundingMode.ZERO, True)])
            scan.done()
        for element, value in [("i8", -128), ("i64", 1 << 40), ("f16", 65504.0), ("bf16", 1.0), ("f64", 1e300), ("i1", 1)]:
            fold = code.encode_ReduceOp(b, [m.type(element)], [m.constant(b, f"4x{element}", 1)], 0,
                                        [identity(m, element, value)])
            with fold.new_block([m.type(element)] * 2) as (lhs, _):
                code.encode_YieldOp(b, [lhs])
            fold.done()


@writes()
def assumptions(m):
    with m.entry("assumptions", ["i32", "i64", "ptr<f32>"]) as (b, [n, wide, p]):
        tile = m.constant(b, "4x8xi32", 8)
        for predicate in [DivBy(16), DivBy(1 << 62), Bounded(0, None), Bounded(None, 7), Bounded(-5, 5),
                          Bounded(None, None)]:
            code.encode_AssumeOp(b, m.type("i64"), wide, predicate)
        code.encode_AssumeOp(b, m.type("ptr<f32>"), p, DivBy(16))
        for predicate in [DivBy(8, 4, 1), DivBy(4, 2, 0), Same([2, 4]), Same([1, 1])]:
            code.encode_AssumeOp(b, m.type("4x8xi32"), tile, predicate)
        view_type = m.tensor("f32", [None], [1])
        view = code.encode_MakeTensorViewOp(b, view_type, p, [n], [])
        code.encode_AssumeOp(b, view_type, view, DivBy(32))


@writes(functions=2, producer="girih tests")
def globals_and_entries(m):
    """Two entries, globals of each visibility, hints of each kind, and the name of the module's producer."""
    section = m.writer.global_section
    section.define_global("table", m.type("4xf32"), b"".join(code.float_to_bits(v, code.SimpleType.F32).to_bytes(4, "little")
                                                             for v in (0.1, 0.2, 0.3, 0.4)), alignment=16)
    section.define_global("flags", m.type("8xi1"), b"\x35")
    section.define_global("one", m.type("1xi64"), (1).to_bytes(8, "little"), alignment=8)
    if m.version >= V13_3:
        section.define_global("secret", m.type("2xi8"), b"\x01\xff", constant=True)
        section.define_global("hidden", m.type("2xi16"), b"\x01\0\2\0", symbol_visibility=SymbolVisibility.Private)
    target = {"sm_100": EntryHints(num_cta_in_cga=2, occupancy=4), "sm_120": EntryHints()}
    if m.version >= V13_3:
        target["default"] = EntryHints(num_worker_warps_per_cta=8, occupancy=32)
    with m.entry("first", ["i32"], hints=target) as (b, _):
        address = code.encode_GetGlobalOp(b, m.type("ptr<f32>"), "table")
        code.encode_LoadPtrTkoOp(b, m.type("f32"), m.types.Token, address, None, None, None, MemoryOrderingSemantics.WEAK,
                                 None, None)
    with m.entry("second", ["ptr<i8>", "i1", "f64"]) as (b, _):
        code.encode_GetGlobalOp(b, m.type("ptr<i64>"), "one")


@writes()
def messages(m):
    """Prints and asserts, with every escape in their strings."""
    with m.entry("messages", ["i32", "f32"]) as (b, [n, x]):
        token = m.types.Token if m.version >= V13_2 else None

        def say(text, args, after=None):
            return code.encode_PrintTkoOp(b, token, args, after, text)
        first = say("plain\n", [])
        say("%d and %f\n", [n, x], first)
        say("100%% \"quoted\" \\ \t \x01 \x7f grüß\n", [])
        say("%5.2e %i %x", [x, n, m.constant(b, "4xi32", 3)], first)
        code.encode_AssertOp(b, m.constant(b, "4xi1", True), "it holds")
        code.encode_AssertOp(b, m.constant(b, "i1", [True]), "line\nof \"two\" 'parts'\\")


@writes(since=V13_4)
def dependent_launch(m):
    with m.entry("dependent_launch") as (b, _):
        token = code.encode_GdcWaitTkoOp(b, m.types.Token, None)
        token = code.encode_GdcWaitTkoOp(b, m.types.Token, token)
        token = code.encode_MemoryFenceAliasTkoOp(b, m.types.Token, token)
        code.encode_GdcLaunchDependentsTkoOp(b, m.types.Token, token)
        code.encode_GdcLaunchDependentsTkoOp(b, m.types.Token, None)


@writes(since=V13_4)
def pointer_attributes(m):
    """The attribute that pointers and tensor views can carry since 13.4."""
    marked = m.types.tile(m.types.pointer(m.element("f32"), PtrAttr.Default), [])
    with m.entry("pointer_attributes", [marked, "i32"]) as (b, [p, n]):
        kind = m.tensor("f32", [None], [1], PtrAttr.Default)
        code.encode_MakeTensorViewOp(b, kind, p, [n], [])


@writes()
def hinted(m):
    """Hint dictionaries for several architectures and with values of each kind."""
    with m.entry("hinted", ["ptr<f32>"], hints={"sm_90": EntryHints(num_cta_in_cga=1)}) as (b, [p]):
        both = OptimizationHints([("sm_100", Dictionary([("latency", Integer.create_i32(10))])),
                                  ("sm_90", Dictionary([])),
                                  ("sm_120", Dictionary([("latency", Integer.create_i32(1))]))])
        for hint in [both, OptimizationHints([])]:
            code.encode_LoadPtrTkoOp(b, m.type("f32"), m.types.Token, p, None, None, None, MemoryOrderingSemantics.WEAK,
                                     None, hint)
        whole = m.tensor("f32", [16], [1])
        view = code.encode_MakePartitionViewOp(
            b, m.types.partition_view([4], whole, [0], PaddingValue.Missing),
            code.encode_MakeTensorViewOp(b, whole, p, [], []))
        hint = OptimizationHints([("sm_100", Dictionary([("allow_tma", Bool(True)), ("latency", Integer.create_i32(4))])),
                                  ("sm_90", Dictionary([("allow_tma", Bool(False))]))])
        code.encode_LoadViewTkoOp(b, m.type("4xf32"), m.types.Token, view, [m.constant(b, "i32", 0)], None,
                                  MemoryOrderingSemantics.WEAK, None, hint, [False] if m.version >= V13_4 else [])


@writes(functions=2)
def locations(m):
    """Every kind of debug attribute: files, compile units, subprograms, lexical blocks, calls in calls, and none."""
    d = m.debug
    file = d.file("kernels.py", "girih/examples")
    other = d.file('odd "name".py', "")
    unit = d.compile_unit(file)
    kernel = d.subprogram(file, 3, "kernel", "located", unit, 4)
    helper = d.subprogram(other, 40, "helper", "helper@odd:40:1_s0", d.compile_unit(other), 40)
    block = d.lexical_block(kernel, file, 6, 9)
    nested = d.lexical_block(block, file, 7, 13)
    places = [d.loc(kernel, "girih/examples/kernels.py", 5, 1), d.loc(block, "girih/examples/kernels.py", 6, 12),
              d.loc(nested, "girih/examples/kernels.py", 7, 0), code.MISSING_DEBUG_ATTR_ID]
    inlined = d.call_site(d.loc(helper, 'odd "name".py', 41, 5), places[0])
    deep = d.call_site(d.loc(helper, 'odd "name".py', 42, 7), inlined)
    start = d.loc(kernel, "girih/examples/kernels.py", 3, 0)
    with m.entry("located", ["f32"], debug=start) as (b, [x]):
        for place in [*places, inlined, deep, inlined]:
            with b.debug_attr(place):
                code.encode_NegFOp(b, m.type("f32"), x)
        with b.debug_attr(places[0]):
            branch = code.encode_IfOp(b, [], m.constant(b, "i1", True))
            with branch.new_block([]):
                with b.debug_attr(deep):
                    code.encode_AbsFOp(b, m.type("f32"), x)
                code.encode_YieldOp(b, [])
            with branch.new_block([]):
                code.encode_YieldOp(b, [])
            branch.done()
    with m.entry("nowhere", ["f32"]) as (b, [x]):
        code.encode_NegFOp(b, m.type("f32"), x)


class Multicast:
    """The pointer attribute that the package does not name yet."""
    _value_ = b"\x02"


@writes(since=V13_5)
def multimem(m):
    """Operations on memory that several devices share."""
    t = m.types
    pointers = [t.tile(t.pointer(m.element(e), Multicast), []) for e in ("f32", "i32")]
    with m.entry("multimem", [*pointers, "i32"]) as (b, [p, q, n]):
        whole = m.tensor("f32", [64], [1], Multicast)
        view = code.encode_MakePartitionViewOp(b, t.partition_view([8], whole, [0], PaddingValue.Missing),
                                               code.encode_MakeTensorViewOp(b, whole, p, [], []))
        token, value = code.encode_MakeTokenOp(b, t.Token), m.constant(b, "8xf32", 1)
        relaxed, weak, device = MemoryOrderingSemantics.RELAXED, MemoryOrderingSemantics.WEAK, MemoryScope.DEVICE
        add = MultimemReductionKind.ADD
        code.encode_MultimemLoadReduceViewTkoOp(b, m.type("8xf32"), t.Token, view, [n], token, relaxed, device, add, [False])
        code.encode_MultimemLoadReduceViewTkoOp(b, m.type("8xf32"), t.Token, view, [n], None, weak, None, add, [True])
        code.encode_MultimemReduceViewTkoOp(b, t.Token, view, value, [n], token, relaxed, device, add, [False])
        code.encode_MultimemStoreViewTkoOp(b, t.Token, view, value, [n], None, weak, None, [False])
        code.encode_MultimemStoreViewTkoOp(b, t.Token, view, value, [n], token, relaxed, device, [True])
        sums = m.tensor("i32", [64], [1], Multicast)
        words = code.encode_MakePartitionViewOp(b, t.partition_view([8], sums, [0], PaddingValue.Missing),
                                                code.encode_MakeTensorViewOp(b, sums, q, [], []))
        whole_numbers = m.constant(b, "8xi32", 1)
        for kind in MultimemReductionKind:
            code.encode_MultimemReduceViewTkoOp(b, t.Token, words, whole_numbers, [n], None, relaxed, MemoryScope.SYS, kind,
                                                [False])


@writes(since=V13_5, preview=True)
def preview_call(m):
    with m.entry("preview_call", ["i32"]) as (b, [n]):
        code.encode_PreviewCallOp(b, [], [n], "elsewhere", [], None, None)


@writes()
def no_else(m):
    """A branch whose second region has no block, as other writers leave it."""
    with m.entry("no_else", ["i1", "f32"]) as (b, [flag, x]):
        branch = code.encode_IfOp(b, [], flag)
        with branch.new_block([]):
            code.encode_AbsFOp(b, m.type("f32"), x)
            code.encode_YieldOp(b, [])
        b.buf.append(0)
        code.encode_NegFOp(b, m.type("f32"), x)


def sections(data):
    """The (id, alignment, payload) of a file, in order."""
    at, found = 12, []

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
    while data[at] != 0:
        head, at = data[at], at + 1
        length = number()
        alignment = number() if head & 0x80 else 1
        at += -at % alignment
        found.append((head & 0x7F, alignment, data[at:at + length]))
        at += length
    return found


def arranged(data, order):
    """A file with its sections in another order, those that are not named left out, and wider alignment."""
    out = bytearray(data[:12])
    by_id = {number: (alignment, payload) for number, alignment, payload in sections(data)}
    for number in order:
        if number not in by_id:
            continue
        alignment, payload = by_id[number]
        out.append(number | (0x80 if alignment > 1 else 0))
        encode_varint(len(payload), out)
        if alignment > 1:
            encode_varint(alignment * 4, out)
            out += b"\xcf" * (-len(out) % (alignment * 4))
        out += payload
    return bytes(out + b"\0")


@writes()
def located_loop(m):
    d = m.debug
    file = d.file("loop.py", "")
    kernel = d.subprogram(file, 1, "loop", "located_loop", d.compile_unit(file), 1)
    place = d.loc(kernel, "loop.py", 2, 4)
    with m.entry("located_loop", ["i32"], debug=place) as (b, [n]):
        zero = m.constant(b, "i32", 0)
        body = code.encode_ForOp(b, [], zero, n, m.constant(b, "i32", 1), [], False)
        with body.new_block([m.type("i32")]):
            code.encode_ContinueOp(b, [])
        body.done()


def without_locations(data):
    """A file of one function that has no section of locations and says so."""
    [body] = [payload for number, _, payload in sections(data) if number == 2]
    assert body[4] == 1, "the function's number in the section of locations"
    return arranged(data.replace(body, body[:4] + b"\0" + body[5:]), [1, 7, 5, 4, 6, 2])


# Strings and types last, as the open writer of the format puts them; then without locations.
MODULES["other_order"] = lambda version: arranged(MODULES["globals_and_entries"](version), [6, 2, 4, 3, 5, 7, 1])
MODULES["no_locations"] = lambda version: without_locations(MODULES["located_loop"](version))
