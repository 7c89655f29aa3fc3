"""Atomic updates of memory: each returns the old value.

All take `sem`, the memory order ("relaxed", "acquire", "release" or "acq_rel", the default), and `scope`, the
observers ("cta" the block, "gpu" all blocks, the default, "sys"). Where the mask is false nothing happens and the
result is undefined.
"""

from __future__ import annotations

from typing import Any

from ..frontend.errors import Code
from ..frontend import types as ty
from ..frontend.builder import Value
from ..frontend.tensor import (
    as_tensor,
    broadcast_to,
    builder,
    cast,
    common_shape,
    constant,
    fail,
    is_number,
    select,
    static,
    tensor,
    unwrap,
)
from .core import builtin
from .memory import addresses, boolean

SCOPES = {"cta": "tl_blk", "gpu": "device", "sys": "sys"}
ORDERS = ("relaxed", "acquire", "release", "acq_rel")


def _order(sem: Any, scope: Any) -> str:
    sem, scope = static(sem, "sem"), static(scope, "scope")
    sem, scope = sem or "acq_rel", scope or "gpu"
    if sem not in ORDERS:
        raise fail(f"the memory order must be one of {', '.join(ORDERS)}, not {sem!r}", code=Code.CALL)
    if scope not in SCOPES:
        raise fail(f"the scope must be one of {', '.join(SCOPES)}, not {scope!r}", code=Code.CALL)
    return f"{sem} {SCOPES[scope]}"


def _operand(value: Any, dtype: ty.DType, shape: tuple[int, ...]) -> tensor:
    value = unwrap(value)
    value = constant(value, dtype) if is_number(value) else cast(as_tensor(value), dtype)
    return broadcast_to(value, shape)


def _run(head: str, pointer: tensor, values: list[tensor], mask: tensor | None, tail: str = "") -> tensor:
    b = builder()
    # All values have one type, which is spelled once.
    operands = [pointer, values[0]]
    token = b.before_write()
    pieces: list = [head, pointer.value, tail]
    for v in values:
        pieces += [", ", v.value]
    if mask is not None:
        operands.append(mask)
        pieces += [", ", mask.value]
    if token is not None:
        pieces += [" token = ", token]
    dtype = pointer.dtype.element_ty
    result, done = Value(dtype, pointer.shape), Value(None, hint="updated")
    pieces.append(f" : {', '.join(o.value.ir_type() for o in operands)} -> {result.ir_type()}, token")
    b.op(pieces, (result, done), pure=False)
    b.did_write(done)
    return tensor(result, dtype)


def _update(name: str, pointer: Any, value: Any, mask: Any, sem: Any, scope: Any, modes: dict[str, str]) -> tensor:
    pointer = addresses(pointer, name)
    dtype = pointer.dtype.element_ty
    mode = modes.get(dtype.kind)
    if mode is None or dtype.kind in ("int", "uint") and dtype.bits < 32 or dtype.is_floating() and dtype.bits < 16:
        raise fail(
            f"{name} is not defined for elements of {dtype}", "32- and 64-bit integers are; floats for add and xchg",
            code=Code.ELEMENT_TYPE,
        )
    tiles = [pointer] + [t for t in (unwrap(value), unwrap(mask)) if isinstance(t, tensor)]
    shape = common_shape(*tiles)
    if shape != pointer.shape and not pointer.shape:
        raise fail(f"{name} of a tile needs a tile of addresses, not one address", code=Code.ADDRESS)
    pointer = broadcast_to(pointer, shape)
    value = _operand(value, dtype, shape)
    mask = None if unwrap(mask) is None else broadcast_to(boolean(mask, name), shape)
    return _run(f"atomic_rmw_tko {_order(sem, scope)} ", pointer, [value], mask, f", {mode}")


@builtin
def atomic_add(pointer, val, mask=None, sem=None, scope=None):
    """Adds; integers of 32 and 64 bits, float16, bfloat16, float32, float64.

    Example:
        >>> girih.atomic_add(ints + girih.arange(0, 4) // 2, 5)
        [0, 5, 0, 5] : int32[4]
        >>> girih.load(ints + girih.arange(0, 4))
        [10, 10, 0, 0] : int32[4]
    """
    return _update("atomic_add", pointer, val, mask, sem, scope, {"int": "add", "uint": "add", "float": "addf"})


@builtin
def atomic_xchg(pointer, val, mask=None, sem=None, scope=None):
    """Replaces; elements of 32 and 64 bits.

    Example:
        >>> girih.atomic_xchg(ints, 9)
        0 : int32
        >>> girih.load(ints)
        9 : int32
    """
    return _update("atomic_xchg", pointer, val, mask, sem, scope, {"int": "xchg", "uint": "xchg", "float": "xchg"})


@builtin
def atomic_and(pointer, val, mask=None, sem=None, scope=None):
    """Bitwise and; elements are integers of 32 and 64 bits.

    Example:
        >>> girih.store(ints, 12)
        >>> girih.atomic_and(ints, 10)
        12 : int32
        >>> girih.load(ints)
        8 : int32
    """
    return _update("atomic_and", pointer, val, mask, sem, scope, {"int": "and", "uint": "and"})


@builtin
def atomic_or(pointer, val, mask=None, sem=None, scope=None):
    """Bitwise or; elements are integers of 32 and 64 bits.

    Example:
        >>> girih.store(ints, 12)
        >>> girih.atomic_or(ints, 10)
        12 : int32
        >>> girih.load(ints)
        14 : int32
    """
    return _update("atomic_or", pointer, val, mask, sem, scope, {"int": "or", "uint": "or"})


@builtin
def atomic_xor(pointer, val, mask=None, sem=None, scope=None):
    """Bitwise exclusive or; elements are integers of 32 and 64 bits.

    Example:
        >>> girih.store(ints, 12)
        >>> girih.atomic_xor(ints, 10)
        12 : int32
        >>> girih.load(ints)
        6 : int32
    """
    return _update("atomic_xor", pointer, val, mask, sem, scope, {"int": "xor", "uint": "xor"})


def _extreme(word: str, pointer: Any, val: Any, mask: Any, sem: Any, scope: Any) -> tensor:
    pointer = addresses(pointer, f"atomic_{word}")
    dtype = pointer.dtype.element_ty
    if not dtype.is_floating():
        return _update(f"atomic_{word}", pointer, val, mask, sem, scope, {"int": word, "uint": f"u{word}"})
    if dtype.bits < 32:
        raise fail(f"atomic_{word} is not defined for elements of {dtype}", "use float32", code=Code.ELEMENT_TYPE)
    # Floats order as signed integers when they are not negative, and as unsigned ones in reverse when they are.
    signed, unsigned = (ty.int32, ty.uint32) if dtype.bits == 32 else (ty.int64, ty.uint64)
    shape = common_shape(pointer, as_tensor(val, dtype))
    pointer, value = broadcast_to(pointer, shape), _operand(val, dtype, shape)
    mask = constant(True, ty.int1, shape) if unwrap(mask) is None else broadcast_to(boolean(mask, f"atomic_{word}"), shape)
    bits = cast(value, signed, bitcast=True)
    positive = bits >= 0
    other = "min" if word == "max" else "max"
    order = _order(sem, scope)
    up = _run(f"atomic_rmw_tko {order} ", cast(pointer, ty.PointerType(signed)), [bits], mask & positive, f", {word}")
    down = cast(bits, unsigned, bitcast=True)
    low = _run(
        f"atomic_rmw_tko {order} ", cast(pointer, ty.PointerType(unsigned)), [down], mask & ~positive, f", u{other}"
    )
    return cast(select(positive, up, cast(low, signed, bitcast=True)), dtype, bitcast=True)


@builtin
def atomic_max(pointer, val, mask=None, sem=None, scope=None):
    """Keeps the greater; elements are integers of 32 and 64 bits, float32, float64 (no NaNs).

    Example:
        >>> girih.atomic_max(floats + 3, 5.5)
        3 : float32
        >>> girih.load(floats + 3)
        5.5 : float32
    """
    return _extreme("max", pointer, val, mask, sem, scope)


@builtin
def atomic_min(pointer, val, mask=None, sem=None, scope=None):
    """Keeps the lesser; elements are integers of 32 and 64 bits, float32, float64 (no NaNs).

    Example:
        >>> girih.atomic_min(floats + 3, -0.5)
        3 : float32
        >>> girih.load(floats + 3)
        -0.5 : float32
    """
    return _extreme("min", pointer, val, mask, sem, scope)


@builtin
def atomic_cas(pointer, cmp, val, sem=None, scope=None):
    """Writes `val` where the value is `cmp`, comparing bits; elements of 32 and 64 bits.

    Example:
        >>> girih.atomic_cas(ints, 0, 1)
        0 : int32
        >>> girih.atomic_cas(ints, 0, 2)
        1 : int32
        >>> girih.load(ints)
        1 : int32
    """
    pointer = addresses(pointer, "atomic_cas")
    dtype = pointer.dtype.element_ty
    if dtype.bits not in (32, 64):
        raise fail(f"atomic_cas is not defined for elements of {dtype}", "elements of 32 and 64 bits can be compared", code=Code.ELEMENT_TYPE)
    tiles = [pointer] + [t for t in (unwrap(cmp), unwrap(val)) if isinstance(t, tensor)]
    shape = common_shape(*tiles)
    pointer = broadcast_to(pointer, shape)
    return _run(
        f"atomic_cas_tko {_order(sem, scope)} ",
        pointer,
        [_operand(cmp, dtype, shape), _operand(val, dtype, shape)],
        None,
    )
