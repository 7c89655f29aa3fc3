"""Unknown names, and calls of functions that kernels cannot call."""

import girih
import girih.language as tl
import numpy as np

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


@mistake
def numpy_arange():
    @girih.jit
    def kernel(x):
        tl.store(x + np.arange(0, 64), 1.0)

    kernel[1](floats())


@mistake
def numpy_type():
    @girih.jit
    def kernel(x):
        tl.store(x, tl.load(x).to(np.float16))

    kernel[1](floats())


@mistake
def misspelt_mask():
    @girih.jit
    def kernel(x, n):
        i = tl.arange(0, 64)
        tl.store(x + i, 1.0, maks=i < n)

    kernel[1](floats(), 10)


@mistake
def keyword_like_none():
    @girih.jit
    def kernel(x, n):
        tl.store(x, tl.load(x, wherever=n))

    kernel[1](floats(), 10)


@mistake
def shadowed_function():
    @girih.jit
    def kernel(x):
        max = tl.max(tl.load(x + tl.arange(0, 64)))
        tl.store(x, max(max, 1.0))

    kernel[1](floats())


@mistake
def shadowed_range():
    @girih.jit
    def kernel(x, range):
        for i in range(4):
            tl.store(x + i, 1.0)

    kernel[1](floats(), 3)


@mistake
def swapped_address_and_value():
    @girih.jit
    def kernel(x):
        i = tl.arange(0, 64)
        tl.store(tl.load(x + i) + 1, x + i)

    kernel[1](floats())


@mistake
def swapped_address_and_mask():
    @girih.jit
    def kernel(x, n):
        i = tl.arange(0, 64)
        tl.store(x + i, tl.load(i < n, x + i))

    kernel[1](floats(), 10)


@mistake
def swapped_condition_and_choice():
    @girih.jit
    def kernel(x, n):
        i = tl.arange(0, 64)
        tl.store(x + i, tl.where(1.0, i < n, 0.0))

    kernel[1](floats(), 10)


@mistake
def swapped_arguments_of_a_launch():
    @girih.jit
    def kernel(x, n):
        i = tl.arange(0, 64)
        tl.store(x + i, 1.0, mask=i < n)

    kernel[1](10, floats())


@mistake
def swapped_bound_of_a_launch():
    @girih.jit
    def kernel(x, y, n):
        i = tl.arange(0, 64)
        tl.store(x + i, 1.0, mask=i < n)

    kernel[1](floats(), 10, floats())


@mistake
def half_an_index():
    @girih.jit
    def kernel(x):
        i = tl.arange(0, 64)
        tl.store(x + i / 2, 1.0)

    kernel[1](floats())


@mistake
def half_a_bound():
    @girih.jit
    def kernel(x, n):
        for i in range(n / 2):
            tl.store(x + i, 1.0)

    kernel[1](floats(), 10)


@mistake
def half_a_tile():
    @girih.jit
    def kernel(x, N: tl.constexpr):
        tl.store(x + tl.arange(0, N / 2), 1.0)

    kernel[1](floats(), N=64)


@mistake
def grid_of_an_unknown_name():
    @girih.jit
    def kernel(x, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + i, 1.0, mask=i < n)

    kernel[lambda meta: (girih.cdiv(meta["n"], meta["BLOK"]),)](floats(), 64, BLOCK=64)
