"""PyTorch programs written for ``device="cuda"``, on tensors of the CPU.

`redirect(torch)` runs once, after the program's first ``import torch``. Then

* whatever takes a device takes ``"cuda"`` and makes a CPU tensor; ``.cuda()``, ``.cpu()`` and ``.to(device)`` copy from one
  to the other, as between two memories, so that neither side sees what is later written to the other;
* ``tensor.device`` is ``cuda:0`` and ``is_cuda`` true for what was asked for as CUDA, and for what is computed from that; other
  tensors are the host's;
* ``torch.cuda`` answers for one device, whose work has ended when a call returns; ``torch.cuda.graph`` records launches and
  what PyTorch does to tensors of the device, and ``replay()`` does it again.

Which tensors are the device's is marked on their storage, which views, parameters and saved tensors share. A mode of PyTorch's
sees every call of its interface: it takes the device out of the arguments, and marks the results.
"""

import contextlib
import functools
import threading
import time
import types
import weakref

from girih.cutile import compiled as _compiled
from girih.cutile import device as _device
from girih.cutile import driver as _driver
from girih.cutile import mixed as _mixed
from girih.cutile import operators as _operators
from girih.cutile import philox as _philox
from girih.cutile import products as _products

# Marks a storage of the device.
_MARK = "_girih_on_device"
# Methods that change their first operand without saying so by a name that ends in `_`.
_CHANGING = {"__setitem__"} | {f"__i{op}__" for op in (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift", "matmul")}  # fmt: skip


def redirect(torch):
    _Redirect(torch).install()


def _questions(tensor):
    """The questions that a launch asks each tensor: they name no device and return no tensor."""
    methods = ("data_ptr", "dim", "element_size", "is_contiguous", "is_floating_point", "numel", "size", "storage_offset", "stride")
    properties = ("dtype", "layout", "ndim", "requires_grad", "shape")
    return frozenset([getattr(tensor, name) for name in methods] + [getattr(tensor, name).__get__ for name in properties])


class _Asking(threading.local):
    """The device that a thread's call of PyTorch's interface asks for."""

    #: True if it asks for a tensor of the device.
    cuda = False


class _Redirect:
    def __init__(self, torch):
        self.torch = torch
        self.cpu = torch.device("cpu")
        self.cuda0 = torch.device("cuda", 0)
        # For each entered device context or default, innermost last: True if it is the GPU.
        self.contexts = []
        # The graph that is under capture.
        self.graph = None
        self.asking = _Asking()
        # Functions whose tensors are sizes and numbers: they do not say where the result is.
        self.of_numbers = {getattr(torch, name) for name in ("arange", "empty", "eye", "full", "ones", "rand", "randint", "randn", "zeros")}
        # Functions whose second result, lengths, is the host's wherever the first is.
        self.counting = {torch._VF._pack_padded_sequence, torch._VF._pad_packed_sequence}
        # The functions to call in place of PyTorch's own on tensors of the device.
        self.products = _products.rounded(torch)

    def cuda(self, asked):
        """Returns True if the device asked for is the GPU; devices other than the first are refused."""
        torch = self.torch
        if isinstance(asked, str) and asked.startswith("cuda"):
            asked = torch.device(asked)
        elif isinstance(asked, int) and not isinstance(asked, bool):
            asked = torch.device("cuda", asked)
        if not isinstance(asked, torch.device) or asked.type != "cuda":
            return False
        if asked.index not in (None, 0):
            raise RuntimeError(f"unknown device {asked}: girih has only cuda:0")
        return True

    def device(self, asked):
        """The device to use instead of one asked for."""
        return self.cpu if self.cuda(asked) else asked

    # Which tensors are the device's.

    def home(self, tensor):
        """The object that carries the mark of a tensor: its storage."""
        with self.torch._C.DisableTorchFunction():
            try:
                return tensor.untyped_storage()
            except (NotImplementedError, RuntimeError):
                return tensor  # a sparse one, of several storages

    def marked(self, tensor):
        return getattr(self.home(tensor), _MARK, False)

    def holds(self, value):
        """Returns True if one of the tensors in a value is the device's."""
        return any(map(self.marked, self.tensors((value,))))

    def mark(self, tensor, cuda):
        setattr(self.home(tensor), _MARK, cuda)
        return tensor

    def tensors(self, values, depth=2):
        """The tensors among values, and in lists and tuples among them."""
        for value in values:
            if isinstance(value, self.torch.Tensor):
                yield value
            elif depth and isinstance(value, (tuple, list)):
                yield from self.tensors(value, depth - 1)

    def call(self, func, args, kwargs):
        """A call of PyTorch's interface: without CUDA in its arguments, its results marked."""
        asked = kwargs.get("device")
        if asked is not None:
            cuda = self.cuda(asked)
            kwargs = {**kwargs, "device": self.cpu if cuda else asked}
        if "pin_memory" in kwargs:
            kwargs = {name: value for name, value in kwargs.items() if name != "pin_memory"}
        tensors = list(self.tensors((*args, *kwargs.values())))
        given = [self.home(t) for t in tensors]
        if asked is None:
            if func in self.constructors() and (not given or func in self.of_numbers):
                cuda = bool(self.contexts) and self.contexts[-1]
            else:
                cuda = self.decides(func, tensors, [getattr(home, _MARK, False) for home in given])
        if cuda:
            func = self.products.get(func, func)
        if self.graph is not None and cuda:
            return self.record(func, args, kwargs, given)
        before, self.asking.cuda = self.asking.cuda, cuda
        try:
            result = self.settle(func(*args, **kwargs), given, cuda, asked is not None)
            if func in self.counting:
                self.mark(result[1], False)
            return result
        finally:
            self.asking.cuda = before

    def decides(self, func, tensors, marks):
        """Returns True if a call with these tensors, some of them marked, makes tensors of the device."""
        if all(marks) or not any(marks):
            return any(marks)
        if getattr(func, "__name__", "").startswith("new_"):
            return marks[0]
        # One number, like `alpha` of `torch.addr`, may lie on the other side.
        with self.torch._C.DisableTorchFunction():
            shaped = [mark for tensor, mark in zip(tensors, marks) if tensor.dim()]
        return any(shaped or marks)

    def settle(self, result, given, cuda, asked):
        """Marks the tensors of a result that lie in memory of their own; a tensor asked for on the other side is a copy."""
        for tensor in self.tensors((result,)):
            home = self.home(tensor)
            if not any(home is other for other in given):
                if cuda:
                    setattr(home, _MARK, True)
            elif asked and tensor is result and getattr(home, _MARK, False) != cuda:
                result = self.mark(tensor.clone(), cuda)
        return result

    def record(self, func, args, kwargs, given):
        """The call as a step of the graph under capture. It runs once now where it makes new tensors, which the steps fill."""
        name = getattr(func, "__name__", "")
        if name in _CHANGING or name.endswith("_") and not name.endswith("__") or kwargs.get("out") is not None:
            self.graph.add(lambda: func(*args, **kwargs))
            return None if name == "__setitem__" else kwargs.get("out", args[0])
        result = self.settle(func(*args, **kwargs), given, True, False)
        made = [t for t in self.tensors((result,)) if not any(self.home(t) is other for other in given)]
        if made:

            def step():
                again = self.tensors((func(*args, **kwargs),))
                fresh = [t for t in again if not any(self.home(t) is other for other in given)]
                for old, new in zip(made, fresh):
                    old.data.copy_(new)

            self.graph.add(step)
        return result

    def install(self):
        self._modes()
        self._loading()
        self._generator()
        self._tensors()
        self._contexts()
        names = self.cuda_module()
        _fill(self.torch.cuda, names)
        _quiet_marks(self.torch.cuda)
        # Recurrent layers would lay out their weights for it; PyTorch's kernels for the host do the work.
        self.torch.backends.cudnn.is_acceptable = lambda tensor: False
        # Launchers ask for a stream here, and code that inductor wrote for memory.
        self.torch._C._cuda_getCurrentRawStream = lambda device=0: 0
        if guards := getattr(getattr(self.torch._C, "_dynamo", None), "guards", None):
            guards._empty_strided_cuda = lambda size, strides, dtype: self.torch.empty_strided(size, strides, dtype=dtype, device="cuda")
        if accelerator := getattr(self.torch, "accelerator", None):
            _fill(accelerator, self.accelerator_module(names))

    # Functions that make tensors.

    def _modes(self):
        torch, redirect = self.torch, self
        from torch.overrides import TorchFunctionMode, _get_current_function_mode
        from torch.utils._device import _device_constructors

        self.constructors = _device_constructors
        plain = _questions(torch.Tensor)

        class Mode(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                if func in plain:
                    return func(*args, **kwargs) if kwargs else func(*args)
                return redirect.call(func, args, kwargs or {})

        # A thread begins without modes.
        self.mode = Mode().__enter__()
        real = threading.Thread._bootstrap_inner

        @functools.wraps(real)
        def bootstrap(thread):
            with Mode():
                real(thread)

        threading.Thread._bootstrap_inner = bootstrap

        def inside(run):
            """The function in the mode, wherever it is called."""

            @functools.wraps(run)
            def in_mode(*args, **kwargs):
                with Mode() if _get_current_function_mode() is None else contextlib.nullcontext():
                    return run(*args, **kwargs)

            return in_mode

        # PyTorch calls these while no mode is active: the program's own backward passes and its operators.
        torch.autograd._engine_run_backward = inside(torch.autograd._engine_run_backward)
        _operators.adopt(torch, inside, self.holds, lambda: self.asking.cuda)
        _compiled.adopt(torch)
        _mixed.adopt(torch, self.holds, lambda: self.asking.cuda)
        self._gradients()

    def _gradients(self):
        """PyTorch makes gradients of gradients on its own, without marks: in a pass that begins on the device they are the device's."""
        torch = self.torch
        from torch.autograd.function import BackwardCFunction

        passes = threading.local()
        run, apply = torch.autograd._engine_run_backward, BackwardCFunction.apply

        @functools.wraps(run)
        def run_backward(outputs, *args, **kwargs):
            before = getattr(passes, "cuda", False)
            passes.cuda = self.holds(outputs)
            try:
                return run(outputs, *args, **kwargs)
            finally:
                passes.cuda = before

        @functools.wraps(apply)
        def apply_marked(node, *gradients):
            if getattr(passes, "cuda", False):
                for gradient in self.tensors(gradients):
                    if not hasattr(self.home(gradient), _MARK):
                        self.mark(gradient, True)
            return apply(node, *gradients)

        torch.autograd._engine_run_backward = run_backward
        BackwardCFunction.apply = apply_marked

    def _loading(self):
        torch = self.torch
        real = torch.load

        @functools.wraps(real)
        def load(f, map_location=None, *args, **kwargs):
            if callable(map_location) or isinstance(map_location, dict):
                return real(f, map_location, *args, **kwargs)
            cuda = map_location is not None and self.cuda(map_location)

            def place(storage, _location):
                inner = getattr(storage, "_untyped_storage", storage)
                setattr(inner, _MARK, cuda)
                return storage

            return real(f, place, *args, **kwargs)

        torch.load = load

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

    # Methods and attributes of tensors.

    def _tensors(self):
        torch = self.torch
        Tensor = torch.Tensor
        real_to, real_device = Tensor.to, Tensor.device

        def moved(before, after, cuda):
            if self.marked(before) == cuda:
                return after
            return self.mark(before.clone() if after is before else after, cuda)

        @functools.wraps(real_to)
        def to(self_, *args, **kwargs):
            asked = kwargs.pop("device", None)
            if asked is None and args and isinstance(args[0], (str, int, torch.device)):
                asked, args = args[0], args[1:]
            elif asked is None and args and isinstance(args[0], Tensor):
                asked, args = args[0].device, (args[0].dtype, *args[1:])
            elif asked is None and isinstance(kwargs.get("other"), Tensor):
                other = kwargs.pop("other")
                asked, args = other.device, (other.dtype, *args)
            if asked is None:
                return real_to(self_, *args, **kwargs)
            cuda = self.cuda(asked)
            device = self.device(asked)
            # PyTorch gives the mode this function, not its own, so the host's name there would ask for a copy on the host.
            if torch.device(device).type == "cpu" and real_device.__get__(self_).type in ("cpu", "cuda"):
                device = None
            return moved(self_, real_to(self_, device, *args, **kwargs), cuda)

        @functools.wraps(Tensor.cuda)
        def cuda(self_, device=None, non_blocking=False, **_options):
            if device is not None:
                self.cuda(device)
            return moved(self_, self_, True)

        @functools.wraps(Tensor.cpu)
        def cpu(self_, **_options):
            return moved(self_, self_, False)

        def where(self_):
            real = real_device.__get__(self_)
            return self.cuda0 if real.type == "cpu" and self.marked(self_) else real

        Tensor.to, Tensor.cuda, Tensor.cpu = to, cuda, cpu
        Tensor.device = property(where)
        Tensor.is_cuda = property(lambda self: self.device.type == "cuda")
        Tensor.is_cpu = property(lambda self: self.device.type == "cpu")
        Tensor.get_device = lambda self: 0 if self.is_cuda else -1
        Tensor.pin_memory = lambda self, device=None: self
        Tensor.is_pinned = lambda self, device=None: not self.is_cuda
        Tensor.record_stream = lambda self, stream: None

    # Contexts around code.

    def _contexts(self):
        torch, device = self.torch, self.device
        from torch.utils._device import DeviceContext

        real_init, real_enter, real_exit = DeviceContext.__init__, DeviceContext.__enter__, DeviceContext.__exit__
        chosen, entered = weakref.WeakKeyDictionary(), weakref.WeakSet()

        def init(context, asked):
            real_init(context, device(asked))
            chosen[context] = self.cuda(asked)

        def enter(context):
            self.contexts.append(chosen.get(context, False))
            entered.add(context)
            return real_enter(context)

        def leave(context, *raised):
            self.contexts.pop()
            entered.discard(context)
            return real_exit(context, *raised)

        real_function = DeviceContext.__torch_function__

        def torch_function(context, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            if not chosen.get(context, False):
                return real_function(context, func, types, args, kwargs)
            # A default device lies below the mode that calls `call`, which asks `contexts`; `with torch.device(...)` above it.
            if context not in entered and func in self.constructors() and kwargs.get("device") is None:
                kwargs["device"] = self.cuda0
            return func(*args, **kwargs)

        DeviceContext.__init__, DeviceContext.__enter__, DeviceContext.__exit__ = init, enter, leave
        DeviceContext.__torch_function__ = torch_function
        real_default, real_get = torch.set_default_device, torch.get_default_device

        @functools.wraps(real_default)
        def set_default_device(asked):
            real_default(device(asked))
            if self.cuda(asked):
                self.contexts[-1] = True

        torch.set_default_device = set_default_device
        torch.get_default_device = functools.wraps(real_get)(
            lambda: self.cuda0 if self.contexts and self.contexts[-1] else real_get()
        )

    # torch.cuda

    def cuda_module(self):
        """The replacements of ``torch.cuda``, by name."""
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
                return redirect.graph is not None

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
                self.idx, self.prev_idx = 0, -1

            def __enter__(self):
                return self

            def __exit__(self, *_raised):
                return False

        class CUDAGraph:
            """Launches, and PyTorch's operations on the device's tensors between them, to be replayed."""

            def __init__(self, keep_graph=False):
                self._steps = []

            def capture_begin(self, pool=None, capture_error_mode="global"):
                if redirect.graph is not None:
                    raise RuntimeError("girih: another graph is being captured")
                self._steps = []
                _driver.begin_capture()
                redirect.graph = self

            def capture_end(self):
                if redirect.graph is not self:
                    raise RuntimeError("girih: this graph is not being captured")
                redirect.graph = None
                self._take_launches()

            def _take_launches(self):
                launches = _driver.end_capture()
                if launches is not None:
                    self._steps.append(launches.run)

            def add(self, step):
                self._take_launches()
                self._steps.append(step)
                _driver.begin_capture()

            def replay(self):
                with torch._C.DisableTorchFunction(), torch.no_grad():
                    for step in self._steps:
                        step()

            def reset(self):
                self._steps = []

            def instantiate(self):
                pass

            def pool(self):
                return (0, 0)

        class graph:
            """Kernels that are launched inside are recorded in the graph and do not run."""

            def __init__(self, cuda_graph, pool=None, stream=None, capture_error_mode="global"):
                self._graph = cuda_graph

            def __enter__(self):
                self._graph.capture_begin()

            def __exit__(self, *_raised):
                self._graph.capture_end()

        def make_graphed_callables(*_args, **_options):
            raise RuntimeError("girih has no torch.cuda.make_graphed_callables; capture the work in torch.cuda.graph")

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

        drawing = _philox.generator(torch, self.cuda0)

        def seed(number):
            drawing.manual_seed(int(number))

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
            "is_current_stream_capturing": lambda: redirect.graph is not None,
            "is_initialized": lambda: True,
            "is_bf16_supported": lambda including_emulation=True: True,
            "is_tf32_supported": lambda: True,
            "device_count": lambda: 1,
            "current_device": zero,
            # `torch.cuda._DeviceGuard` calls these; code that inductor wrote enters it.
            "_exchange_device": zero,
            "_maybe_exchange_device": zero,
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
            "graph": graph,
            "graph_pool_handle": lambda: (0, 0),
            "make_graphed_callables": make_graphed_callables,
            "mem_get_info": mem_get_info,
            "memory_stats": lambda asked=None: {},
            "memory_summary": lambda asked=None, abbreviated=False: "girih: memory is the system's\n",
            "utilization": zero,
            "manual_seed": seed,
            "manual_seed_all": seed,
            "seed": nothing,
            "seed_all": nothing,
            "initial_seed": drawing.initial_seed,
            "get_rng_state": lambda asked=None: torch.get_rng_state(),
            "get_rng_state_all": lambda: [torch.get_rng_state()],
            "set_rng_state": lambda state, asked=None: torch.set_rng_state(state),
            "set_rng_state_all": lambda states: torch.set_rng_state(states[0]),
            "default_generators": (drawing,),
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
        """The replacements of ``torch.accelerator``: the same device, asked for without its name."""
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
