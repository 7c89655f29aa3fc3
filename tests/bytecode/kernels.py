"""Small kernels that together use each kind of parameter, view, loop and inlined function that cuda-tile compiles. Nobody
launches them; `KERNELS` gives each with the signatures to export it for."""
import dataclasses
from typing import Annotated

import cuda.tile as ct
from cuda.tile.compilation import (ArrayConstraint, CallingConvention, ConstantConstraint, KernelSignature, ListConstraint,
                                   ScalarConstraint, TupleConstraint)

KERNELS = []
Size = ct.Constant[int]


def array(dtype, ndim, contiguous=True, aligned=True, groups=(), index=ct.int32, **more):
    strides = [None] * (ndim - 1) + [1 if contiguous else None] if ndim else []
    if aligned:
        more = dict(base_addr_divisible_by=16, shape_divisible_by=16, stride_divisible_by=[16] * (ndim - 1) + [1]) | more
    return ArrayConstraint(dtype, ndim, index_dtype=index, stride_lower_bound_incl=0, alias_groups=groups,
                           may_alias_internally=False, stride_constant=strides, **more)


def exported(*signatures, convention=CallingConvention.cutile_python_v1(), since="13.1"):
    """Registers a kernel for these lists of parameters, in one module."""
    def register(kernel):
        named = [KernelSignature([ConstantConstraint(p) if isinstance(p, (int, float)) else p for p in parameters], convention)
                 for parameters in signatures]
        KERNELS.append((kernel._annotated_function.pyfunc.__name__, kernel, named, since))
        return kernel
    return register


f32 = array(ct.float32, 1)
matrix = array(ct.float32, 2)
loose = array(ct.float32, 2, contiguous=False, aligned=False)


@exported([f32, f32, f32, 16], [array(ct.float16, 1), array(ct.float16, 1), array(ct.float16, 1), 64])
@ct.kernel
def add(a, b, c, t: Size):
    i = ct.bid(0)
    ct.store(c, (i,), ct.load(a, (i,), (t,)) + ct.load(b, (i,), (t,)))


def softmax_row(row):
    shifted = row - ct.max(row)
    powers = ct.exp(shifted)
    return powers / ct.sum(powers)


@exported([matrix, matrix, 32])
@ct.kernel(occupancy=2, num_ctas=ct.ByTarget(sm_100=2, default=1))
def softmax(x, y, n: Size):
    i = ct.bid(0)
    row = ct.load(x, (i, 0), (1, n), padding_mode=ct.PaddingMode.NEG_INF)
    ct.store(y, (i, 0), softmax_row(row))


@exported([array(ct.float16, 2), array(ct.float16, 2), matrix, 16, 16, 16], [loose, loose, loose, 4, 8, 2])
@ct.kernel
def matmul(a, b, c, tm: Size, tn: Size, tk: Size):
    i, j = ct.bid(0), ct.bid(1)
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(a, 1, (tm, tk))):
        x = ct.load(a, (i, k), (tm, tk), padding_mode=ct.PaddingMode.ZERO, latency=4)
        y = ct.load(b, (k, j), (tk, tn), padding_mode=ct.PaddingMode.ZERO, allow_tma=False)
        total = ct.mma(x, y, total)
    ct.store(c, (i, j), total)


@exported([f32, ScalarConstraint(ct.int32), ScalarConstraint(ct.float32)])
@ct.kernel
def branches(x, n, limit):
    """A while in a for in an if, with breaks, and values that cross all of them."""
    count = 0
    total = ct.full((8,), 0.0, dtype=ct.float32)
    if n > 3:
        for i in range(0, n, 2):
            tile = ct.load(x, (i,), (8,))
            if i == 7:
                continue
            left = i
            while left > 0:
                total = total + tile
                left = left - 3
                if ct.sum(total) > limit:
                    count = count + 1
                    break
    elif n < 0:
        total = total - 1.0
        return
    else:
        count = -1
    ct.store(x, (count,), total)


@exported([array(ct.int32, 1), f32, array(ct.int64, 1)])
@ct.kernel
def gathering(index, x, counters):
    at = ct.gather(index, (ct.arange(16, dtype=ct.int32),))
    values = ct.gather(x, (at,), padding_value=-1.0)
    ct.scatter(x, (at,), ct.where(values > 0.0, values, -values), mask=at < 100)
    ct.atomic_add(counters, (at,), 1)
    ct.atomic_max(counters, (at,), 7, memory_order=ct.MemoryOrder.RELAXED, memory_scope=ct.MemoryScope.SYS)
    ct.atomic_cas(counters, (0,), 5, 6)


@exported([ListConstraint(matrix, alias_groups=(), elements_may_alias=False), f32])
@ct.kernel
def list_of_arrays(matrices, y):
    total = ct.full((8,), 0.0, dtype=ct.float32)
    for i in range(len(matrices)):
        total = total + ct.load(matrices[i], (ct.bid(0), 0), (1, 8)).reshape((8,))
    ct.store(y, (ct.bid(0),), total)


@exported([TupleConstraint([f32, TupleConstraint([f32, ScalarConstraint(ct.float32)])]), 8],
          convention=CallingConvention.cutile_python_v2())
@ct.kernel
def tuples(pair, t: Size):
    x, (y, scale) = pair
    i = ct.bid(0)
    ct.store(x, (i,), ct.load(y, (i,), (t,)) * scale)


Known = Annotated[ct.Array, ct.ArrayAnnotation(static_shape_dims=(0,), static_stride_dims=(0, 1))]


@exported([ArrayConstraint(ct.float32, 2, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=(),
                           may_alias_internally=False, stride_constant=[64, 1], shape_constant=[32, None])],
          convention=CallingConvention.cutile_python_v2())
@ct.kernel
def static_sizes(x: Known):
    for i in range(x.shape[0] // 8):
        ct.store(x, (i, 0), ct.load(x, (i, 0), (8, 64)) + x.strides[0])


@exported([array(ct.float32, 2, index=ct.int64), ScalarConstraint(ct.int64)])
@ct.kernel
def wide_indices(x: ct.IndexedWithInt64, start: ct.ScalarInt64):
    tile = ct.load(x, (start + ct.bid(0), 0), (4, 8), order="F", check_bounds=True)
    ct.store(x, (start, 1), tile, order=(1, 0))


@dataclasses.dataclass(frozen=True)
class Best:
    value: ct.Tile
    place: ct.Tile


def better(a, i, b, k):
    take = (a > b) | ((a == b) & (i < k))
    return ct.where(take, a, b), ct.where(take, i, k)


@exported([matrix, array(ct.int32, 1), f32])
@ct.kernel
def folding(x, where, y):
    i = ct.bid(0)
    tile = ct.load(x, (i, 0), (4, 16))
    best = Best(ct.max(tile, axis=1), ct.argmax(tile, axis=1))
    ct.store(where, (i,), best.place)
    columns = ct.broadcast_to(ct.arange(16, dtype=ct.int32)[None, :], (4, 16))
    value, place = ct.reduce((tile, columns), 1, lambda a, i, b, k: better(a, i, b, k), (-1e30, 0))
    ct.store(y, (i,), best.value + value + place.astype(ct.float32))
    running = ct.cumsum(tile, 1, reverse=True) * ct.scan(tile, 0, lambda a, b: a * b, 1.0)
    ct.store(x, (i, 0), running)


@exported([f32, array(ct.uint8, 1), array(ct.bool_, 1)])
@ct.kernel
def conversions(x, y, z):
    """Casts between kinds and widths, unsigned arithmetic, shifts, and integer division that rounds down."""
    i = ct.bid(0)
    tile = ct.load(x, (i,), (16,))
    whole = tile.astype(ct.int32)
    bytes_ = ct.load(y, (i,), (16,))
    mixed = (whole // 3 + whole % 5) ^ (whole << 2) | (whole >> 1) & ~whole
    halves = tile.astype(ct.float16).astype(ct.bfloat16).astype(ct.float64)
    ct.store(y, (i,), bytes_ * 7 + bytes_ % 3 + mixed.astype(ct.uint8))
    ct.store(x, (i,), halves.astype(ct.float32) + ct.bitcast(mixed, ct.float32) + mixed.astype(ct.float8_e4m3fn).astype(ct.float32))
    ct.store(z, (i,), (mixed > 0) & (bytes_ != 5) | ct.isnan(tile))


@exported([matrix])
@ct.kernel
def functions(x):
    """Each function of one and of two floats, and the rounding and flushing that some of them take."""
    a = ct.load(x, (0, 0), (4, 4))
    b = ct.load(x, (1, 0), (4, 4))
    r = ct.sin(a) + ct.cos(a) - ct.tan(a) * ct.sinh(a) / ct.cosh(a)
    r = r + ct.tanh(a) + ct.exp(a) + ct.exp2(a, flush_to_zero=True) + ct.log(a) + ct.log2(b)
    r = r + ct.sqrt(a, rounding_mode=ct.RoundingMode.APPROX) + ct.rsqrt(b) + ct.floor(a) + ct.ceil(b) + ct.abs(-a)
    r = r + a**b + a % b + a // b + ct.minimum(a, b) + ct.maximum(a, b, propagate_nan=True)
    r = ct.truediv(r, a, rounding_mode=ct.RoundingMode.FULL) + ct.mul(a, b, rounding_mode=ct.RoundingMode.RZ)
    ct.store(x, (0, 0), r)


@exported([array(ct.float32, 3), ScalarConstraint(ct.int32)])
@ct.kernel
def reshaping(x, n):
    tile = ct.load(x, (0, 0, 0), (2, 4, 8))
    flat = ct.permute(tile, (2, 0, 1)).reshape((8, 8))
    part = ct.extract(flat, (n, 0), (4, 8))
    both = ct.cat((part, ct.transpose(part.reshape((8, 4)))), 0)
    ct.store(x, (0, 0, 0), (both + ct.arange(8, dtype=ct.int32)[:, None]).reshape((2, 4, 8)))


@exported([f32, ScalarConstraint(ct.int32)])
@ct.kernel
def saying(x, n):
    tile = ct.load(x, (0,), (8,))
    ct.printf("n = %d, 100%% of %f\n", n, tile)
    print(f"tile {tile}", n, sep=", ", end="!\n")
    ct.assert_(n > 0, "n must be positive")
    ct.assert_(tile == tile)


@exported([array(ct.float32, 2, groups=("g",)), array(ct.float32, 2, groups=("g",)), array(ct.float32, 1, groups=("g", "h")),
           array(ct.int32, 1, groups=("h",))])
@ct.kernel
def aliases(a, b, c, d):
    """Arrays that may overlap, so that loads and stores are ordered by tokens, through branches and loops too."""
    for i in range(4):
        tile = ct.load(a, (i, 0), (4, 4))
        if i > ct.bid(0):
            ct.store(b, (i, 0), tile)
            ct.store(c, (i,), tile.reshape((16,)))
        else:
            ct.store(d, (i,), ct.load(d, (i,), (4,)) + 1)
    ct.store(a, (0, 0), ct.load(b, (1, 0), (4, 4)))


@exported([matrix, array(ct.int32, 1), array(ct.int32, 2)], since="13.3")
@ct.kernel
def newer_views(x, rows, counts):
    """Strided and scattered views, reductions in memory, packed bytes."""
    overlapping = x.tiled_view((4, 8), padding_mode=ct.PaddingMode.ZERO, traversal_steps=(2, 3))
    tile = overlapping.load((ct.bid(0), 1))
    picked = ct.load_advanced_indexing(x, (ct.load(rows, (0,), (4,)), ct.Slice(8, 8)))
    counts.tiled_view((4, 8)).atomic_store_add((0, 0), (tile > picked).astype(ct.int32))
    packed = ct.pack_to_bytes((tile + picked).reshape((32,)).astype(ct.float16))
    ct.store(x, (0, 0), ct.unpack_from_bytes(packed, ct.float16).astype(ct.float32).reshape((4, 8)))
    ct.store_advanced_indexing(x, (ct.load(rows, (1,), (4,)), ct.Slice(0, 8)), tile)


@exported([array(ct.float8_e4m3fn, 2), array(ct.float8_e8m0fnu, 2), matrix], since="13.3")
@ct.kernel(num_worker_warps=8)
def scaled(x, scale, y):
    a, s = ct.load(x, (0, 0), (16, 32)), ct.load(scale, (0, 0), (16, 1))
    b, r = ct.load(x, (0, 0), (32, 16), order="F"), ct.load(scale, (0, 0), (1, 16), order="F")
    ct.store(y, (0, 0), ct.mma_scaled(a, s, b, r, ct.zeros((16, 16), ct.float32)))


@exported([matrix, f32], since="13.4")
@ct.kernel
def newest(x, y):
    ct.grid_dependency_control_wait()
    tile = ct.load(x, (ct.bid(0), 0), (4, 8), check_bounds=False)
    ct.grid_dependency_control_launch_dependents()
    ct.store(x, (ct.bid(0), 0), ct.insert(tile, (1, 0), ct.load(y, (0,), (8,)).reshape((1, 8))) ** 3, check_bounds=False)
