"""The package's ``libcuda.so.1``: loading it, its options, kernels' prints, and the meaning of its failures.

It is loaded under the name that cuTile, CuPy and the others ask the system for, so they find it without an environment
variable. Everything it runs has ended when the driver's function returns.
"""

import contextlib
import ctypes
import json
import os
import sys
import weakref

from girih import _girih, _library
from girih.cutile.errors import describe
from girih.frontend.errors import BY_CODE, Frame, KernelError, in_words, kernel_warning

_driver = None
# ctypes does not keep callbacks alive that a library was given.
_printer = None
_Printer = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t)
_warner = None
# What was found in launches since the last one that ended; the launcher looks at it after each.
found = []
# Options given before the library is loaded.
_options = {}


class RealDriver(ImportError):
    """This process already uses a GPU's driver."""


def load():
    """Loads the library, unless that was done."""
    global _driver, _printer, _warner
    if _driver is not None:
        return
    _check_environment()
    other = _loaded_already()
    path = str(_library.find("libcuda.so.1"))
    if other is not None and not hasattr(other, "girih_shim_version"):
        raise RealDriver(
            "girih: this process has already loaded a CUDA driver (libcuda.so.1), so cuTile would use that; "
            "call girih.cutile.install() before anything that initialises CUDA, or run `python -m girih.cutile`"
        )
    driver = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    for name in ("girih_shim_last_error", "girih_shim_options", "girih_shim_version"):
        getattr(driver, name).restype = ctypes.c_char_p
    driver.girih_shim_set_options.argtypes = [ctypes.c_char_p]
    driver.girih_shim_set_printer.argtypes = [_Printer, ctypes.c_void_p]
    driver.girih_shim_assemble.argtypes = [
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_char_p,
        ctypes.POINTER(ctypes.c_void_p),
        ctypes.POINTER(ctypes.c_size_t),
    ]
    driver.girih_shim_free.argtypes = [ctypes.c_void_p]
    driver.girih_shim_free.restype = None
    for name in ("girih_shim_clear_error", "girih_shim_interrupt"):
        getattr(driver, name).restype = None
    _printer = _Printer(_print)
    driver.girih_shim_set_printer(_printer, None)
    driver.girih_shim_set_warner.argtypes = [_Printer, ctypes.c_void_p]
    _warner = _Printer(lambda _user, text, length: found.append(json.loads(ctypes.string_at(text, length))))
    driver.girih_shim_set_warner(_warner, None)
    driver.girih_shim_set_host.argtypes = [ctypes.c_void_p] * 3
    driver.girih_shim_set_host(*_girih.driver_host())
    _driver = driver
    if _options:
        _set(_options)


def _check_environment():
    """Refuses settings that the library would ignore with a warning."""
    try:
        _girih.check_environment()
    except ValueError as error:
        raise ValueError(f"girih: {error}") from None


def _loaded_already():
    try:
        return ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD)
    except OSError:
        return None


def _set(options):
    if _driver.girih_shim_set_options(json.dumps(options).encode()) != 0:
        error = last_error() or {}
        raise ValueError(f"girih: {error.get('message', f'these options are refused: {options}')}")


def configure(**options):
    """Changes options; those that are None stay."""
    given = {name: value for name, value in options.items() if value is not None}
    if _driver is None:
        _options.update(given)
    elif given:
        _set(given)


def options():
    """All options of the library."""
    load()
    return json.loads(_driver.girih_shim_options())


def version():
    """The version of the library."""
    load()
    return _driver.girih_shim_version().decode()


def _print(_user, text, length):
    # An exception has nowhere to go from here: a kernel's output is lost, not the launch.
    with contextlib.suppress(Exception):
        sys.stdout.write(ctypes.string_at(text, length).decode(errors="replace"))


def warn():
    """Warns of what was found in launches since the last call."""
    everything = found[:]
    found.clear()
    for each in everything:
        frames = [(f.filename, f.lineno, f.column, f.function) for f in reversed(_frames(each))]
        kernel_warning(each["diagnostic"], each["message"], each["notes"], each.get("help"), frames)


class Launches:
    """The launches on the default stream while it was under capture."""

    def __init__(self, executable):
        self._executable = executable
        weakref.finalize(self, _driver.cuGraphExecDestroy, executable)

    def run(self):
        _succeed(_driver.cuGraphLaunch(self._executable, None))


def _succeed(code):
    if code != 0:
        raise explain(RuntimeError(f"girih: the driver answered {code}"))
    warn()


def begin_capture():
    """Records launches on the default stream from now on, instead of running them."""
    load()
    _succeed(_driver.cuStreamBeginCapture_v2(None, 0))


def end_capture():
    """The launches since the capture began; None if there were none."""
    graph, executable, count = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
    _succeed(_driver.cuStreamEndCapture(None, ctypes.byref(graph)))
    try:
        _succeed(_driver.cuGraphGetNodes(graph, None, ctypes.byref(count)))
        if count.value == 0:
            return None
        _succeed(_driver.cuGraphInstantiateWithFlags(ctypes.byref(executable), graph, ctypes.c_ulonglong(0)))
    finally:
        _driver.cuGraphDestroy(graph)
    return Launches(executable)


def last_error():
    """The details of the last failure on this thread, or None; the call clears them."""
    if _driver is None:
        return None
    text = _driver.girih_shim_last_error()
    _driver.girih_shim_clear_error()
    return None if text is None else json.loads(text)


def container(bytecode, arguments=()):
    """A program as cuTile keeps it between compiling and loading; a wrong one is a TileCompilerExecutionError.

    ``arguments`` are the names that messages give to the kernel's arguments.
    """
    load()
    options = json.dumps({"arguments": list(arguments)}).encode()
    image, length = ctypes.c_void_p(), ctypes.c_size_t()
    if _driver.girih_shim_assemble(bytes(bytecode), len(bytecode), options, ctypes.byref(image), ctypes.byref(length)):
        raise _not_compiled(last_error() or {"message": "the bytecode was refused"})
    try:
        return ctypes.string_at(image, length.value)
    finally:
        _driver.girih_shim_free(image)


@contextlib.contextmanager
def time_limit(seconds, error, message):
    """Stops a kernel that runs longer; that is an `error`."""
    if seconds is None:
        yield
        return
    # cuTile may hold Python's lock while a kernel runs, and no thread of Python could do this then.
    alarm = _girih.Alarm(seconds, ctypes.cast(_driver.girih_shim_interrupt, ctypes.c_void_p).value)
    try:
        yield
    except KeyboardInterrupt:
        if not alarm.rang():
            raise
    else:
        return
    finally:
        alarm.cancel()
    raise error(message)


def explain(error):
    """The exception to raise instead of one that cuTile raised."""
    if not isinstance(error, RuntimeError):
        return error
    failure = last_error()
    if failure is None:
        return error
    kind = failure.get("kind")
    if kind == "interrupted":
        return KeyboardInterrupt()
    if kind in ("program", "compiler"):
        return _not_compiled(failure)
    code = failure.get("diagnostic")
    frames = _frames(failure)
    block = failure.get("block")
    text = describe(_sentence(failure), frames, block)
    if kind == "assert":
        # As a GPU's driver prints it, even if the exception is caught.
        with contextlib.suppress(Exception):
            print(failure.get("message", "assertion failed").removeprefix(f"error[{code}]: "), flush=True)
    return BY_CODE.get(code, KernelError)(text, code, frames, block)


def _sentence(failure):
    """The message without the form of a compiler's error."""
    text = failure.get("message", "the launch failed")
    code = failure.get("diagnostic")
    text = in_words(text.removeprefix(f"error[{code}]: "))
    if code:
        text += f" [{code}]"
    if help := failure.get("help"):
        text += f"\nhelp: {help}"
    return text


def _frames(failure):
    """The places of a failure in the user's files, outermost first."""
    frames = failure.get("frames")
    if not frames:
        frames = [failure] if failure.get("file") else []
    # Calls inside cuTile, such as those of ``tile.astype``, are not places of the user's.
    cutile = sys.modules.get("cuda.tile")
    theirs = os.path.dirname(cutile.__file__) + os.sep if cutile else None
    own = [f for f in frames if not theirs or not (f.get("file") or "").startswith(theirs)] or frames
    return [Frame(f.get("file"), f.get("line"), _column(f), f.get("function")) for f in reversed(own)]


def _column(frame):
    """cuTile counts columns from 0."""
    column = frame.get("column")
    return None if column is None else column + 1


def _not_compiled(failure):
    """cuTile's own exception for a kernel that its compiler refuses."""
    from cuda.tile import TileCompilerExecutionError
    from cuda.tile._exception import Loc

    text = describe(_sentence(failure), _frames(failure))
    error = TileCompilerExecutionError(1, text, Loc.unknown(), "", f"girih {version()}")
    # Its text would begin with a return code of a process that there is not, and end in an unknown location.
    error.__class__ = _refusal(TileCompilerExecutionError)
    error.message = text
    return error


_refusals = {}


def _refusal(base):
    """cuTile's exception, printed as its message."""
    if base not in _refusals:
        names = {"__str__": lambda self: self.message, "__module__": base.__module__}
        _refusals[base] = type(base.__name__, (base,), names)
    return _refusals[base]
