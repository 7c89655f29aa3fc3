"""Names that are not known, and calls of what kernels cannot call."""

import girih
import girih.language as tl

from .collect import ARRAY, TABLE, floats, mistake, plain


@mistake
def misspelt_name():
    @girih.jit
    def kernel(x):
        offsets = tl.arange(0, 64)
        tl.store(x + ofsets, 1.0)  # noqa: F821

    kernel[1](floats())


@mistake
def misspelt_function():
    @girih.jit
    def kernel(x):
        tl.stoer(x, 1.0)

    kernel[1](floats())


@mistake
def misspelt_method():
    @girih.jit
    def kernel(x):
        tl.store(x, tl.load(x + tl.arange(0, 64)).summ())

    kernel[1](floats())


@mistake
def misspelt_parameter():
    @girih.jit
    def kernel(x):
        tl.store(x, tl.load(x, msk=True))

    kernel[1](floats())


@mistake
def missing_argument_of_a_call():
    @girih.jit
    def kernel(x):
        tl.store(x)

    kernel[1](floats())


@mistake
def python_function_called():
    @girih.jit
    def kernel(x):
        tl.store(x, plain(tl.load(x)))

    kernel[1](floats())


@mistake
def math_of_a_tile():
    import math

    @girih.jit
    def kernel(x):
        tl.store(x, math.exp(tl.load(x)))

    kernel[1](floats())


@mistake
def list_from_outside():
    @girih.jit
    def kernel(x):
        tl.store(x, TABLE[0])

    kernel[1](floats())


@mistake
def array_from_outside():
    @girih.jit
    def kernel(x):
        tl.store(x, tl.load(ARRAY))

    kernel[1](floats())


@mistake
def runtime_value_for_a_constexpr():
    @girih.jit
    def inner(x, N: tl.constexpr):
        tl.store(x + tl.arange(0, N), 0)

    @girih.jit
    def kernel(x, n):
        inner(x, n)

    kernel[1](floats(), 64)


@mistake
def inside_an_inlined_function():
    @girih.jit
    def inner(x, y):
        return x + tl.zeros((16,), tl.float32) + y

    @girih.jit
    def kernel(x):
        tl.store(x + tl.arange(0, 8), inner(tl.load(x + tl.arange(0, 8)), 1))

    kernel[1](floats())


@mistake
def static_assertion():
    @girih.jit
    def kernel(x, N: tl.constexpr):
        tl.static_assert(N % 128 == 0, "N is a multiple of 128")
        tl.store(x, N)

    kernel[1](floats(), N=64)


@mistake
def language_outside_of_a_kernel():
    tl.zeros((8,), tl.float32)
