"""Operators that programs define in Python, on a pretended device.

PyTorch calls the Python function of a custom operator inside a call of its interface, in which no mode is active, and chooses it by
the device of the operands: all of them are the host's. So each such function runs in the mode, and one for CUDA takes the tensors
of the device.

    @torch.library.custom_op("mine::doubled", mutates_args=(), device_types="cuda")   # runs, though the memory is the host's
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return torch.full_like(x, 2.0, device="cuda") * x                             # makes a tensor of the device

A library may also replace PyTorch's own operators on CUDA (`Library("aten", "IMPL").impl("abs", mine, "CUDA")`). Then `mine` takes the
device's tensors, and PyTorch's kernel the host's.
"""

import functools
import weakref

# Keys of kernels that compute with numbers; the others trace or transform.
_RUNS = ("", "CPU", "CUDA", "CompositeExplicitAutograd", "CompositeImplicitAutograd", "Autograd", "AutogradCPU", "AutogradCUDA")


def adopt(torch, inside, marked, asked):
    """Makes `torch.library` register functions that run `inside` the mode; `marked` tells whether an operand is the device's, and
    `asked` whether the call of PyTorch's interface that runs now asks for a tensor of the device."""
    Library = torch.library.Library
    real = Library.impl
    # For each operator and kind of kernel: the library that registered, and its functions for the host (False) and the device (True).
    known = {}

    @functools.wraps(real)
    def impl(library, op_name, fn, dispatch_key="", *, with_keyset=False, **options):
        key = dispatch_key or library.dispatch_key
        plain = key not in _RUNS or fn is torch.library.fallthrough_kernel
        if library.ns == "aten" and not plain and key.endswith("CUDA") and hasattr(torch.library, "get_kernel"):
            here = key.replace("CUDA", "CPU")
            try:
                overload = _overload(torch, op_name)
                host = torch.library.get_kernel(overload, here)
            except (AttributeError, RuntimeError):  # one that PyTorch does not know, or has on the device alone
                return real(library, op_name, inside(fn), here, with_keyset=with_keyset, **options)
            run = _replaced(torch, inside(fn), overload, host, marked, asked, with_keyset)
            return real(library, op_name, run, here, with_keyset=True, **options)
        if library.ns == "aten" or plain:
            return real(library, op_name, fn, dispatch_key, with_keyset=with_keyset, **options)
        if not key.endswith(("CPU", "CUDA")):
            return real(library, op_name, inside(fn), dispatch_key, with_keyset=with_keyset, **options)
        here = key.replace("CUDA", "CPU")
        name = (library.ns, str(op_name).split("::")[-1], here)
        owner, kernels = known.get(name, (lambda: None, {}))
        kernels[key.endswith("CUDA")] = inside(fn)
        if (holder := owner()) is not None and holder.m is not None:
            return None
        kernels = {key.endswith("CUDA"): inside(fn)}
        known[name] = (weakref.ref(library), kernels)
        return real(library, op_name, _chosen(kernels, marked, with_keyset), here, with_keyset=with_keyset, **options)

    Library.impl = impl


def _overload(torch, name):
    """The operator of PyTorch's that a name, `abs` or `aten::add.Tensor`, or the operator itself says."""
    if not isinstance(name, str):
        return name
    packet, _, overload = name.split("::")[-1].partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def _replaced(torch, fn, overload, host, marked, asked, with_keyset):
    """The function for the device's operands, and PyTorch's kernel for the host's."""
    tensors = [at for at, argument in enumerate(overload._schema.arguments) if str(argument.type) == "Tensor"]

    def run(keyset, *args, **kwargs):
        if any(map(marked, (*args, *kwargs.values()))) or asked():
            return fn(keyset, *args, **kwargs) if with_keyset else fn(*args, **kwargs)
        return host.call_boxed(keyset, *numbers_as_tensors(args), **kwargs)

    def numbers_as_tensors(args):
        """The arguments with the tensors that PyTorch had made of numbers, and gives as these."""
        numbers = [at for at in tensors if at < len(args) and isinstance(args[at], (bool, int, float, complex))]
        wide = numbers and any(isinstance(a, torch.Tensor) and a.dtype in (torch.float64, torch.complex128) for a in args)
        made = list(args)
        for at in numbers:
            made[at] = torch.tensor(args[at], dtype=torch.float64 if wide and isinstance(args[at], float) else None)
        return made

    return run


def _chosen(kernels, marked, with_keyset):
    """The function for the operands' side, or the only one there is."""

    def run(*args, **kwargs):
        operands = args[1:] if with_keyset else args
        fn = kernels.get(any(map(marked, (*operands, *kwargs.values()))))
        return (fn or next(iter(kernels.values())))(*args, **kwargs)

    return run
