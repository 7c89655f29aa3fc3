"""Offering Girih to Triton, and the pretence of a device.

`offer` adds the backend to Triton's, once Triton is imported: for a checkout, which has no entry point. `install` also makes
``device="cuda"`` mean the host's memory, as `girih.cutile` does.
"""

import importlib.metadata
import os

from girih.cutile.children import hand_down, truth
from girih.cutile.hooks import when_imported

NAME = "girih"
# The names of Girih's backends among Triton's.
NAMES = (NAME, "cpu")
# Asks for Girih, and for the pretence of a device, in every Python that starts.
CHILDREN = "GIRIH_TRITON_CHILDREN"

_offered = False
_installed = False


def asked():
    """Returns True if the environment asks for Girih, False if for something else, None where it says nothing."""
    value = os.environ.get("GIRIH_TRITON", "").lower()
    if value in ("1", "true", "yes", "on"):
        return True
    if value in ("0", "false", "no", "off"):
        return False
    if value:
        raise ValueError(f"girih: GIRIH_TRITON is `{value}`; it must be 1 or 0")
    chosen = os.environ.get("TRITON_DEFAULT_BACKEND")
    return chosen in NAMES if chosen else None


# Files that the drivers of GPUs make.
_DRIVERS = ("/dev/nvidiactl", "/proc/driver/nvidia/version", "/dev/kfd", "/dev/dxg")


def active():
    """Returns True if kernels are to run on Girih: where it is asked for, else where no GPU's driver is."""
    wanted = asked()
    return not any(map(os.path.exists, _DRIVERS)) if wanted is None else wanted


def offer():
    """Adds the backend to Triton's, now or when Triton is imported; once is enough."""
    global _offered
    if not _offered:
        _offered = True
        when_imported("triton.backends", _add)


def _add(backends):
    known = getattr(backends, "backends", None)
    if known is None:
        # Triton found the entry point, and imports this package and the other backends while it makes its list.
        for point in importlib.metadata.entry_points(group="triton.backends"):
            if asked() and point.name not in NAMES:
                when_imported(f"{point.value}.driver", _deactivate_all)
        return
    if NAME not in known:
        from girih.triton import compiler, driver
        from girih.triton.cpu import compiler as cpu_compiler
        from girih.triton.cpu import driver as cpu_driver

        known[NAME] = backends.Backend(compiler.GirihBackend, driver.GirihDriver)
        known.setdefault("cpu", backends.Backend(cpu_compiler.CpuBackend, cpu_driver.CpuDriver))
    for name, backend in known.items():
        if asked() and name not in NAMES:
            _deactivate(backend.driver)


def _deactivate(driver):
    """Triton wants one active driver; where CUDA is pretended, NVIDIA's takes itself for active."""
    driver.is_active = staticmethod(lambda: False)


def _deactivate_all(module):
    from triton.backends.driver import DriverBase

    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, DriverBase) and value.__module__ == module.__name__:
            _deactivate(value)


def wanted():
    """Returns True if GIRIH_TRITON_CHILDREN asks for Girih in every Python that starts."""
    return truth(CHILDREN)


def install(device=None, check=None, threads=None, pretend=True, children=False):
    """Makes this process run Triton programs on Girih, before it imports Triton or PyTorch.

    ``device`` is ``"cpu"``, ``"eval"`` or ``"sim"``; ``check`` tests every memory access; ``threads`` is the number of worker
    threads. An option that is not given follows ``GIRIH_DEVICE``, ``GIRIH_CHECK`` and ``GIRIH_THREADS``. With ``pretend``, tensors that
    ask for ``"cuda"`` are made in the host's memory. ``children`` does the same in the Python processes that this one starts, through
    GIRIH_TRITON_CHILDREN=1 and a folder on PYTHONPATH in this process's environment.
    """
    global _installed
    for name, value in (("GIRIH_DEVICE", device), ("GIRIH_CHECK", check), ("GIRIH_THREADS", threads)):
        if value is not None:
            os.environ[name] = str(int(value) if isinstance(value, bool) else value)
    if asked() is None:
        os.environ["GIRIH_TRITON"] = "1"
    if children or wanted():
        hand_down(CHILDREN, device, check, threads)
    offer()
    if pretend and not _installed:
        _installed = True
        from girih.cutile import torch_cpu

        when_imported("torch", torch_cpu.redirect)
