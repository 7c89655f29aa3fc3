"""The driver that Triton calls: what the device is, and launches."""

import functools
import operator
import os
import struct
import time

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from girih import _girih
from girih.frontend.errors import kernel_error
from girih.kernel import describe_array, dtype_name, write_out
from girih.triton import hosting


def _describe(value, name):
    """What is passed for a tensor: its memory as it is, since a kernel that needs strides is given them."""
    base = getattr(value, "base", None)
    if base is not None and not hasattr(value, "untyped_storage") and hasattr(value, "data_ptr"):
        value = base  # triton.runtime.jit.TensorWrapper: another element type of the same memory
    found = describe_array(value, name)
    if type(found) is tuple:
        address, spanned, writable, element, _layout, stream, owner = found
        return address, spanned, writable, element, None, stream, owner
    return found


class Launcher:
    """Launches one compiled kernel."""

    def __init__(self, src, metadata):
        plan = []
        for at, kind in enumerate(src.signature.values()):
            _plan(kind, (at,), plan)
        self.plan = plan
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
        parameters = [(f"argument {i}", "unspecialised", False, None) for i in range(count)]
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
            self._prepare(kernel, len(args))
        self.launch((x, y, z), None, args, {})
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
        plan.append((path, functools.partial(_bits, *_PACKED[kind])))
    else:
        plan.append((path, None))


# Floats whose bits are not those of a float32: how Python packs them, and an integer of their size.
_PACKED = {"fp64": ("<d", "<q"), "fp16": ("<e", "<H")}


def _bits(form, integer, value):
    return struct.unpack(integer, struct.pack(form, value))


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
    """What Triton asks of a device."""

    def load_binary(self, name, kernel, shared, device):
        options = {"printer": write_out}
        made = _girih.Kernel(kernel.decode(), name, options, kernel_error)
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


class GirihDriver(DriverBase):
    """The processor, as Triton sees it."""

    def __init__(self):
        self.utils = Utils()
        self.launcher_cls = Launcher
        super().__init__()

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
        from triton.testing import do_bench

        return do_bench

    def get_empty_cache_for_benchmark(self):
        import torch

        return torch.empty(1 << 20, dtype=torch.int8)

    def clear_cache(self, cache):
        cache.zero_()

    def assemble_tensormap_to_arg(self, tensormaps_info, args):
        return args
