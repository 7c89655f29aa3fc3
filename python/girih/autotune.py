"""``@girih.autotune``: a kernel measured under several configurations, and launched under the best.

    @girih.autotune(configs=[girih.Config({"BLOCK": 256}), girih.Config({"BLOCK": 1024})], key=["n"])
    @girih.jit
    def scale(x, n, BLOCK: girih.constexpr): ...

    scale[lambda meta: (girih.cdiv(n, meta["BLOCK"]),)](x, n)

The first launch with new values of the key measures every configuration, each a few times, in turns, and keeps the one
with the least median. The times are stored on disk with the machine they were measured on, by configuration: each is measured
once per machine, and one that is added later is measured alone.
``GIRIH_AUTOTUNE=0`` takes the first configuration without measuring; ``GIRIH_AUTOTUNE=memory`` keeps choices for the
process only.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .frontend.errors import CompilationError
from .kernel import JITFunction, _girih

if TYPE_CHECKING:
    from pathlib import Path

# Modules that only a measurement needs are imported there, so that `import girih` is quick.

__all__ = ["Autotuner", "Config", "Heuristics", "autotune", "heuristics"]

# Each configuration runs this often at least, and until this many seconds are spent on it.
ROUNDS, SECONDS = 3, 0.05
# Options of Triton's that say how it measures.
IGNORED = ("use_cuda_graph", "do_bench", "pre_hook", "post_hook")


class Config:
    """Values of a kernel's constants to try.

    Args:
        kwargs: the constants by name.
        num_warps, num_stages, num_ctas, maxnreg: hints for GPUs, without effect on the processor.
        pre_hook: a function of the launch's arguments by name, called before each launch under this configuration.

    Example:
        >>> girih.Config({"BLOCK": 256})
        BLOCK=256
    """

    def __init__(
        self,
        kwargs: dict[str, Any],
        num_warps: int = 4,
        num_stages: int = 3,
        num_ctas: int = 1,
        maxnreg: int | None = None,
        pre_hook: Callable | None = None,
    ):
        if not isinstance(kwargs, dict):
            raise TypeError(f'a configuration has constants by name, `girih.Config({{"BLOCK": 256}})`, not {kwargs!r}')
        self.kwargs = dict(kwargs)
        self.num_warps, self.num_stages, self.num_ctas, self.maxnreg = num_warps, num_stages, num_ctas, maxnreg
        self.pre_hook = pre_hook

    def all_kwargs(self) -> dict[str, Any]:
        return dict(self.kwargs)

    def __repr__(self) -> str:
        return ", ".join(f"{k}={v!r}" for k, v in self.kwargs.items()) or "no constants"

    @property
    def stored_as(self) -> str:
        """The name of the configuration among stored times; a hook takes time too."""
        hook = getattr(self.pre_hook, "__qualname__", "a hook") if self.pre_hook else None
        return f"{self!r}, after {hook}" if hook else repr(self)


class Wrapped:
    """A kernel with something done before its launches; everything else is the kernel's."""

    def __init__(self, kernel: Any):
        if not isinstance(kernel, (JITFunction, Wrapped)):
            raise TypeError(f"autotune and heuristics stand above @girih.jit, and take the kernel that it makes, not {kernel!r}")
        functools.update_wrapper(self, kernel)
        self.kernel = kernel

    @property
    def innermost(self) -> JITFunction:
        return self.kernel.innermost if isinstance(self.kernel, Wrapped) else self.kernel

    @property
    def __girih_function__(self) -> Callable:
        return self.innermost.fn

    def __getitem__(self, grid: Any) -> Callable:
        return _girih.Quiet(self.run, grid)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)

    def named(self, args: tuple, kwargs: dict) -> dict[str, Any]:
        """The arguments by name."""
        return {**dict(zip(self.innermost.params, args)), **kwargs}


class Autotuner(Wrapped):
    """A kernel under `autotune`.

    Attributes:
        configs: the configurations to try.
        best_config: the configuration of the last launch.
        timings: the seconds each configuration took when the last key was measured.
    """

    def __init__(self, kernel: Any, configs: Sequence[Config], key: Sequence[str], restore_value: Sequence[str] | None,
                 reset_to_zero: Sequence[str], prune_configs_by: dict | None, cache_results: bool):  # fmt: skip
        super().__init__(kernel)
        if isinstance(configs, Config) or not all(isinstance(c, Config) for c in configs):
            raise TypeError('autotune: `configs` is a list of configurations, such as `[girih.Config({"BLOCK": 256})]`')
        if isinstance(key, str):
            raise TypeError(f"autotune: `key` is a list of names: `[{key!r}]`")
        if not configs:
            configs = [Config({})]
        params = self.innermost.params
        for name in [*key, *(restore_value or ()), *reset_to_zero, *(n for c in configs for n in c.kwargs)]:
            if name not in params:
                raise ValueError(f"autotune: the kernel `{self.innermost.__name__}` has no parameter `{name}`; it has {', '.join(params)}")
        self.configs = list(configs)
        self.key = list(key)
        self.restore_value, self.reset_to_zero = restore_value, list(reset_to_zero)
        self.prune = prune_configs_by or {}
        self.cache_results = cache_results
        self.chosen: dict[tuple, Config] = {}
        # The same for launches that Python need not look at; None where the kernel computes something before its launches.
        self.quick = None
        if isinstance(kernel, JITFunction):
            self.quick = _girih.Choices(kernel._dispatcher, kernel._looks, [params.index(name) for name in self.key])
        self.choosing = threading.RLock()
        self.best_config: Config | None = None
        self.timings: dict[Config, float] = {}

    def run(self, grid: Any, /, *args: Any, **kwargs: Any) -> None:
        if self.quick is not None and self.quick.launch(self, grid, args, kwargs):
            return
        arguments = self.named(args, kwargs)
        given = next((n for c in self.configs for n in c.kwargs if n in arguments), None)
        if given is not None:
            raise TypeError(f"autotune chooses `{given}`, but the launch passes it as well")
        key = self._key(arguments)
        config = self.chosen.get(key)
        if config is None:
            with self.choosing:
                config = self.chosen.get(key) or self._choose(grid, args, kwargs, arguments, key)
                self.chosen[key] = config
        self.best_config = config
        if self.quick is not None and config.pre_hook is None:
            self.quick.add(args, kwargs, config, config.kwargs)
        self._launch(config, grid, args, kwargs, arguments)

    def _key(self, arguments: dict[str, Any]) -> tuple:
        """The key's values, and the element types of all arrays."""
        values = tuple(arguments.get(name) for name in self.key)
        for name, value in zip(self.key, values):
            if getattr(value, "shape", ()) != ():
                raise TypeError(f"autotune: the key `{name}` is an array; a key must consist of numbers and strings")
        device = arguments.get("device") or os.environ.get("GIRIH_DEVICE") or "cpu"
        return device, values, tuple(str(a.dtype) for a in arguments.values() if hasattr(a, "dtype"))

    def _launch(self, config: Config, grid: Any, args: tuple, kwargs: dict, arguments: dict) -> None:
        if config.pre_hook is not None:
            config.pre_hook({**arguments, **config.kwargs})
        self.kernel.run(grid, *args, **{**kwargs, **config.kwargs})

    def _choose(self, grid: Any, args: tuple, kwargs: dict, arguments: dict, key: tuple) -> Config:
        configs = self._pruned(arguments)
        mode = tuning()
        # How long the evaluator takes says nothing.
        if mode == "off" or len(configs) == 1 or key[0] in ("eval", "sim"):
            return configs[0]
        store = Store(self.innermost, key) if self.cache_results and mode != "memory" else None
        stored = store.read() if store else {}
        missing = [c for c in configs if c.stored_as not in stored]
        measured = {}
        if missing:
            some = any(stored.get(c.stored_as) is not None for c in configs)
            measured = self._measure(missing, grid, args, kwargs, arguments, some)
            if store and (measured or some):
                store.write({**stored, **{c.stored_as: measured.get(c) for c in missing}})
        self.timings = {c: t for c in configs if (t := measured.get(c, stored.get(c.stored_as))) is not None}
        if not self.timings:
            raise RuntimeError(f"autotune: no configuration of `{self.innermost.__name__}` could be launched")
        return min(self.timings, key=self.timings.__getitem__)

    def _pruned(self, arguments: dict[str, Any]) -> list[Config]:
        configs = self.configs
        early = self.prune.get("early_config_prune")
        if early is not None:
            configs = list(early(configs, arguments)) or self.configs[:1]
        model, top = self.prune.get("perf_model"), self.prune.get("top_k")
        if model is not None and top is not None:
            top = max(1, int(len(configs) * top)) if isinstance(top, float) else top
            configs = sorted(configs, key=lambda c: model(**{**arguments, **c.kwargs}))[:top]
        return configs

    def _measure(
        self, configs: list[Config], grid: Any, args: tuple, kwargs: dict, arguments: dict, others: bool
    ) -> dict[Config, float]:
        """The median seconds of each configuration that can be launched; the arrays are as before afterwards. If none can, and
        no `others` have been measured, the last error is raised."""
        import statistics

        saved = {name: copy_of(a) for name, a in arguments.items() if self._to_restore(name, a)}
        times: dict[Config, list[float]] = {}
        progress = Progress(self.innermost.__name__, len(configs))
        failure: Exception | None = None
        try:
            for i, config in enumerate(configs):
                progress.show(i, config)
                try:
                    self._trial(config, grid, args, kwargs, arguments, saved)
                except (CompilationError, ValueError, MemoryError) as e:
                    failure = e
                    continue
                times[config] = []
            spent = 0.0
            for round_ in range(1000):
                if round_ >= ROUNDS and spent > SECONDS * max(1, len(times)):
                    break
                for config in times:
                    seconds = self._trial(config, grid, args, kwargs, arguments, saved)
                    times[config].append(seconds)
                    spent += seconds
        finally:
            progress.done()
            for name, copy in saved.items():
                put(arguments[name], copy)
        if not times and failure is not None and not others:
            raise failure
        return {c: statistics.median(t) for c, t in times.items()}

    def _to_restore(self, name: str, value: Any) -> bool:
        """Arrays a trial may have changed; all of them, unless the user says which."""
        if not hasattr(value, "dtype") or not hasattr(value, "__setitem__") or not is_writable(value):
            return False
        return self.restore_value is None or name in self.restore_value or name in self.reset_to_zero

    def _trial(self, config: Config, grid: Any, args: tuple, kwargs: dict, arguments: dict, saved: dict) -> float:
        for name, copy in saved.items():
            put(arguments[name], 0 if name in self.reset_to_zero else copy)
        start = time.perf_counter()
        self._launch(config, grid, args, kwargs, arguments)
        return time.perf_counter() - start


def is_writable(array: Any) -> bool:
    flags = getattr(array, "flags", None)
    return getattr(flags, "writeable", True)


def copy_of(array: Any) -> Any:
    return array.detach().clone() if hasattr(array, "detach") else array.copy()


def put(array: Any, values: Any) -> None:
    """Writes into an array; into a tensor of PyTorch behind the back of its gradient."""
    target = array.detach() if hasattr(array, "detach") else array
    target[...] = values


class Progress:
    """One line on a terminal while configurations are compiled; nothing elsewhere."""

    def __init__(self, kernel: str, total: int):
        self.kernel, self.total = kernel, total
        self.active = sys.stderr.isatty()

    def show(self, at: int, config: Config) -> None:
        if self.active:
            print(f"\r\x1b[2Kautotune {self.kernel}: {at + 1} of {self.total} ({config})", end="", file=sys.stderr, flush=True)

    def done(self) -> None:
        if self.active:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


class Store:
    """Times on disk, beside the cache of kernels: one small file per kernel, key and machine."""

    def __init__(self, kernel: JITFunction, key: tuple):
        import hashlib
        import inspect
        import json
        import re

        self.machine = machine()
        try:
            source = inspect.getsource(kernel.fn)
        except OSError:
            source = kernel.__qualname__
        # The configurations stand in the decorators, which do not change what the kernel computes.
        if begins := re.search(r"^[ \t]*def\b", source, re.M):
            source = source[begins.start() :]
        parts = [kernel.__qualname__, source, repr(key), self.machine]
        name = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
        self.name = f"autotune/{name}.json"
        self.kernel = kernel

    def read(self) -> dict[str, float | None]:
        """The median seconds of the configurations that were measured, None for one that could not be launched; nothing where
        the file is damaged."""
        import json

        try:
            seconds = json.loads(_girih.read_note(self.name) or b"")["seconds"]
        except (ValueError, KeyError, TypeError):
            return {}
        known = isinstance(seconds, dict) and all(t is None or isinstance(t, float) and t >= 0 for t in seconds.values())
        return seconds if known else {}

    def write(self, seconds: dict[str, float | None]) -> None:
        """Stores the times; whole or not at all, with a warning where they cannot be kept."""
        import json

        content = {"kernel": self.kernel.__qualname__, "seconds": seconds, "machine": self.machine}
        _girih.keep_note(self.name, json.dumps(content, indent=1).encode())


def tuning() -> str:
    """The value of GIRIH_AUTOTUNE: "on" (measure, and keep the choice on disk), "memory" or "off"."""
    text = os.environ.get("GIRIH_AUTOTUNE") or "on"
    if text == "memory":
        return text
    try:
        return "on" if _girih.flag(text) else "off"
    except ValueError as error:
        raise ValueError(f"GIRIH_AUTOTUNE: {error}; it can also be `memory`, which stores no times") from None


@functools.cache
def machine() -> str:
    """The machine that a measurement depends on, as `girih tune` names it, and the version of Girih."""
    from . import __version__

    return f"{_girih.machine()}, girih {__version__}"


def autotune(configs: Sequence[Config], key: Sequence[str], restore_value: Sequence[str] | None = None,
             reset_to_zero: Sequence[str] = (), prune_configs_by: dict | None = None, warmup: int | None = None,
             rep: int | None = None, cache_results: bool = True, **others: Any) -> Callable:  # fmt: skip
    """Chooses a kernel's constants by measuring.

    Args:
        configs: the `Config`s to try.
        key: names of arguments; new values of them are measured anew, as are new element types.
        restore_value: arrays that trial runs may change and that are put back after each; all of them if not given.
        reset_to_zero: arrays that are set to zero before each trial run, and put back at the end.
        prune_configs_by: `early_config_prune`, a function of the configurations and the arguments that returns those to
            try; `perf_model` and `top_k`, an estimate of the time and how many of the best to try.
        cache_results: whether the choice is stored on disk.

    Example:
        >>> tuned = girih.autotune([girih.Config({"BLOCK": b}) for b in (256, 1024)], key=["n"])(add)
        >>> tuned[lambda meta: (girih.cdiv(n, meta["BLOCK"]),)](x, y, out, n)
        >>> tuned.best_config in tuned.configs
        True
    """
    unknown = [name for name in others if name not in IGNORED]
    if unknown:
        raise TypeError(f"autotune has no option `{unknown[0]}`; it has configs, key, restore_value, reset_to_zero, prune_configs_by, cache_results")
    return lambda kernel: Autotuner(kernel, configs, key, restore_value, reset_to_zero, prune_configs_by, cache_results)


class Heuristics(Wrapped):
    """A kernel some of whose constants are computed from the other arguments."""

    def __init__(self, kernel: Any, values: dict[str, Callable]):
        super().__init__(kernel)
        params = self.innermost.params
        for name, function in values.items():
            if name not in params:
                raise ValueError(f"heuristics: the kernel `{self.innermost.__name__}` has no parameter `{name}`; it has {', '.join(params)}")
            if not callable(function):
                raise TypeError(f"heuristics: `{name}` is computed by a function of the arguments, not given as {function!r}")
        self.values = dict(values)

    def run(self, grid: Any, /, *args: Any, **kwargs: Any) -> None:
        arguments = self.named(args, kwargs)
        for name, function in self.values.items():
            kwargs[name] = arguments[name] = function(arguments)
        self.kernel.run(grid, *args, **kwargs)


def heuristics(values: dict[str, Callable]) -> Callable:
    """Computes constants of a kernel from its other arguments.

    Args:
        values: by name, functions of the arguments by name; those further down see the values of those before.

    Example:
        >>> fitted = girih.heuristics({"BLOCK": lambda args: girih.next_power_of_2(args["n"])})(add)
        >>> fitted[(1,)](x, y, out, n)
    """
    return lambda kernel: Heuristics(kernel, values)
