"""Products that a redirected program asks PyTorch for, rounded as on a GPU.

PyTorch's kernels for processors round otherwise: some add products of f16 in f16, and none knows tf32. Programs compare their kernels
with such products, so for tensors of the device

* operands of f16 and bf16 are multiplied and added in f32, and the result is rounded once; so is attention;
* under ``torch.autocast`` operands are rounded to its type first (not those of ``dot`` and ``inner``);
* operands of f32 are rounded to the ten bits of tf32 (to nearest, ties away from zero) where the program allows that for products:
  ``torch.backends.cuda.matmul.allow_tf32``, or ``torch.set_float32_matmul_precision`` of ``high`` or ``medium``.

The order of a sum is the processor's. Convolutions of f32 stay exact, which cuDNN's are not.
"""

import functools


def rounded(torch):
    """The functions to call in place of PyTorch's, by PyTorch's function."""
    functional, Tensor = torch.nn.functional, torch.Tensor
    narrow = (torch.float16, torch.bfloat16)

    class ToTf32(torch.autograd.Function):
        @staticmethod
        def forward(_context, x):
            bits = x.contiguous().view(torch.int32)
            # Adds half a last place and cuts off the bits below it; infinities and NaN stay.
            return torch.where(x.isfinite(), ((bits + 0x1000) & ~0x1FFF).view(torch.float32), x)

        @staticmethod
        def backward(_context, gradient):
            return gradient

    def each(change, value):
        if isinstance(value, Tensor):
            return change(value)
        return type(value)(each(change, v) for v in value) if isinstance(value, (list, tuple)) else value

    def types(values):
        for value in values:
            if isinstance(value, Tensor):
                yield value.dtype
            elif isinstance(value, (list, tuple)):
                yield from types(value)

    def with_changed(func, change, args, kwargs):
        return func(*(each(change, a) for a in args), **{k: each(change, v) for k, v in kwargs.items()})

    def product(func, factors, summand):
        """`factors` are the positions of the multiplied arguments, for tf32; `summand` is the name of the argument that
        is only added."""
        narrows = func.__name__.partition(".")[0] not in ("dot", "inner", "convolution_backward")

        @functools.wraps(func)
        def call(*args, **kwargs):
            of = {dtype for dtype in types((*args, *kwargs.values())) if dtype.is_floating_point}
            short = torch.get_autocast_dtype("cuda") if narrows and torch.is_autocast_enabled("cuda") else None
            if short in narrow and kwargs.get("out") is None and of and of <= {torch.float32, *narrow}:
                with torch.autocast("cuda", enabled=False):
                    change = lambda t: t.to(short).float() if t.is_floating_point() else t
                    return each(lambda t: t.to(short), with_changed(func, change, args, kwargs))
            if kwargs.get("out") is not None or len(of) != 1:
                return func(*args, **kwargs)
            (dtype,) = of
            if dtype in narrow:
                wide = with_changed(func, lambda t: t.float() if t.dtype == dtype else t, args, kwargs)
                return each(lambda t: t.to(dtype) if t.dtype == torch.float32 else t, wide)
            if factors and dtype == torch.float32 and torch.get_float32_matmul_precision() != "highest":
                change = lambda value: each(ToTf32.apply, value)
                args = [change(a) if i in factors else a for i, a in enumerate(args)]
                kwargs = {name: value if name == summand else change(value) for name, value in kwargs.items()}
            return func(*args, **kwargs)

        return call

    found = {functional.scaled_dot_product_attention: ((), None), functional.linear: ((0, 1), "bias")}
    found[torch.einsum] = (range(1, 1 << 10), None)
    for name in ("matmul", "mm", "bmm", "mv", "dot", "inner", "__matmul__", "__rmatmul__"):
        for of in (torch, Tensor):
            if hasattr(of, name):
                found[getattr(of, name)] = ((0, 1), None)
    for name in ("addmm", "baddbmm", "addbmm", "addmv"):
        for of in (torch, Tensor):
            found[getattr(of, name)] = ((1, 2), "input")
    for name in ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"):
        found[getattr(torch, name)] = ((), None)
    # The same by the dispatcher's names, and the gradients that `torch.nn.grad` asks for.
    for name in ("matmul", "mm", "bmm", "mv", "dot", "addmm", "baddbmm", "addbmm", "addmv", "linear", "convolution", "convolution_backward"):
        packet = getattr(torch.ops.aten, name)
        how = found.get(getattr(torch, name, None), ((0, 1), "bias") if name == "linear" else ((), None))
        found[packet] = found[packet.default] = how
    # The host's kernels may have no narrow ones.
    for name in ("lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"):
        found[getattr(torch, name)] = ((), None)
    return {func: product(func, *how) for func, how in found.items()}
