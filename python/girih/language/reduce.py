"""Reductions and scans along a dimension.

Sums, products, extremes and bit operations become Tile IR's `reduce` and `scan`, whose starting values are known. A
function of the user's has no known starting value: it is applied to halves of the tile, log2(n) times, in an order that
depends on nothing but n.
"""

from __future__ import annotations

from typing import Any

from ..frontend import types as ty
from ..frontend.builder import REGION, Arg, Region, Value, commas, spell_number
from ..frontend.errors import OUTSIDE, Code
from ..frontend.tensor import (
    as_tensor,
    axis_of,
    broadcast_to,
    builder,
    cast,
    compute,
    fail,
    reshape_to,
    select,
    static,
    static_int,
    tensor,
    truth,
    unwrap,
)
from . import core, elementwise, messages
from .core import builtin, part

INF = float("inf")


def _axis(x: tensor, axis: Any) -> tuple[tensor, int]:
    """The tile and the axis; without an axis, all elements in one dimension."""
    if unwrap(axis) is None:
        return (reshape_to(x, (x.numel,)) if x.ndim != 1 else x), 0
    if not x.shape:
        raise fail("a scalar cannot be reduced", code=Code.OPERAND)
    return x, axis_of(x, axis)


def _fold_with(
    tiles: tuple[tensor, ...], axis: int, identities: tuple, combine, scan: bool = False, reverse: bool = False
) -> tuple[tensor, ...]:
    """Tile IR's `reduce` or `scan` of tiles; `combine(elements, accumulators)` gives the new accumulators."""
    b = builder()
    pairs = [(Value(t.dtype, (), hint="x"), Value(t.dtype, (), hint="acc")) for t in tiles]
    region = Region()
    b.regions.append(region)
    elements = tuple(tensor(e, e.type) for e, _ in pairs)
    accumulators = tuple(tensor(a, a.type) for _, a in pairs)
    new = [r.value for r in combine(elements, accumulators)]
    b.op(["yield ", *commas(new), f" : {', '.join(r.ir_type() for r in new)}"], pure=False)
    b.regions.pop()
    shape = tiles[0].shape
    shape = shape if scan else (*shape[:axis], *shape[axis + 1 :])
    results = [Value(t.dtype, shape) for t in tiles]
    starts = ", ".join(f"{spell_number(t.dtype, i)} : {t.dtype.ir}" for t, i in zip(tiles, identities))
    head = f" dim={axis} {f'reverse={str(reverse).lower()} ' if scan else ''}identities=[{starts}]"
    types = ", ".join(t.value.ir_type() for t in tiles), ", ".join(r.ir_type() for r in results)
    pieces: list = [
        "scan " if scan else "reduce ",
        *commas([t.value for t in tiles]),
        f"{head} : {types[0]} -> {types[1]} (",
    ]
    for i, (element, accumulator) in enumerate(pairs):
        ir = element.ir_type()
        pieces += [", " if i else "", Arg(element), f": {ir}, ", Arg(accumulator), f": {ir}"]
    b.op([*pieces, ") ", REGION], results, (region,))
    return tuple(tensor(r, r.type) for r in results)


def _known(op: str, x: tensor, axis: int, identity: float | int, scan: bool = False, reverse: bool = False) -> tensor:
    """`reduce` or `scan` with one of Tile IR's operations."""

    def combine(elements, accumulators):
        return (compute(x.dtype, (), *_combine(op, elements[0], accumulators[0])),)

    return _fold_with((x,), axis, (identity,), combine, scan, reverse)[0]


def _combine(op: str, x: tensor, acc: tensor) -> tuple:
    sign = f" {x.dtype.signedness}" if op in ("maxi", "mini") else ""
    return (f"{op} ", x, ", ", acc, f"{sign} : {x.value.ir_type()}")


def _kept(result: tensor, x: tensor, axis: Any, keep_dims: Any) -> tensor:
    if not static(keep_dims, "keep_dims"):
        return result
    if unwrap(axis) is None:
        return reshape_to(result, (1,) * x.ndim)
    at = axis_of(x, axis)
    return reshape_to(result, (*x.shape[:at], 1, *x.shape[at + 1 :]))


def _widened(x: tensor, name: str) -> tensor:
    """The type a sum or a product is computed in: at least 32 bits."""
    if x.dtype.is_ptr():
        raise fail(f"{name} is not defined for an address, {x.describe()}", code=Code.ADDRESS)
    if x.dtype.is_floating():
        return cast(x, ty.float32) if x.dtype.bits < 32 else x
    return cast(x, ty.uint32 if x.dtype.kind == "uint" else ty.int32) if x.dtype.bits < 32 else x


def _fold(name: str, x: Any, axis: Any, keep_dims: Any, identity: int, dtype: Any = None) -> tensor:
    x = as_tensor(x)
    if unwrap(dtype) is not None:
        x = cast(x, dtype)
    wide = _widened(x, name)
    flat, at = _axis(wide, axis)
    op = {"sum": "add", "prod": "mul"}[name] + ("f" if wide.dtype.is_floating() else "i")
    result = _kept(_known(op, flat, at, identity), x, axis, keep_dims)
    return cast(result, ty.float16) if x.dtype == ty.float16 else result


@builtin(method=True)
def sum(x, axis=None, keep_dims=False, dtype=None):
    """The sum along `axis`, or of all elements.

    Computed in at least 32 bits: float16 gives float16, bfloat16 gives float32, small integers and booleans int32.

    Example:
        >>> girih.sum(girih.arange(0, 4))
        6 : int32
        >>> girih.sum(girih.reshape(girih.arange(0, 4), (2, 2)), axis=0)
        [2, 4] : int32[2]
    """
    return _fold("sum", x, axis, keep_dims, 0, dtype)


@builtin(method=True)
def prod(x, axis=None, keep_dims=False):
    """The product along `axis`, or of all elements; types as for `sum`.

    Example:
        >>> girih.prod(girih.arange(1, 5), axis=0)
        24 : int32
    """
    return _fold("prod", x, axis, keep_dims, 1)


@builtin
def reduce_sum(x):
    """The sum of all elements, a scalar.

    Example:
        >>> girih.reduce_sum(girih.arange(0, 4))
        6 : int32
    """
    return sum(x)


@builtin
def reduce_max(x):
    """The greatest of all elements, a scalar.

    Example:
        >>> girih.reduce_max(girih.arange(0, 4))
        3 : int32
    """
    return max(x)


def _least(dtype: ty.DType) -> float | int:
    return -INF if dtype.is_floating() else ty.integer_range(dtype)[0]


def _greatest(dtype: ty.DType) -> float | int:
    return INF if dtype.is_floating() else ty.integer_range(dtype)[1]


def _extreme(word: str, x: Any, axis: Any, keep_dims: Any, with_index: Any, left: Any) -> Any:
    x = as_tensor(x)
    if static(with_index, "return_indices"):
        value, index = _arg(word, x, axis, left)
        return _kept(value, x, axis, keep_dims), _kept(index, x, axis, keep_dims)
    wide = _widened(x, word)
    flat, at = _axis(wide, axis)
    identity = _least(wide.dtype) if word == "max" else _greatest(wide.dtype)
    op = word + ("f" if wide.dtype.is_floating() else "i")
    return _kept(_known(op, flat, at, identity), x, axis, keep_dims)


@builtin(method=True)
def max(x, axis=None, return_indices=False, return_indices_tie_break_left=True, keep_dims=False):
    """The greatest element along `axis`, NaNs left out; with `return_indices`, also where it is (int32).

    Elements of less than 32 bits give float32 or int32.

    Example:
        >>> x = girih.load(floats + girih.arange(0, 4))
        >>> girih.max(x, axis=0)
        3 : float32
        >>> girih.max(x, axis=0, return_indices=True)
        3 : float32
        3 : int32
    """
    return _extreme("max", x, axis, keep_dims, return_indices, return_indices_tie_break_left)


@builtin(method=True)
def min(x, axis=None, return_indices=False, return_indices_tie_break_left=True, keep_dims=False):
    """The least element along `axis`, NaNs left out; with `return_indices`, also where it is (int32).

    Elements of less than 32 bits give float32 or int32.

    Example:
        >>> girih.min(girih.load(floats + girih.arange(0, 4)), axis=0)
        0 : float32
    """
    return _extreme("min", x, axis, keep_dims, return_indices, return_indices_tie_break_left)


def _arg(word: str, x: tensor, axis: Any, left: Any) -> tuple[tensor, tensor]:
    """The extreme value and its index: of equal ones the first; a NaN is the worst of all.

    The index is the least one whose element is the extreme value. Each of the two folds takes its elements in any order, as a fold
    of pairs does not: vectors and threads share them.
    """
    x = _widened(x, f"arg{word}")
    x, at = _axis(x, axis)
    worst = _least(x.dtype) if word == "max" else _greatest(x.dtype)
    if x.dtype.is_floating():
        x = select(x == x, x, worst)
    along = [1] * x.ndim
    along[at] = x.shape[at]
    index = broadcast_to(reshape_to(core.arange(0, x.shape[at]), tuple(along)), x.shape)
    value = _known(word + ("f" if x.dtype.is_floating() else "i"), x, at, worst)
    row = broadcast_to(reshape_to(value, (*x.shape[:at], 1, *x.shape[at + 1 :])), x.shape)
    behind = ty.integer_range(ty.int32)[1]
    return value, _known("mini", select(x == row, index, behind), at, behind)


@builtin(method=True)
def argmax(x, axis, tie_break_left=True, keep_dims=False):
    """The index of the greatest element along `axis`: int32; of equal ones the first. A NaN counts as -infinity.

    Example:
        >>> girih.argmax(girih.arange(0, 4), axis=0)
        3 : int32
    """
    x = as_tensor(x)
    return _kept(_arg("max", x, axis, tie_break_left)[1], x, axis, keep_dims)


@builtin(method=True)
def argmin(x, axis, tie_break_left=True, keep_dims=False):
    """The index of the least element along `axis`: int32; of equal ones the first. A NaN counts as infinity.

    Example:
        >>> girih.argmin(girih.arange(0, 4), axis=0)
        0 : int32
    """
    x = as_tensor(x)
    return _kept(_arg("min", x, axis, tie_break_left)[1], x, axis, keep_dims)


@builtin(method=True)
def xor_sum(x, axis=None, keep_dims=False):
    """The exclusive or of the elements along `axis`; integers.

    Example:
        >>> girih.xor_sum(girih.arange(0, 4))
        0 : int32
    """
    x = as_tensor(x)
    if x.dtype.is_floating():
        raise fail(f"xor_sum is defined for integers, not for {x.describe()}", code=Code.ELEMENT_TYPE)
    flat, at = _axis(x, axis)
    return _kept(_known("xori", flat, at, 0), x, axis, keep_dims)


@builtin(method=True)
def reduce_or(x, axis=None, keep_dims=False):
    """The bitwise or of the elements along `axis`, or of all; integers of any shape.

    Example:
        >>> girih.reduce_or(girih.arange(0, 4), axis=0)
        3 : int32
    """
    x = as_tensor(x)
    if not x.dtype.is_int():
        raise fail(f"reduce_or is defined for integers, not for {x.describe()}", code=Code.ELEMENT_TYPE)
    flat, at = _axis(x, axis)
    return _kept(_known("ori", flat, at, 0), x, axis, keep_dims)


def _user_function(function: Any) -> Any:
    """The function given to `reduce` or `associative_scan`, as Python's own call."""
    from ..frontend import calls

    tracer = calls.CURRENT_TRACER.get()

    def call(*args):
        result = unwrap(calls.call(tracer, function, list(args), {}))
        return tuple(result) if isinstance(result, (tuple, list)) else (result,)

    return call


def _tiles(x: Any, who: str) -> tuple[tuple[tensor, ...], bool]:
    x = unwrap(x)
    several = isinstance(x, (tuple, list))
    tiles = tuple(as_tensor(t) for t in (x if several else (x,)))
    if any(t.shape != tiles[0].shape for t in tiles):
        raise fail(f"{who} takes tiles of one shape, not {' and '.join(t.describe() for t in tiles)}", code=Code.SHAPE)
    return tiles, several


def _checked(results: tuple, inputs: tuple[tensor, ...], who: str) -> tuple[tensor, ...]:
    if len(results) != len(inputs):
        raise fail(f"the function given to {who} returns {len(results)} values for {len(inputs)} tiles", code=Code.OPERAND)
    return tuple(broadcast_to(cast(as_tensor(r, t.dtype), t.dtype), t.shape) for r, t in zip(results, inputs))


def _halves(tiles: tuple[tensor, ...], axis: int, function) -> tuple[tensor, ...]:
    """The tiles folded along `axis`: the first half with the second, until one element is left."""
    n = tiles[0].shape[axis]
    while n > 1:
        n //= 2
        first = tuple(part(t, axis, 0, n) for t in tiles)
        second = tuple(part(t, axis, 1, n) for t in tiles)
        tiles = _checked(function(*first, *second), first, "reduce")
    return tuple(reshape_to(t, (*t.shape[:axis], *t.shape[axis + 1 :])) for t in tiles)


@builtin(method=True)
def reduce(x, axis, combine_fn, keep_dims=False):
    """The elements along `axis` folded by a function.

    Args:
        x: a tile, or a tuple of tiles of one shape.
        combine_fn: an associative function of two elements, or of two groups of elements, that returns one.

    Example:
        >>> girih.reduce(girih.arange(0, 4), 0, lambda a, b: girih.maximum(a, b))
        3 : int32
    """
    tiles, several = _tiles(x, "reduce")
    if unwrap(axis) is None:
        flat, at = tuple(reshape_to(t, (t.numel,)) for t in tiles), 0
    else:
        flat, at = tiles, axis_of(tiles[0], axis)
    results = _halves(flat, at, _user_function(combine_fn))
    results = tuple(_kept(r, tiles[0], axis, keep_dims) for r in results)
    return results if several else results[0]


@builtin(method=True)
def associative_scan(x, axis, combine_fn, reverse=False):
    """The running folds along `axis`: element i is the fold of elements 0 to i, or of i to the end.

    Args:
        x: a tile, or a tuple of tiles of one shape.
        combine_fn: an associative function of two elements, or of two groups of elements, that returns one.

    Source: the parallel prefix network of J. Sklansky, 1960.

    Example:
        >>> girih.associative_scan(girih.arange(0, 4), 0, lambda a, b: a + b)
        [0, 1, 3, 6] : int32[4]
    """
    tiles, several = _tiles(x, "associative_scan")
    axis, function = axis_of(tiles[0], axis), _user_function(combine_fn)
    backwards = static(reverse, "reverse")
    shape, n = tiles[0].shape, tiles[0].shape[axis]
    lead, tail = shape[:axis], shape[axis + 1 :]
    width = 1
    while width < n:
        blocks = tuple(reshape_to(t, (*lead, n // (2 * width), 2, width, *tail)) for t in tiles)
        pair, within = axis + 1, axis + 2
        first = tuple(part(t, pair, 0, 1) for t in blocks)
        second = tuple(part(t, pair, 1, 1) for t in blocks)
        if backwards:
            edge = tuple(broadcast_to(part(t, within, 0, 1), t.shape) for t in second)
            first = _checked(function(*edge, *first), first, "associative_scan")
        else:
            edge = tuple(broadcast_to(part(t, within, width - 1, 1), t.shape) for t in first)
            second = _checked(function(*edge, *second), second, "associative_scan")
        tiles = tuple(reshape_to(core.cat(a, b, pair), shape) for a, b in zip(first, second))
        width *= 2
    return tiles if several else tiles[0]


def _running(op: str, x: Any, axis: Any, reverse: Any, dtype: Any, identity: int) -> tensor:
    x = as_tensor(x)
    if unwrap(dtype) is not None:
        x = cast(x, dtype)
    wide = _widened(x, "a running sum")
    result = _known(
        op + ("f" if wide.dtype.is_floating() else "i"),
        wide,
        axis_of(x, axis),
        identity,
        True,
        static(reverse, "reverse"),
    )
    return cast(result, ty.float16) if x.dtype == ty.float16 else result


@builtin(method=True)
def cumsum(x, axis=0, reverse=False, dtype=None):
    """The running sums along `axis`; types as for `sum`.

    Example:
        >>> girih.cumsum(girih.arange(0, 4), axis=0)
        [0, 1, 3, 6] : int32[4]
        >>> girih.cumsum(girih.arange(0, 4), axis=0, reverse=True)
        [6, 6, 5, 3] : int32[4]
    """
    return _running("add", x, axis, reverse, dtype, 0)


@builtin(method=True)
def cumprod(x, axis=0, reverse=False):
    """The running products along `axis`; types as for `sum`.

    Example:
        >>> girih.cumprod(girih.arange(1, 5), axis=0)
        [1, 2, 6, 24] : int32[4]
    """
    return _running("mul", x, axis, reverse, None, 1)


@builtin(method=True)
def softmax(x, dim=None, keep_dims=False, ieee_rounding=False):
    """exp(x - max) / sum(exp(x - max)) along `dim`, the last dimension unless given; floats.

    Example:
        >>> girih.softmax(girih.zeros((4,), girih.float32))
        [0.25, 0.25, 0.25, 0.25] : float32[4]
    """
    x = as_tensor(x)
    axis = x.ndim - 1 if unwrap(dim) is None else axis_of(x, dim)
    if not x.dtype.is_floating():
        raise fail(f"softmax is defined for floats, not for {x.describe()}", "cast it: `x.to(girih.float32)`", code=Code.ELEMENT_TYPE)
    wide = cast(x, ty.float32) if x.dtype.bits < 32 else x
    e = elementwise.exp(wide - max(wide, axis, keep_dims=True))
    return cast(e / sum(e, axis, keep_dims=True), x.dtype)


# Pairs of a number and a bin up to which a histogram compares each with each, and bins; schedules count those in one pass.
MOST_PAIRS, MOST_BINS = 1 << 24, 1 << 14


def _counted_in_memory(x, bins, mask):
    """Zeros in the block's memory, then an atomic addition for each number that has a bin."""
    from . import atomic, memory
    from .shared import scratch

    base = scratch(bins, ty.int32)
    to = base + core.arange(0, bins)
    memory.store(to, 0)
    x = x if x.dtype.bits >= 32 else cast(x, ty.int32)
    inside = (x >= 0) & (x < bins)
    if unwrap(mask) is not None:
        inside = inside & broadcast_to(truth(mask), x.shape)
    atomic.atomic_add(base + cast(x, ty.int32), 1, inside, sem="relaxed", scope="cta")
    return memory.load(to)


@builtin
def histogram(x, num_bins, mask=None):
    """How often each of 0 to num_bins - 1 occurs among integers where the mask holds: int32[num_bins].

    Other integers are not counted; they are an error where launches are checked and on the evaluator and the simulator.

    Example:
        >>> girih.histogram(girih.arange(0, 4) // 2, 4)
        [2, 2, 0, 0] : int32[4]
    """
    x = as_tensor(x)
    if not x.dtype.is_int():
        raise fail(f"histogram counts integers, not {x.describe()}", code=Code.ELEMENT_TYPE)
    bins = static_int(num_bins, "the number of bins")
    messages.check_indices(x, bins, f"{OUTSIDE[1]} of its {bins} bins", mask)
    if x.numel * bins > MOST_PAIRS or bins > MOST_BINS:
        return _counted_in_memory(x, bins, mask)
    flat = reshape_to(x, (x.numel, 1))
    hits = flat == reshape_to(core.arange(0, num_bins), (1, unwrap(num_bins)))
    if unwrap(mask) is not None:
        hits = hits & reshape_to(broadcast_to(truth(mask), x.shape), (x.numel, 1))
    return sum(cast(hits, ty.int32), 0)
