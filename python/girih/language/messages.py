"""Messages and assertions, while the kernel is compiled and while it runs."""

from __future__ import annotations

from ..frontend.errors import Code
from ..frontend import types as ty
from ..frontend.builder import Value, quote
from ..frontend.tensor import (
    as_tensor,
    builder,
    cast,
    describe,
    fail,
    static,
    tensor,
    truth,
    unwrap,
)
from .core import builtin


STATIC_ASSERTION = "static assertion failed"


@builtin
def static_print(*values, sep=" ", end="\n", file=None, flush=False):
    """Prints while the kernel is compiled; tiles appear as their types.

    Example:
        >>> girih.static_print("a tile:", girih.arange(0, 4))
        a tile: int32[4]
    """
    print(*(describe(v) if isinstance(unwrap(v), tensor) else unwrap(v) for v in values), sep=sep, end=end, flush=True)


@builtin
def static_assert(condition, message=""):
    """An error of compilation when the condition, known at compile time, does not hold.

    Example:
        >>> girih.static_assert(girih.next_power_of_2(5) == 8, "a bound")
    """
    if not static(condition, "the condition of static_assert"):
        raise fail(f"{STATIC_ASSERTION}{': ' if unwrap(message) else ''}{unwrap(message)}", code=Code.STATIC)


@builtin
def device_print(prefix, *values, hex=False):
    """Prints a text and the elements of tiles when the kernel runs, once per block.

    Example:
        >>> girih.device_print("row", girih.program_id(0), girih.arange(0, 4))
        row 0 [0, 1, 2, 3]
    """
    prefix = static(prefix, "the text")
    if not isinstance(prefix, str):
        raise fail(f"the first argument of device_print must be a string, not {describe(prefix)}", code=Code.CALL)
    tiles = [as_tensor(v) for v in values]
    text = prefix.replace("%", "%%")
    for t in tiles:
        text += " " + _conversion(t, static(hex, "hex"))
    printable = [_printable(t) for t in tiles]
    b = builder()
    pieces: list = [f"print_tko {quote(text + chr(10))}"]
    for t in printable:
        pieces += [", ", t.value]
    token = b.before_write()
    if token is not None:
        pieces += [" token = ", token]
    if printable:
        pieces.append(" : " + ", ".join(t.value.ir_type() for t in printable))
    done = Value(None, hint="said")
    b.op([*pieces, " -> token"], (done,), pure=False)
    b.did_write(done)


def _conversion(t: tensor, hexadecimal: bool) -> str:
    if t.dtype.is_ptr() or hexadecimal and t.dtype.is_int():
        return "%llx"
    if t.dtype.is_floating():
        return "%g"
    return "%lld" if t.dtype.kind == "int" else "%llu"


def _printable(t: tensor) -> tensor:
    if t.dtype.is_ptr():
        return cast(t, ty.uint64)
    return cast(t, ty.float64 if t.dtype.is_floating() else ty.int64 if t.dtype.kind == "int" else ty.uint64)


@builtin
def device_assert(condition, message="", mask=None):
    """Stops the kernel with a message when the condition, booleans of any shape, fails where the mask holds.

    Example:
        >>> girih.device_assert(girih.arange(0, 4) >= 0, "an index below zero")
    """
    condition = truth(condition)
    if unwrap(mask) is not None:
        condition = condition | ~truth(mask)
    text = static(message, "the message")
    builder().op(["assert ", condition.value, f", {quote(str(text))} : {condition.value.ir_type()}"], pure=False)


def check_indices(index: tensor, count: int, message: str, mask=None) -> None:
    """In a checked kernel, stops where an index is not one of `count`."""
    if builder().checked:
        device_assert((index >= 0) & (index < count), message, mask)


@builtin
def debug_barrier():
    """Nothing: a block's operations happen in the order of the program.

    Example:
        >>> girih.debug_barrier()
    """
