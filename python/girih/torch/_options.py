"""The options of `torch.compile(..., backend="girih")`: those of Girih, and those that code written for inductor has.

In: `mode` and `options` as `torch.compile` takes them. Out: options of Girih's alone. An option of inductor that changes nothing in
Girih is accepted with one warning; an option that neither knows is an error.
"""

from __future__ import annotations

import functools
from typing import Any

from girih import _library
from girih.frontend.errors import GirihError

from . import _partition

__all__ = ["OPTIONS", "known", "taken"]

#: Options of models of PyTorch. `freeze` promises that parameters stay as they are; the others are the compiled model's.
OPTIONS = {"threads", "device", "target", "cache", "check", "freeze"}

#: Inductor's names for two of them.
SAME = ("freezing", "cpp.threads")

#: Modes of `torch.compile`, and what becomes of them.
MODES = {
    "default": None,
    "reduce-overhead": "a call of a compiled graph launches all of its kernels at once anyway",
    "max-autotune": "schedules follow from the machine's numbers, and `girih tune` measures others",
    "max-autotune-no-cudagraphs": "schedules follow from the machine's numbers, and `girih tune` measures others",
}

# A model that computes nothing: options are tried on it.
NOTHING = '{"format": "girih.torch", "version": 1}'

_said: set[str] = set()


def known(options: dict[str, Any]) -> dict[str, Any]:
    """The options, after a check that each is Girih's own and has a value that Girih accepts."""
    if unknown := sorted(set(options) - OPTIONS):
        raise GirihError(f"girih has no option `{unknown[0]}`; the options are {', '.join(sorted(OPTIONS))}")
    if not isinstance(options.get("freeze", False), bool):
        raise GirihError(f"the option `freeze` is True or False, not {options['freeze']!r}")
    _library.extension().Model.from_torch_json(NOTHING, **{n: v for n, v in options.items() if n != "freeze"})
    return options


def taken(options: dict[str, Any] | None, mode: str | None = None, **other) -> dict[str, Any]:
    """Girih's options of those that `torch.compile` was given."""
    if mode is not None and mode not in MODES:
        raise GirihError(f"girih has no mode {mode!r}; the modes are {', '.join(MODES)}")
    if mode is not None and (why := MODES[mode]):
        say(f"mode={mode!r} changes nothing: {why}")
    own = {}
    for name, value in {**(options or {}), **other}.items():
        if name in OPTIONS:
            own[name] = value
        elif name.replace("-", "_") in inductors():
            name = name.replace("-", "_")
            if name == "freezing":
                own.setdefault("freeze", bool(value))
            # Inductor's number of threads is negative where it is to choose.
            elif name == "cpp.threads" and isinstance(value, int) and value > 0:
                own.setdefault("threads", value)
            elif name != "cpp.threads":
                say(f"the option {name!r} is one of inductor's and changes nothing")
        else:
            own[name] = value
    return known(own)


@functools.cache
def inductors() -> frozenset[str]:
    """The names of inductor's options."""
    try:
        import torch._inductor

        return frozenset(torch._inductor.list_options())
    except Exception:
        return frozenset(SAME)


def say(message: str) -> None:
    """Warns, once in a process."""
    if message not in _said:
        _said.add(message)
        _partition.warn(message)
