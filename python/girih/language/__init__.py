"""The language of kernels: the names of `import girih.language as tl`, and of `girih` itself."""

from ..frontend import types as _types
from ..frontend.tensor import constexpr, tensor
from ..frontend.types import DType as dtype
from ..frontend.types import PointerType as pointer_type
from . import atomic, blocks, core, elementwise, extra, libdevice, math, memory, messages, order, random, ranges, shared, standard
from . import reduce as _reduce

__all__ = ["constexpr", "dtype", "extra", "libdevice", "math", "pointer_type", "tensor"]


def _offer(name, value):
    globals()[name] = value
    __all__.append(name)


_offer("PropagateNan", elementwise.PropagateNan)
for _type in _types.ALL:
    _offer(_type.name, _type)
for _module in (
    core, memory, elementwise, messages, standard, ranges, _reduce, order, atomic, blocks, random, shared,
):  # fmt: skip
    for _name, _function in list(vars(_module).items()):
        if getattr(_function, "__girih_builtin__", False) and _function.__module__ == _module.__name__:
            _offer(_name, _function)
