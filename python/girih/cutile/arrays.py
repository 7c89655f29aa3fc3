"""Which arguments of a launch are arrays in main memory, and how cuTile gets to see them.

In: a type of argument. Out: the treatment of arguments of that type by `girih._girih.prepare`. Arrays are passed in
place: nothing is copied, and a kernel's stores are in them after the launch.
"""

import sys

from girih import _girih, _tensors

# The element types of ml_dtypes that cuTile has: DLPack's code and bits.
_ML_DTYPES = {
    "bfloat16": (4, 16),
    "float8_e4m3fn": (10, 8),
    "float8_e5m2": (12, 8),
    "float8_e8m0fnu": (14, 8),
}


def classify(kind):
    """For `prepare`: what to do with arguments of this type, and the function to do it with."""
    if kind is tuple:
        return "tuple", None
    if kind is list:
        return "list", None
    numpy = sys.modules.get("numpy")
    if numpy is not None and issubclass(kind, numpy.ndarray):
        return "array", numpy_capsule
    if export := getattr(kind, "__girih_capsule__", None):
        return "array", export
    # A folder of that name has no tensors.
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    if tensor is not None and issubclass(kind, tensor):
        return "array", _torch_capsule
    return "pass", None


def numpy_capsule(array):
    """A DLPack capsule of a NumPy array."""
    try:
        return array.__dlpack__()
    except (BufferError, RuntimeError, TypeError) as error:
        refusal = error
    element = _ML_DTYPES.get(array.dtype.name)
    if element is not None and array.flags.writeable:
        import numpy

        raw = numpy.uint16 if element[1] == 16 else numpy.uint8
        return _girih.relabel(array.view(numpy.ndarray).view(raw).__dlpack__(), element)
    raise TypeError(f"girih: {_why_not(array, refusal)}") from None


def _why_not(array, refusal):
    """Why a NumPy array cannot be an argument of a kernel, and what to do."""
    what = f"an array of shape {array.shape} and dtype {array.dtype}"
    if not array.flags.writeable:
        return f"{what} is read-only, but a kernel may write to any of its arrays; pass a copy (`array.copy()`)"
    if not array.dtype.isnative:
        return f"{what} is not in this machine's byte order; pass `array.astype(array.dtype.newbyteorder('='))`"
    if array.dtype.name == "float4_e2m1fn":
        return f"{what} stores one element in a byte, but a kernel expects two; pack them into uint8"
    if array.dtype.hasobject or array.dtype.names or array.dtype.kind in "SUVMm":
        return f"{what} has elements of an unsupported type; kernels take booleans, integers and floats"
    if any(stride % array.itemsize for stride in array.strides):
        return f"{what} has strides {array.strides}, not whole numbers of elements; pass a copy (`array.copy()`)"
    return f"{what} cannot be passed to a kernel: {refusal}"


def _torch_capsule(tensor):
    torch = sys.modules["torch"]
    if problem := _tensors.problem(tensor):
        raise TypeError(f"girih: an argument is a tensor that {problem}")
    try:
        return torch._C._to_dlpack(tensor.detach() if tensor.requires_grad else tensor)
    except (BufferError, RuntimeError, TypeError) as error:
        what = f"a tensor of shape {tuple(tensor.shape)} and dtype {tensor.dtype}"
        raise TypeError(f"girih: {what} cannot be passed to a kernel: {error}") from None
