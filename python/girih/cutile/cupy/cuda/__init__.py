"""``cupy.cuda``: one device, whose work has ended when a call returns."""

from girih.cutile import device as _device

from . import nvtx, profiler, runtime, stream
from .stream import Event, ExternalStream, Stream, get_current_stream, get_elapsed_time

__all__ = [
    "Device",
    "Event",
    "ExternalStream",
    "MemoryPointer",
    "MemoryPool",
    "PinnedMemoryPool",
    "Stream",
    "get_current_stream",
    "get_elapsed_time",
    "nvtx",
    "profiler",
    "runtime",
    "stream",
]


class Device:
    """The device; the only one is 0."""

    def __init__(self, device=None):
        self.id = 0 if device is None else int(device)
        if self.id != 0:
            raise runtime.CUDARuntimeError(101, f"unknown device {self.id}; girih has only device 0")

    def __int__(self):
        return self.id

    def __eq__(self, other):
        return isinstance(other, Device) and other.id == self.id

    def __hash__(self):
        return hash(self.id)

    def __repr__(self):
        return f"<CUDA Device {self.id}>"

    def __enter__(self):
        return self

    def __exit__(self, *_raised):
        return None

    def use(self):
        pass

    def synchronize(self):
        pass

    @property
    def compute_capability(self):
        major, minor = _device.CAPABILITY
        return f"{major}{minor}"

    @property
    def mem_info(self):
        return runtime.memGetInfo()

    @property
    def attributes(self):
        return dict(_device.ATTRIBUTES)

    @property
    def pci_bus_id(self):
        return "0000:00:00.0"


class MemoryPointer:
    """Where an array begins."""

    def __init__(self, ptr, size):
        self.ptr = ptr
        self.mem = self
        self.size = size
        self.device = Device(0)

    def __int__(self):
        return self.ptr


class MemoryPool:
    """Memory comes from the system, and goes back to it."""

    def free_all_blocks(self, stream=None):
        pass

    def free_all_free(self):
        pass

    def n_free_blocks(self):
        return 0

    def used_bytes(self):
        return 0

    def free_bytes(self):
        return 0

    def total_bytes(self):
        return 0

    def set_limit(self, size=None, fraction=None):
        pass

    def get_limit(self):
        return 0


PinnedMemoryPool = MemoryPool


def set_allocator(_allocator=None):
    pass


def set_pinned_memory_allocator(_allocator=None):
    pass


def is_available():
    return True


def get_local_runtime_version():
    return runtime.runtimeGetVersion()


def synchronize():
    pass


