"""``@girih.jit``: kernels in Python, compiled for the arguments they are launched with.

A decorated function is a `JITFunction`. ``kernel[grid](*args)`` runs it over a grid of blocks and waits; for each new
kind of arguments it is traced to Tile IR and compiled, and kept. The stages of a compilation can be inspected:
``tile_ir``, ``ir``, ``source``, ``explain`` and ``bytecode`` take the arguments of a launch and run nothing.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import math
import os
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from . import _library, _tensors
from .frontend import types as ty
from .frontend.errors import (
    CompilationError,
    UnsupportedError,
    frames_of,
    hide_frames,
    kernel_error,
    kernel_warning,
)
from .frontend.tensor import is_constexpr, unwrap

# The tracer and its modules are imported when the first kernel is traced, so that `import girih` is quick.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from .device import View

_girih = _library.extension()

# Arguments of a launch that other compilers take and that change nothing here.
HINTS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion", "warmup")
# Options of `jit`, and those of other compilers that change nothing here.
OPTIONS = ("do_not_specialize", "knobs")
IGNORED_OPTIONS = ("debug", "noinline", "repr", "version", "launch_metadata", "do_not_specialize_on_alignment")
# Arguments of a launch that choose how it runs.
SETTINGS = ("device", "check", "threads")
SETTING_TYPES = {"device": str, "check": (bool, int), "threads": (int, str)}
SETTING_WORDS = {"device": 'a name such as "cpu" or "eval"', "check": "True or False", "threads": "a number"}


# A setting of the kernels that are only looked at, and the error of others.
BREAKPOINTS = "breakpoints"
STOPS_ON = "a breakpoint stops only on the evaluator"


class JITFunction:
    """A kernel: a function of tiles, launched over a grid.

    Attributes:
        fn: the Python function.
        params: its parameters' names.
    """

    def __init__(self, fn: Callable, do_not_specialize: Sequence[str | int] = (), knobs: dict | None = None):
        if isinstance(fn, (staticmethod, classmethod)):
            raise TypeError(f"write @{type(fn).__name__} above @girih.jit, not below it")
        if isinstance(fn, JITFunction):
            raise TypeError(f"`{fn.__name__}` is a kernel already")
        if not inspect.isfunction(fn):
            help = ": write @girih.autotune and @girih.heuristics above @girih.jit" if hasattr(fn, "__girih_function__") else ""
            raise TypeError(f"@girih.jit decorates a function made with `def`, not {fn!r}{help}")
        if fn.__name__ == "<lambda>":
            raise TypeError("@girih.jit decorates a function made with `def`, not a lambda")
        functools.update_wrapper(self, fn)
        self.fn = fn
        self.__girih_function__ = fn
        self._knobs = dict(knobs or {})
        self._source: Any = None
        # The values that specialisations read from outside of the kernel, see `Builder.outside`.
        self._outside: dict = {}
        signature = inspect.signature(fn)
        self.params = list(signature.parameters)
        for one in do_not_specialize:
            if one not in self.params and one not in range(len(self.params)):
                raise ValueError(f"do_not_specialize: `{fn.__name__}` has no parameter {one!r}; it has {', '.join(self.params)}")
        parameters = []
        for i, (name, p) in enumerate(signature.parameters.items()):
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                raise TypeError(f"the kernel `{fn.__name__}` takes `{p}`; kernels name each parameter")
            role = "runtime"
            if is_constexpr(p.annotation):
                role = "constant"
            elif name in do_not_specialize or i in do_not_specialize:
                role = "unspecialised"
            given = p.default is not p.empty
            parameters.append((name, role, given, p.default if given else None))
        self._roles = {name: role for name, role, _, _ in parameters}
        # The dispatcher does not own this object, or neither would ever be freed.
        specialise = weakref.WeakMethod(self._specialise)
        self._dispatcher = _girih.Dispatcher(parameters, lambda *a: specialise()(*a), describe_array, dtype_name)

    @property
    def _looks(self) -> tuple:
        """The values outside, and how to compare them with those of now."""
        return self._outside, self._look_outside

    # ---- launching

    def __getitem__(self, grid: Any) -> Callable:
        return _girih.OverGrid(self._dispatcher, grid, self.run, (self._outside, self._look_outside))

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            f"the kernel `{self.__name__}` is launched over a grid: `{self.__name__}[grid](...)`; "
            "called like a function it works inside another kernel only"
        )

    def run(self, grid: Any, /, *args: Any, **kwargs: Any) -> None:
        """Runs the kernel over a grid of blocks and waits for it; the same as `kernel[grid](...)`.

        Args:
            grid: up to three numbers of blocks, or a function of the arguments by name that returns them.
            args: the kernel's arguments: arrays in main memory, numbers, None; `constexpr` ones often by name.
            kwargs: more of them, and `device` ("cpu", "eval", "sim" or "cuda"), `check` (test every access) and `threads`;
                `num_warps`, `num_stages` and their like are accepted and change nothing.

        Raises `LaunchError` for arguments or a grid that do not fit, `CompilationError` for a kernel that cannot be
        compiled, and a `KernelError` where it stops while it runs.

        Example:
            >>> add.run((girih.cdiv(n, 1024),), x, y, out, n, BLOCK=1024)
            >>> add[lambda meta: (girih.cdiv(n, meta["BLOCK"]),)](x, y, out, n, BLOCK=256, device="eval")
            >>> bool((out == x + y).all())
            True
        """
        if self._outside:
            self._look_outside()
        settings = None if kwargs.keys() <= self._roles.keys() else self._settings(kwargs)
        try:
            self._dispatcher.launch(grid, settings, args, kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    def _settings(self, kwargs: dict) -> tuple | None:
        """Takes keywords that are not arguments of the kernel out of `kwargs`."""
        settings = []
        for name in SETTINGS:
            if name in kwargs and name not in self._roles:
                value = kwargs.pop(name)
                if value is None:
                    continue
                if not isinstance(value, SETTING_TYPES[name]) and type(value).__name__ not in ("bool", "bool_"):
                    raise TypeError(f"`{name}` of a launch is {SETTING_WORDS[name]}, not {value!r}")
                settings.append((name, value))
        for name in HINTS:
            if name in kwargs and name not in self._roles:
                del kwargs[name]
        return tuple(settings) or None

    # ---- specialisations

    def _specialise(self, arguments: dict[str, tuple], settings: tuple | None) -> Any:
        """The kernel for the arguments' key; the dispatcher keeps it."""
        chosen = dict(settings or ())
        stops = chosen.pop(BREAKPOINTS, True)
        builder = self._trace(arguments, is_checked(chosen), stops)
        # Prints, atomics and assertions may be meant for each block.
        unread = [not builder.updates and axis not in builder.axes for axis in range(3)]
        knobs = list(self._knobs.items())
        options = {"printer": write_out, "warn": kernel_warning, "knobs": knobs, "unread": unread, **chosen}
        if stops:
            self._warn(builder)
        device = options.get("device") or os.environ.get("GIRIH_DEVICE") or "cpu"
        if builder.stops and device != "eval":
            raise CompilationError(
                STOPS_ON,
                builder.stops[0],
                f'launch with `{self.__name__}[grid](..., device="eval")`, or set GIRIH_DEVICE=eval',
            )
        return _girih.Kernel(builder.text(), builder.name, options, kernel_error)

    def _warn(self, builder: Any) -> None:
        """Warns of values that the kernel computes for nothing."""
        for place in dict.fromkeys(builder.unused):
            help = "assign it, store it, or leave it out: a tile is a value, and no function changes it in place"
            kernel_warning("W0911", "the value of this expression is not used", [], help, frames_of(place))
        if not builder.effects:
            help = "results are written with `girih.store(pointer, value)`; assigning to a parameter changes only its name"
            message = f"the kernel `{self.__name__}` stores nothing and prints nothing: a launch has no effect"
            kernel_warning("W0912", message, [], help, frames_of(builder.start))

    def _look_outside(self) -> None:
        """Forgets all specialisations if a global or a closure's variable that one was made with has changed."""
        for where, (read, name, value) in tuple(self._outside.items()):
            now = read(name)
            if now is value:
                continue
            from .frontend.slots import same

            if same(now, value):
                self._outside[where] = (read, name, now)
                continue
            self._outside.clear()
            self._dispatcher.clear()
            return

    def _trace(self, arguments: dict[str, tuple], checked: bool = False, stops: bool = True) -> Any:
        from .frontend import source
        from .frontend.trace import Param, trace

        if self._source is None:
            self._source = source.read(self.fn)
        params, constants = [], {}
        for name, look in arguments.items():
            kind, *rest = look
            if kind == "constant":
                constants[name] = constant_value(rest[0])
            elif kind == "none":
                constants[name] = None
            elif kind == "one":
                constants[name] = ty.Known(1)
            else:
                params.append(Param(name, *runtime_type(kind, rest)))
        builder = trace(self._source, params, constants, self.__name__, checked, stops)
        self._outside.update(builder.outside)
        return builder

    def _kernel(self, args: tuple, kwargs: dict, looked_at: bool = True) -> Any:
        """The specialisation for the arguments of a launch; one that is only looked at has no breakpoints."""
        if self._outside:
            self._look_outside()
        kwargs = dict(kwargs)
        settings = self._settings(kwargs)
        try:
            try:
                return self._dispatcher.kernel(settings, args, kwargs)
            except CompilationError as error:
                if not looked_at or error.reason != STOPS_ON:
                    raise
            return self._dispatcher.kernel((*(settings or ()), (BREAKPOINTS, False)), args, kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    def warmup(self, *args: Any, grid: Any = None, **kwargs: Any) -> None:
        """Compiles the kernel for the arguments of a launch, but does not run it; `grid` is ignored.

        Example:
            >>> add.warmup(x, y, out, n, BLOCK=1024)
        """
        self._kernel(args, kwargs, looked_at=False).compile()

    # ---- looking at it

    def tile_ir(self, *args: Any, **kwargs: Any) -> str:
        """The kernel as CUDA Tile IR text, for the arguments of a launch.

        Example:
            >>> print(add.tile_ir(x, y, out, n, BLOCK=1024)[:16])
            cuda_tile.module
        """
        return self._kernel(args, kwargs).ir("cuda_tile")

    def ir(self, stage: str, *args: Any, **kwargs: Any) -> str:
        """The kernel at a stage: "cuda_tile", "loop", "tile", "kernel" or "c".

        Example:
            >>> print(add.ir("loop", x, y, out, n, BLOCK=1024)[:16])
            loop kernel add(
        """
        return self._kernel(args, kwargs).ir(stage)

    def source(self, language: str, *args: Any, **kwargs: Any) -> str:
        """The source text that is compiled: "c".

        Example:
            >>> "add" in add.source("c", x, y, out, n, BLOCK=1024)
            True
        """
        if language == "cuda":
            raise UnsupportedError('CUDA source is not supported yet; `source("c", ...)` is what the processor runs')
        return self._kernel(args, kwargs).ir(language)

    def explain(self, *args: Any, full: bool = False, html: Any = None, **kwargs: Any) -> str:
        """The rules that were applied, a line each; with `full`, the changes of each, and why others were not. With `html`, the
        name of a file, also writes the page of `girih explain` there: the stages side by side, linked line by line.

        Example:
            >>> "vectorise" in add.explain(x, y, out, n, BLOCK=1024)
            True
        """
        kernel = self._kernel(args, kwargs)
        if html is not None:
            from ._files import write_whole

            file = self._source.file
            write_whole(html, kernel.page(self.__name__, file, "".join(linecache.getlines(file))))
        return kernel.explain(full)

    def bytecode(self, *args: Any, version: str | None = None, **kwargs: Any) -> bytes:
        """The kernel as Tile IR bytecode, of a version such as "13.3" or the oldest that can express it.

        Example:
            >>> add.bytecode(x, y, out, n, BLOCK=1024)[1:7]
            b'TileIR'
        """
        return self._kernel(args, kwargs).bytecode(version)

    def __repr__(self) -> str:
        return f"<girih kernel {self.__module__}.{self.__qualname__}>"


def jit(fn: Callable | None = None, **options: Any) -> Any:
    """Makes a function a kernel.

    Args:
        do_not_specialize: names or positions of integers whose values make no new specialisation.
        knobs: the compiler's knobs by name (`girih rules` lists them).

    Example:
        >>> @girih.jit
        ... def add(x, y, out, n, BLOCK: girih.constexpr):
        ...     i = girih.program_id(0) * BLOCK + girih.arange(0, BLOCK)
        ...     girih.store(out + i, girih.load(x + i, i < n) + girih.load(y + i, i < n), i < n)
        >>> add[(girih.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    """
    unknown = [name for name in options if name not in (*OPTIONS, *IGNORED_OPTIONS)]
    if unknown:
        raise TypeError(f"@girih.jit has no option `{unknown[0]}`; it has {', '.join(OPTIONS)}")
    known = {k: v for k, v in options.items() if k in OPTIONS}
    return JITFunction(fn, **known) if fn is not None else lambda f: JITFunction(f, **known)


def is_checked(settings: dict[str, Any]) -> bool:
    """Returns True if a launch checks its accesses: by request, or on a device that always does."""
    device = settings.get("device") or os.environ.get("GIRIH_DEVICE") or "cpu"
    check = settings.get("check")
    if check is None and (text := os.environ.get("GIRIH_CHECK")):
        try:
            check = _girih.flag(text)
        except ValueError:
            # The compiler refuses it, by name.
            check = False
    return bool(check) or device in ("eval", "sim")


def constant_value(value: Any) -> Any:
    """The value of a constant; for a NumPy scalar, the Python number."""
    value = unwrap(value)
    return value.item() if getattr(value, "shape", None) == () and hasattr(value, "item") else value


def runtime_type(kind: str, rest: list) -> tuple[Any, int]:
    """The type of a run-time parameter, and its known divisor."""
    if kind == "ptr":
        name, divisible = rest
        return ty.PointerType(ty.BY_NAME[name]), divisible
    if kind == "int":
        bits, signed, divisible = rest
        return ty.BY_NAME[f"{'' if signed else 'u'}int{bits}"], divisible
    return {"float": ty.float32, "bool": ty.int1}[kind], 1


def write_out(block: tuple[int, int, int], text: str) -> None:
    """Writes the text that a block printed, and stops at a breakpoint of a kernel that was traced here."""
    breakpoints = sys.modules.get("girih.frontend.breakpoints")
    if breakpoints is not None and breakpoints.MARK in text:
        breakpoints.stop(block, text)
    else:
        sys.stdout.write(text)


# ---- arrays

# The names that NumPy, ml_dtypes and PyTorch give to element types.
NAMES = {
    "bool": ty.int1, "float8_e4m3fn": ty.float8e4nv, "float8_e5m2": ty.float8e5, "half": ty.float16,
    "float": ty.float32, "double": ty.float64, "short": ty.int16, "int": ty.int32, "long": ty.int64,
    **{t.name: t for t in ty.ALL if t.name not in ("int1", "float8e4nv", "float8e5")},
}  # fmt: skip


USUAL = [n for n, t in NAMES.items() if n not in ("half", "float", "double", "short", "int", "long")]


def dtype_name(dtype: Any) -> tuple[str, int]:
    """The name and the size in bytes of NumPy's element type."""
    found = NAMES.get(dtype.name)
    if found is None or not dtype.isnative:
        raise TypeError(f"elements of the type {dtype} cannot be passed to a kernel; the types are {', '.join(USUAL)}")
    return found.name, dtype.itemsize


def describe_array(value: Any, name: str) -> Any:
    """The description of an argument that is neither a NumPy array nor a Python number.

    For a tensor of PyTorch: its address, the bytes that it spans before and from there on, whether it may be written, its element
    type, and its strides unless it is contiguous; for others an array or a number.
    """
    if _tensors.is_tensor(value):
        return describe_torch(value, name)
    kind = type(value)
    if hasattr(kind, "__cuda_array_interface__") or hasattr(kind, "__dlpack_device__"):
        from . import device

        if (found := device.view(value)) is not None:
            return describe_view(found, name)
    interface = hasattr(kind, "__array_interface__") or hasattr(value, "__array_interface__")
    if not isinstance(value, type) and (interface or hasattr(kind, "__dlpack__")):
        import numpy

        if isinstance(value, numpy.generic):
            return value.item()
        if isinstance(value, numpy.ma.MaskedArray) and numpy.ma.is_masked(value):
            raise ValueError(f"the argument `{name}` has masked elements, which a kernel would use; pass `x.filled(value)`")
        if interface:
            return numpy.asarray(value)
        if value.__dlpack_device__()[0] != 1:
            raise ValueError(f"the argument `{name}` is on another device; kernels take arrays in main memory and on CUDA devices")
        try:
            return numpy.from_dlpack(value)
        except (BufferError, RuntimeError) as e:
            raise TypeError(f"the argument `{name}` cannot be converted by NumPy: {e}") from None
    if isinstance(value, ty.DType) or callable(value):
        raise TypeError(f"the argument `{name}` is {value!r}; annotate the parameter with `girih.constexpr`")
    raise TypeError(
        f"the argument `{name}` has the unsupported type {kind.__qualname__}; kernels take arrays, numbers and None"
    )


def describe_view(found: View, name: str) -> tuple[int, tuple[int, int], bool, str, tuple | None, int, Any]:
    """An array of a CUDA device; kernels run on its stream."""
    if found.element not in NAMES:
        raise TypeError(f"elements of the type {found.element} cannot be passed to a kernel; the types are {', '.join(USUAL)}")
    if any(s < 0 for s in found.strides):
        raise ValueError(f"the argument `{name}` runs backwards in memory, which arrays of a CUDA device may not")
    size = found.itemsize
    if found.address % size:
        raise ValueError(f"the argument `{name}` begins at {found.address:#x}, which its elements of {size} bytes do not divide")
    layout = None if found.contiguous else (list(found.shape), [s // size for s in found.strides])
    bytes_spanned = span(found.shape, found.strides, size)
    element = NAMES[found.element].name
    return found.address, (0, bytes_spanned), found.writable, element, layout, found.stream, found.owner


def describe_torch(value: Any, name: str) -> tuple[int, tuple[int, int], bool, str, tuple | None, int | None, Any]:
    stream = None
    # Where programs for "cuda" run on the processor, a tensor's device is the one they asked for, not the real one.
    if value.device.type != "cpu" and (where := value.untyped_storage().device).type != "cpu":
        if where.type != "cuda":
            raise ValueError(f"the argument `{name}` is on {value.device}; kernels run in main memory or on CUDA devices")
        import torch

        stream = torch.cuda.current_stream(where).cuda_stream
    element = element_name(value, name)
    if problem := _tensors.problem(value):
        raise ValueError(f"the argument `{name}` is a tensor that {problem}")
    size = value.element_size()
    strides = [s * size for s in value.stride()]
    layout = None if value.is_contiguous() else (list(value.shape), list(value.stride()))
    return value.data_ptr(), (0, span(value.shape, strides, size)), True, element, layout, stream, value


def element_name(value: Any, name: str) -> str:
    """The name of the element type of a tensor, or of a pointer with such a type."""
    found = NAMES.get(str(value.dtype).removeprefix("torch."))
    if found is None:
        raise TypeError(f"the argument `{name}`: elements of the type {value.dtype} cannot be passed to a kernel")
    return found.name


def span(shape: tuple, strides: list[int], size: int) -> int:
    """The bytes from the first element to the end of the last."""
    return 0 if 0 in shape else size + sum((n - 1) * s for n, s in zip(shape, strides))


__all__ = ["CompilationError", "JITFunction", "jit"]
