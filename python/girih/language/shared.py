"""Memory of a block: written and read by all of its lanes, gone when the block ends.

`shared(n, dtype)` gives its address, for `load` and `store`. `shared_store`, `shared_load` and `sync` work on one
buffer of float32 that the block has without asking. A block's operations happen in the order of the program, so `sync`
marks a step and changes no result.
"""

from __future__ import annotations

from ..frontend import types as ty
from ..frontend.builder import Value
from ..frontend.errors import OUTSIDE, Code
from ..frontend.tensor import as_tensor, broadcast_to, builder, check_dtype, describe, fail, reshape_to, static_int, tensor, unwrap
from . import core, memory, messages
from .core import builtin

# Elements of the buffer without a name: the 48 KiB that every GPU gives a block.
IMPLICIT = 12288


@builtin
def shared(n, dtype=ty.float32):
    """The address of `n` elements of `dtype` that belong to this block; their initial values are undefined.

    Example:
        >>> tile = girih.shared(4)
        >>> i = girih.arange(0, 4)
        >>> girih.store(tile + i, girih.load(floats + i))
        >>> girih.sync()
        >>> girih.load(tile + 3 - i)
        [3, 2, 1, 0] : float32[4]
    """
    if isinstance(unwrap(n), (tuple, list)):
        raise fail(
            f"a block's memory has a number of elements, not {describe(n)}",
            "give their product, and add offsets to the address: `memory + row * columns + column`",
            code=Code.CALL,
        )
    n, dtype = static_int(n, "the number of elements"), check_dtype(dtype)
    if n <= 0:
        raise fail(f"a block's memory must have at least one element, not {n}", code=Code.INTEGER)
    if dtype.is_ptr():
        raise fail("a block's memory can hold only numbers", code=Code.ELEMENT_TYPE)
    pointer = ty.PointerType(dtype)
    result = Value(pointer, (), hint="shared")
    builder().op([f"alloca num_elem = {n}, alignment = 64 : {result.ir_type()}"], (result,))
    return tensor(result, pointer)


def scratch(n, dtype) -> tensor:
    """The address of memory of the block for `n` elements, taken once, at the start of the kernel."""
    pointer = ty.PointerType(dtype)
    result = Value(pointer, (), hint="scratch")
    builder().at_start([f"alloca num_elem = {n}, alignment = 64 : {result.ir_type()}"], result)
    return tensor(result, pointer)


def _implicit() -> tensor:
    """The buffer without a name; made at the start of the kernel when it is first used."""
    b = builder()
    if b.shared is None:
        b.shared = scratch(IMPLICIT, ty.float32).value
    return tensor(b.shared, ty.PointerType(ty.float32))


@builtin
def shared_store(offsets, value, mask=None):
    """Writes float32 to elements of the block's own buffer, which holds 12288.

    Example:
        >>> i = girih.arange(0, 4)
        >>> girih.shared_store(i, girih.load(floats + i))
        >>> girih.sync()
        >>> girih.shared_load(3 - i)
        [3, 2, 1, 0] : float32[4]
    """
    memory.store(_implicit() + offsets, value, mask)


@builtin
def shared_load(offsets, mask=None, other=None):
    """Reads float32 from elements of the block's own buffer, which holds 12288.

    Example:
        >>> girih.shared_store(girih.arange(0, 4), 2.5)
        >>> girih.shared_load(girih.arange(0, 4))
        [2.5, 2.5, 2.5, 2.5] : float32[4]
    """
    return memory.load(_implicit() + offsets, mask, other)


@builtin
def sync():
    """All lanes of the block have reached this point; the order of the program ensures that already.

    Example:
        >>> girih.sync()
    """


@builtin
def gather(src, index, axis=None, mask=None, other=None):
    """Elements of a tile, or of memory, chosen by a tile of integers.

    With an address: the value at `src + index`, the same as a `load`. With a tile: along `axis`, `index` has the
    shape of `src` except for that dimension; where the mask does not hold, `other` or 0. An index outside of the tile
    gives 0, and is an error where launches are checked and on the evaluator and the simulator.

    Example:
        >>> girih.gather(girih.arange(10, 14), 3 - girih.arange(0, 4))
        [13, 12, 11, 10] : int32[4]
        >>> girih.gather(floats, 3 - girih.arange(0, 4))
        [3, 2, 1, 0] : float32[4]
    """
    src, mask, other = as_tensor(src), unwrap(mask), unwrap(other)
    index = as_tensor(index)
    if not index.dtype.is_int():
        raise fail(f"the index of gather must be a tile of integers, not {index.describe()}", code=Code.ELEMENT_TYPE)
    if src.dtype.is_ptr():
        return memory.load(src + index, mask, other)
    axis = 0 if axis is None else core.axis_of(src, axis)
    n, m = src.shape[axis], index.shape[axis] if index.ndim == src.ndim else None
    if m is None or any(a != b for i, (a, b) in enumerate(zip(src.shape, index.shape)) if i != axis):
        raise fail(f"{index.describe()} cannot choose from {src.describe()} along dimension {axis}", code=Code.SHAPE)
    message = f"{OUTSIDE[0]} of dimension {axis} of the tile, which has {n} elements"
    messages.check_indices(index, n, message, mask)
    # Through the block's memory: each element is written and read once.
    base = scratch(src.numel, ty.int8 if src.dtype.is_bool() else src.dtype)
    memory.store(base + _places(src.shape, src.shape), core.cast(src, base.dtype.element_ty))
    index = index if index.dtype.bits >= 32 else core.cast(index, ty.int32)
    inside = (index >= 0) & (index < n)
    inside = inside if mask is None else inside & mask
    at = _places(src.shape, index.shape, axis, core.cast(index, ty.int32))
    return core.cast(memory.load(base + at, inside, 0 if other is None else other), src.dtype)


def _places(of, shape, axis=None, index=None):
    """The row-major places in a tile of shape `of` of the elements of another; `index` has those along `axis`."""
    found, stride = 0, 1
    for d in range(len(of) - 1, -1, -1):
        along = index
        if d != axis:
            along = reshape_to(core.arange(0, shape[d]), tuple(n if i == d else 1 for i, n in enumerate(shape)))
        found, stride = found + along * stride, stride * of[d]
    return broadcast_to(found, shape)


@builtin
def load4(pointer, mask=None, other=None):
    """Four elements in a row from each address: a tile with a last dimension of extent 4.

    Example:
        >>> girih.load4(floats + 4 * girih.arange(0, 2))
        [[0, 1, 2, 3], [4, 5, 6, 7]] : float32[2, 4]
    """
    pointer = memory.addresses(pointer, "load4")
    four = core.arange(0, 4)
    if not pointer.shape:
        return memory.load(pointer + four, mask, other)
    lanes = reshape_to(four, (*(1 for _ in pointer.shape), 4))
    if mask is not None:
        mask = core.expand_dims(mask, -1)
    return memory.load(reshape_to(pointer, (*pointer.shape, 1)) + lanes, mask, other)
