"""PyTorch programs written for ``device="cuda"``, on tensors of the CPU.

`redirect(torch)` runs once, after the program's first ``import torch``. Then

* whatever takes a device takes ``"cuda"`` and makes a CPU tensor; ``.cuda()``, ``.cpu()`` and ``.to(device)`` copy, as
  between two memories, so that neither side sees what is later written to the other;
* ``tensor.device`` is ``cuda:0`` and ``is_cuda`` true, save for what ``.cpu()`` or ``.to("cpu")`` gave;
* ``torch.cuda`` answers for one device, whose work has ended when a call returns.
"""

import contextlib
import functools
import time
import types

from girih.cutile import device as _device

# Marks what a program moved to the host.
_HOST = "_girih_on_host"


def redirect(torch):
    _Redirect(torch).install()


class _Redirect:
    def __init__(self, torch):
        self.torch = torch
        self.cpu = torch.device("cpu")
        self.cuda0 = torch.device("cuda", 0)

    def device(self, asked):
        """The device to use instead of one asked for."""
        torch = self.torch
        if isinstance(asked, str) and asked.startswith("cuda"):
            asked = torch.device(asked)
        elif isinstance(asked, int) and not isinstance(asked, bool):
            asked = torch.device("cuda", asked)
        if isinstance(asked, torch.device) and asked.type == "cuda":
            if asked.index not in (None, 0):
                raise RuntimeError(f"unknown device {asked}: girih has only cuda:0")
            return self.cpu
        return asked

    def install(self):
        self._factories()
        self._tensors()
        self._contexts()
        names = self.cuda_module()
        _fill(self.torch.cuda, names)
        _quiet_marks(self.torch.cuda)
        if accelerator := getattr(self.torch, "accelerator", None):
            _fill(accelerator, self.accelerator_module(names))

    # What makes tensors.

    def _factories(self):
        torch = self.torch
        from torch.utils import _device as device_contexts

        for real in device_contexts._device_constructors():
            name = getattr(real, "__name__", None)
            for module in (torch, torch.fft, torch.nn.init, torch.sparse):
                if getattr(module, name or "", None) is real:
                    setattr(module, name, self._taking_device(real))
        for name in ("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like"):
            setattr(torch, name, self._taking_device(getattr(torch, name)))
        device_contexts._device_constructors.cache_clear()

        real_load = torch.load

        @functools.wraps(real_load)
        def load(f, map_location=None, *args, **kwargs):
            if map_location is None or not callable(map_location) and not isinstance(map_location, dict):
                map_location = self.cpu
            return real_load(f, map_location, *args, **kwargs)

        torch.load = load
        self._generator()

    def _taking_device(self, real):
        device = self.device

        @functools.wraps(real)
        def function(*args, **kwargs):
            asked = kwargs.get("device")
            if asked is not None:
                kwargs["device"] = device(asked)
            kwargs.pop("pin_memory", None)
            return real(*args, **kwargs)

        return function

    def _generator(self):
        torch, redirect = self.torch, self
        real = torch.Generator

        class Kind(type(real)):
            def __instancecheck__(cls, value):
                return isinstance(value, real)

        class Generator(real, metaclass=Kind):
            def __new__(cls, device="cpu"):
                return real(redirect.device(device))

        Generator.__module__ = "torch"
        torch.Generator = Generator

    # What tensors do.

    def _tensors(self):
        torch, device = self.torch, self.device
        Tensor = torch.Tensor
        real_to, real_device = Tensor.to, Tensor.device

        def moved(before, after, host):
            if after is before:
                after = before.clone()
            if host:
                setattr(after, _HOST, True)
            return after

        @functools.wraps(real_to)
        def to(self, *args, **kwargs):
            asked = kwargs.get("device")
            if asked is not None:
                kwargs["device"] = device(asked)
            elif args and isinstance(args[0], (str, int, torch.device)):
                asked = args[0]
                args = (device(asked), *args[1:])
            result = real_to(self, *args, **kwargs)
            if asked is None:
                return result
            return moved(self, result, device(asked) is asked or asked == "cpu")

        @functools.wraps(Tensor.cuda)
        def cuda(self, device=None, non_blocking=False, **_options):
            if device is not None:
                redirect_device(device)
            return moved(self, self, host=False)

        @functools.wraps(Tensor.cpu)
        def cpu(self, **_options):
            return moved(self, self, host=True)

        redirect_device = device
        cuda0 = self.cuda0

        def where(self):
            real = real_device.__get__(self)
            if real.type == "cpu" and not getattr(self, _HOST, False):
                return cuda0
            return real

        Tensor.to, Tensor.cuda, Tensor.cpu = to, cuda, cpu
        Tensor.device = property(where)
        Tensor.is_cuda = property(lambda self: self.device.type == "cuda")
        Tensor.is_cpu = property(lambda self: self.device.type == "cpu")
        Tensor.get_device = lambda self: 0 if self.is_cuda else -1
        Tensor.pin_memory = lambda self, device=None: self
        Tensor.is_pinned = lambda self, device=None: not self.is_cuda
        Tensor.record_stream = lambda self, stream: None
        for name in ("new_tensor", "new_zeros", "new_ones", "new_empty", "new_full", "new_empty_strided"):
            setattr(Tensor, name, self._taking_device(getattr(Tensor, name)))

    # What surrounds code.

    def _contexts(self):
        torch, device = self.torch, self.device
        from torch.amp import autocast_mode
        from torch.utils._device import DeviceContext

        real_context = DeviceContext.__init__
        DeviceContext.__init__ = lambda self, asked: real_context(self, device(asked))
        real_default = torch.set_default_device
        torch.set_default_device = functools.wraps(real_default)(lambda asked: real_default(device(asked)))

        real_autocast = autocast_mode.autocast.__init__

        @functools.wraps(real_autocast)
        def autocast(self, device_type, dtype=None, enabled=True, cache_enabled=None):
            if str(device_type).startswith("cuda"):
                device_type = "cpu"
                dtype = torch.float16 if dtype is None else dtype
            real_autocast(self, device_type, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)

        autocast_mode.autocast.__init__ = autocast

    # torch.cuda

    def cuda_module(self):
        """What ``torch.cuda`` has instead, by name."""
        torch, redirect = self.torch, self
        local = types.SimpleNamespace(stream=None)

        class Stream:
            """A stream; which one makes no difference."""

            def __init__(self, device=None, priority=0, **_options):
                self.cuda_stream = 0
                self.stream_id = 0
                self.device = redirect.cuda0
                self.device_index = 0
                self.priority = priority
                self._before = []

            def __enter__(self):
                self._before.append(local.stream)
                local.stream = self
                return self

            def __exit__(self, *_raised):
                local.stream = self._before.pop()

            def synchronize(self):
                pass

            def query(self):
                return True

            def is_capturing(self):
                return False

            def wait_stream(self, stream):
                pass

            def wait_event(self, event):
                pass

            def record_event(self, event=None):
                event = Event() if event is None else event
                event.record(self)
                return event

            def __repr__(self):
                return "<torch.cuda.Stream device=cuda:0 cuda_stream=0x0>"

        class ExternalStream(Stream):
            def __init__(self, stream_ptr, device=None):
                super().__init__(device)
                self.cuda_stream = stream_ptr

        class Event:
            """The moment at which it was recorded."""

            def __init__(self, enable_timing=False, blocking=False, interprocess=False, external=False):
                self.time = None

            def record(self, stream=None):
                self.time = time.perf_counter()

            def wait(self, stream=None):
                pass

            def synchronize(self):
                pass

            def query(self):
                return True

            def elapsed_time(self, end):
                if self.time is None or end.time is None:
                    raise ValueError("an event was not recorded")
                return (end.time - self.time) * 1e3

        class device:
            """A context that chooses the device, which is 0."""

            def __init__(self, asked=None):
                redirect.device(0 if asked is None else asked)

            def __enter__(self):
                return self

            def __exit__(self, *_raised):
                return False

        class CUDAGraph:
            def __init__(self, *_args, **_options):
                raise RuntimeError("girih has no CUDA graphs for PyTorch; run the work without torch.cuda.graph")

        local.stream = Stream()

        def properties(asked=None):
            import os

            redirect.device(0 if asked is None else asked)
            major, minor = _device.CAPABILITY
            return types.SimpleNamespace(
                name=_device.NAME,
                major=major,
                minor=minor,
                total_memory=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
                multi_processor_count=_device.processors(),
                warp_size=32,
                max_threads_per_multi_processor=2048,
                regs_per_multiprocessor=65536,
                shared_memory_per_block=49152,
                shared_memory_per_block_optin=_device.SHARED_MEMORY,
                shared_memory_per_multiprocessor=_device.SHARED_MEMORY,
                L2_cache_size=1 << 22,
                is_integrated=True,
                gcnArchName="",
            )

        def mem_get_info(_asked=None):
            import os

            page = os.sysconf("SC_PAGE_SIZE")
            return os.sysconf("SC_AVPHYS_PAGES") * page, os.sysconf("SC_PHYS_PAGES") * page

        def nothing(*_args, **_options):
            return None

        def zero(*_args, **_options):
            return 0

        def seed(number):
            torch.default_generator.manual_seed(int(number))

        @contextlib.contextmanager
        def stream_context(stream):
            if stream is None:
                yield
            else:
                with stream:
                    yield

        def use(stream):
            local.stream = stream

        names = {
            "is_available": lambda: True,
            "is_current_stream_capturing": lambda: False,
            "is_initialized": lambda: True,
            "is_bf16_supported": lambda including_emulation=True: True,
            "is_tf32_supported": lambda: True,
            "device_count": lambda: 1,
            "current_device": zero,
            "set_device": lambda asked: redirect.device(asked) and None,
            "get_device_name": lambda asked=None: _device.NAME,
            "get_device_capability": lambda asked=None: _device.CAPABILITY,
            "get_device_properties": properties,
            "get_arch_list": lambda: ["sm_" + "".join(str(n) for n in _device.CAPABILITY)],
            "can_device_access_peer": lambda a, b: a == b,
            "current_stream": lambda asked=None: local.stream,
            "default_stream": lambda asked=None: Stream(),
            "set_stream": use,
            "stream": stream_context,
            "Stream": Stream,
            "ExternalStream": ExternalStream,
            "Event": Event,
            "device": device,
            "device_of": device,
            "CUDAGraph": CUDAGraph,
            "mem_get_info": mem_get_info,
            "memory_stats": lambda asked=None: {},
            "memory_summary": lambda asked=None, abbreviated=False: "girih: memory is the system's\n",
            "utilization": zero,
            "manual_seed": seed,
            "manual_seed_all": seed,
            "seed": nothing,
            "seed_all": nothing,
            "initial_seed": torch.default_generator.initial_seed,
            "get_rng_state": lambda asked=None: torch.get_rng_state(),
            "get_rng_state_all": lambda: [torch.get_rng_state()],
            "set_rng_state": lambda state, asked=None: torch.set_rng_state(state),
            "set_rng_state_all": lambda states: torch.set_rng_state(states[0]),
            "default_generators": (torch.default_generator,),
        }
        for name in (
            "init", "_lazy_init", "synchronize", "empty_cache", "ipc_collect", "reset_peak_memory_stats",
            "reset_max_memory_allocated", "reset_accumulated_memory_stats", "set_per_process_memory_fraction",
        ):  # fmt: skip
            names[name] = nothing
        for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"):
            names[name] = zero
        return names

    def accelerator_module(self, cuda):
        """What ``torch.accelerator`` has instead: the same device, asked for without its name."""
        names = {
            "current_accelerator": lambda check_available=False: self.torch.device("cuda"),
            "current_device_index": cuda["current_device"],
            "set_device_index": cuda["set_device"],
            "set_device_idx": cuda["set_device"],
        }
        for name in ("is_available", "device_count", "current_stream", "set_stream", "synchronize", "empty_cache"):
            names[name] = cuda[name]
        return names


def _fill(module, names):
    for name, value in names.items():
        if isinstance(value, types.FunctionType) and value.__name__ == "<lambda>":
            value.__name__ = name
        setattr(module, name, value)


def _quiet_marks(cuda):
    """``torch.cuda.nvtx``: marks for a profiler that is not there."""
    marks = getattr(cuda, "nvtx", None)
    if marks is not None:
        for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
            setattr(marks, name, lambda *_args, **_options: 0)

        @contextlib.contextmanager
        def range(*_args, **_options):
            yield

        marks.range = range
