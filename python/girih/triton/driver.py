"""The driver that Triton calls: what the device is, and launches."""

import contextlib
import operator
import os
import struct
import sys
import time

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from girih import _girih
from girih.frontend.errors import LaunchError, kernel_error, kernel_warning
from girih.kernel import describe_array, dtype_name, element_name, write_out
from girih.triton import hosting, tuning


class _Whole:
    """A tensor to be described as far as its storage goes: a pointer knows no views."""

    __slots__ = ("tensor",)

    def __init__(self, tensor):
        self.tensor = tensor


def _whole(args):
    """The arguments with their tensors as `_Whole`."""
    torch = sys.modules.get("torch")
    wrapper = sys.modules["triton.runtime.jit"].TensorWrapper
    kinds = (wrapper,) if torch is None else (wrapper, torch.Tensor)
    return tuple(_Whole(value) if isinstance(value, kinds) else value for value in args)


def _describe(value, name):
    """The argument for a tensor: its memory as it is, since a kernel that needs strides gets them as arguments."""
    whole = type(value) is _Whole
    if whole:
        value = value.tensor
    if isinstance(value, sys.modules["triton.runtime.jit"].TensorWrapper):
        value = value.base  # another element type of the same memory
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return _of_numpy(value, name)
    if _is_pointer(value):
        return _of_pointer(value, name)
    found = describe_array(value, name)
    if type(found) is tuple:
        address, memory, writable, element, _layout, stream, owner = found
        if whole and memory != (0, 0):
            storage = value.untyped_storage()
            memory = _around(address, [(storage.data_ptr(), storage.nbytes())])
        return address, memory, writable, element, None, stream, owner
    return found


def _is_pointer(value):
    """True for an object that Triton takes for a tensor since it has an address and an element type, and that is none of PyTorch's."""
    torch = sys.modules.get("torch")
    tensor = torch is not None and isinstance(value, torch.Tensor)
    return not tensor and callable(getattr(value, "data_ptr", None)) and hasattr(value, "dtype")


def _of_pointer(value, name):
    element, address = element_name(value, name), value.data_ptr()
    storage = value.untyped_storage() if hasattr(value, "untyped_storage") else None
    # Looking for the tensor takes milliseconds.
    memory = _around(address, [(storage.data_ptr(), storage.nbytes())]) if hasattr(storage, "nbytes") else None
    memory = memory or _around(address, _of_all_tensors())
    if memory is None:
        raise ValueError(f"the argument `{name}` is the address {address:#x}, which is in no tensor")
    return address, memory, True, element, None, None, value


def _around(address, tensors):
    """The bytes before and from an address on of the tensors that hold it; None where none does. It may be just behind the last byte."""
    spans = [(address - start, start + size - address) for start, size in tensors if start <= address <= start + size]
    return (max(before for before, _ in spans), max(behind for _, behind in spans)) if spans else None


def _of_numpy(array, name):
    from numpy.lib.array_utils import byte_bounds

    address = array.ctypes.data
    low, high = byte_bounds(array)
    return address, (address - low, high - address) if array.size else (0, 0), array.flags.writeable, dtype_name(array.dtype)[0], None, None, array


class Loaded:
    """A kernel; whether its accesses are checked as it runs, and whether it is then to be told where all tensors are: one that goes
    to addresses which it finds in memory."""

    def __init__(self, text, name):
        self.text, self.name = text, name
        self.kernel = _girih.Kernel(text, name, {"printer": write_out, "warn": kernel_warning}, kernel_error)
        native = os.environ.get("GIRIH_DEVICE", "cpu") in ("", "cpu") and os.environ.get("GIRIH_CHECK", "0") in ("", "0")
        self.checked = not native
        self.wanders = "tt.int_to_ptr" in text and not native


def _of_all_tensors():
    """Where the tensors of this process are, and how many bytes they have."""
    import gc

    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    found = set()
    for value in gc.get_objects():
        # Its type as it is: a module that is loaded when it is looked at stays as it is.
        kind = type(value)
        if torch is not None and issubclass(kind, torch.Tensor) and value.layout == torch.strided:
            # A tensor without memory of its own says so in one of many ways.
            with contextlib.suppress(RuntimeError, NotImplementedError):
                storage = value.untyped_storage()
                if storage.device.type == "cpu" and storage.nbytes():
                    found.add((storage.data_ptr(), storage.nbytes()))
        elif numpy is not None and issubclass(kind, numpy.ndarray) and value.size:
            found.add((value.ctypes.data, value.nbytes))
    return sorted(found)


class Launcher:
    """Launches one compiled kernel."""

    def __init__(self, src, metadata):
        plan = []
        for at, kind in enumerate(src.signature.values()):
            _plan(kind, (at,), plan)
        self.plan = plan
        self.names = list(src.signature)
        # Where all arguments of the kernel are arguments of the call, or some of those, as they are.
        self.pick = None
        plain = all(len(path) == 1 and make is None for path, make in plan)
        self.plain = plain
        if plain:
            at = [path[0] for path, _ in plan]
            if at != list(range(len(src.signature))):
                self.pick = _picker(at)
        self.launch = None

    def _prepare(self, kernel, count):
        names = [str(self.names[path[0]]) for path, _ in self.plan]
        # A descriptor is several.
        names = names if len(names) == count else [f"argument {i}" for i in range(count)]
        parameters = [(name, "unspecialised", False, None) for name in names]
        dispatcher = _girih.Dispatcher(parameters, lambda *looks: kernel, _describe, dtype_name)
        self.launch = dispatcher.launch

    def __call__(self, x, y, z, stream, kernel, packed, metadata, enter, leave, *args):
        if enter is not None:
            enter(metadata)
        if not self.plain:
            args = self.flat(args)
        elif self.pick is not None:
            args = self.pick(args)
        if self.launch is None:
            self._prepare(kernel.kernel, len(args))
        if tuning.noted is not None:
            tuning.note(kernel, (x, y, z), args)
        if kernel.wanders:
            self.launch((x, y, z), None, _whole(args), {}, _of_all_tensors())
        elif kernel.checked:
            self.launch((x, y, z), None, _whole(args), {})
        else:
            try:
                self.launch((x, y, z), None, args, {})
            except LaunchError:
                # Nothing has run. Memory past the end of a view may lie in its storage, which takes longer to ask.
                self.launch((x, y, z), None, _whole(args), {})
        if leave is not None:
            leave(metadata)

    def flat(self, args):
        out = []
        for path, make in self.plan:
            value = args
            for at in path:
                value = value[at]
            if make is None:
                out.append(value)
            else:
                out.extend(make(value))
        return tuple(out)


def _picker(at):
    if not at:
        return lambda args: ()
    if len(at) == 1:
        return lambda args: (args[at[0]],)
    return operator.itemgetter(*at)


def _plan(kind, path, plan):
    """Adds where the arguments of a parameter of this type come from, and what is made of them."""
    if isinstance(kind, tuple):
        for at, inner in enumerate(kind):
            _plan(inner, (*path, at), plan)
    elif kind == "constexpr":
        pass
    elif kind.startswith("tensordesc"):
        plan.append((path, _descriptor))
    elif kind in _PACKED:
        plan.append((path, lambda value, bits=_PACKED[kind]: (bits(value),)))
    else:
        plan.append((path, None))


def _half(value):
    try:
        return struct.unpack("<H", struct.pack("<e", value))[0]
    except OverflowError:
        return 0x7C00 if value > 0 else 0xFC00


def _bfloat(value):
    """Cut off, as Triton's launchers of GPUs do."""
    try:
        return struct.unpack("<I", struct.pack("<f", value))[0] >> 16
    except OverflowError:
        return 0x7F80 if value > 0 else 0xFF80


def _double(value):
    return struct.unpack("<q", struct.pack("<d", value))[0]


# The bits of floats that are passed otherwise than a float32.
_PACKED = {"fp64": _double, "fp16": _half, "bf16": _bfloat}


def _descriptor(value):
    """The parameters that a tensor descriptor becomes, in the order of Triton's."""
    sizes = [*map(int, value.shape), *map(int, value.strides)]
    more = []
    if hasattr(value, "padding"):
        more.append(value.padding == "nan")
    if hasattr(value, "round_f32_to_tf32"):
        more.append(bool(value.round_f32_to_tf32))
    return [value.base, *sizes, *more, *sizes]


class Utils:
    """Functions that Triton expects of a device."""

    def load_binary(self, name, kernel, shared, device):
        made = Loaded(kernel.decode(), name)
        # The module, which must be something, the function, registers, spills, and the most threads.
        return made, made, 0, 0, 1 << 20

    def unload_module(self, module):
        pass

    def get_device_properties(self, device):
        return {
            "max_shared_mem": 1 << 30,
            "max_num_regs": 1 << 16,
            "multiprocessor_count": os.cpu_count() or 1,
            "warpSize": 1,
            "sm_clock_rate": 1_000_000,
            "mem_clock_rate": 1_000_000,
            "mem_bus_width": 64,
        }


class _Event:
    def __init__(self, enable_timing=True, **options):
        self.time = 0.0

    def record(self, stream=None):
        self.time = time.perf_counter()

    def elapsed_time(self, end):
        return (end.time - self.time) * 1e3

    def synchronize(self):
        pass

    def wait(self, stream=None):
        pass


class _Interface:
    """The part of ``torch.cuda`` that Triton uses; a launch has ended when it returns."""

    Event = _Event

    @staticmethod
    def synchronize(device=None):
        pass

    @staticmethod
    def current_device():
        return 0

    @staticmethod
    def set_device(device):
        pass


def exact_by_default():
    """Makes products of f32 exact unless a kernel says otherwise, as on AMD's GPUs; Triton has no such choice for a backend that also
    has tf32. It holds for the process."""
    from triton import knobs

    language = getattr(knobs, "language", None)
    if language is not None and language.fp32_default is None:
        language.fp32_default = "ieee"


class GirihDriver(DriverBase):
    """The processor, as Triton sees it."""

    def __init__(self):
        self.utils = Utils()
        self.launcher_cls = Launcher
        super().__init__()
        # Not where a GPU's driver is in use too.
        if hosting.active():
            exact_by_default()

    @staticmethod
    def is_active():
        return hosting.active()

    def map_python_to_cpp_type(self, ty):
        return ty

    def get_current_target(self):
        return GPUTarget("girih", "cpu", 1)

    def get_active_torch_device(self):
        import torch

        return torch.device("cuda" if hosting._installed else "cpu")

    def get_current_device(self):
        return 0

    def set_current_device(self, device):
        pass

    def get_current_stream(self, device=None):
        return 0

    def get_device_capability(self, device=None):
        return 9, 0

    def get_device_interface(self):
        return _Interface

    def get_benchmarker(self):
        return tuning.Benchmarker()

    def get_empty_cache_for_benchmark(self):
        import torch

        return torch.empty(1 << 20, dtype=torch.int8)

    def clear_cache(self, cache):
        cache.zero_()

    def assemble_tensormap_to_arg(self, tensormaps_info, args):
        return args
