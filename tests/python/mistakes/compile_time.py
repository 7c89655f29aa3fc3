"""Values that must be known, and operations that cannot be done, at compile time."""

import numpy as np

import girih
import girih.language as tl

from .collect import TABLE, floats, mistake
from .launches import add


@mistake
def list_changed_in_place():
    @girih.jit
    def kernel(x, n):
        values = []
        for i in range(n):
            values.append(i)
        tl.store(x, values[0])

    kernel[1](floats(), 64)


@mistake
def too_many_copies():
    @girih.jit
    def kernel(x):
        for i in tl.static_range(1000000):
            tl.store(x + i, 1.0)

    kernel[1](floats())


@mistake
def constant_too_large():
    @girih.jit
    def kernel(x):
        tl.store(x, 1 << (1 << 40))

    kernel[1](floats())


@mistake
def constant_of_many_digits():
    @girih.jit
    def kernel(x):
        tl.store(x, 10**400)

    kernel[1](np.zeros(1, np.int32))


@mistake
def constant_divided_by_zero():
    @girih.jit
    def kernel(x, N: tl.constexpr):
        tl.store(x, N // 0)

    kernel[1](floats(), N=4)


@mistake
def bound_of_a_float():
    @girih.jit
    def kernel(x, n):
        for i in range(n / 2):
            tl.store(x + i, 1.0)

    kernel[1](floats(), 4)


@mistake
def step_of_zero():
    @girih.jit
    def kernel(x, n):
        for i in range(0, n, 0):
            tl.store(x + i, 1.0)

    kernel[1](floats(), 4)


@mistake
def value_on_one_path():
    @girih.jit
    def half(n):
        if n % 2 == 0:
            return n // 2

    @girih.jit
    def kernel(x, n):
        tl.store(x, half(n))

    kernel[1](floats(), 4)


@mistake
def value_and_none():
    @girih.jit
    def at(n):
        for i in range(n):
            if i == 3:
                return i
            if i == 2:
                return
        return 0

    @girih.jit
    def kernel(x, n):
        tl.store(x, at(n))

    kernel[1](floats(), 64)


@mistake
def result_that_is_none():
    @girih.jit
    def half(n):
        n // 2

    @girih.jit
    def kernel(x, n):
        tl.store(x, half(n))

    kernel[1](floats(), 4)


@mistake
def another_function_on_each_side():
    @girih.jit
    def kernel(x, n):
        if n > 2:

            def change(v):
                return v + 1
        else:

            def change(v):
                return v - 1

        tl.store(x, change(n))

    kernel[1](floats(), 4)


@mistake
def address_as_a_condition():
    @girih.jit
    def kernel(x, bias):
        if bias:
            tl.store(x, tl.load(bias))

    kernel[1](floats(), floats())


@mistake
def none_computed_with():
    @girih.jit
    def kernel(x, bias):
        tl.store(x, tl.load(bias))

    kernel[1](floats(), None)


@mistake
def function_of_numpy():
    @girih.jit
    def kernel(x):
        tl.store(x, np.exp(tl.load(x)))

    kernel[1](floats())


@mistake
def number_called():
    @girih.jit
    def kernel(x, n):
        tl.store(x, n(1))

    kernel[1](floats(), 4)


@mistake
def wrong_number_of_names():
    @girih.jit
    def kernel(x, n):
        a, b, c = n, n
        tl.store(x, a)

    kernel[1](floats(), 4)


@mistake
def number_unpacked():
    @girih.jit
    def kernel(x, n):
        a, b = n
        tl.store(x, a + b)

    kernel[1](floats(), 4)


@mistake
def else_after_a_loop():
    @girih.jit
    def kernel(x, n):
        for i in range(n):
            tl.store(x + i, 1.0)
        else:
            tl.store(x, 2.0)

    kernel[1](floats(), 4)


@mistake
def global_statement():
    @girih.jit
    def kernel(x):
        global TABLE
        TABLE = 4
        tl.store(x, 1.0)

    kernel[1](floats())


@mistake
def generator_function():
    @girih.jit
    def kernel(x):
        yield 1.0

    kernel[1](floats())


@mistake
def raised_at_run_time():
    @girih.jit
    def kernel(x, n):
        if n > 3:
            raise ValueError("n is too large")

    kernel[1](floats(), 4)


@mistake
def raised_at_compile_time():
    @girih.jit
    def kernel(x, N: tl.constexpr):
        if N > 3:
            raise ValueError(f"N is {N}, and at most 3")

    kernel[1](floats(), N=4)


@mistake
def two_calls_deep():
    @girih.jit
    def third(v):
        return tl.expand_dims(v, 5)

    @girih.jit
    def second(v):
        return third(v) + 1

    @girih.jit
    def kernel(x):
        tl.store(x + tl.arange(0, 8), second(tl.load(x + tl.arange(0, 8))))

    kernel[1](floats())


@mistake
def missing_argument_of_a_kernel_called():
    @girih.jit
    def scaled(v, by):
        return v * by

    @girih.jit
    def kernel(x):
        tl.store(x, scaled(tl.load(x)))

    kernel[1](floats())


@mistake
def misspelt_argument_of_a_kernel_called():
    @girih.jit
    def scaled(v, factor):
        return v * factor

    @girih.jit
    def kernel(x):
        tl.store(x, scaled(tl.load(x), facto=3))

    kernel[1](floats())


@mistake
def size_that_is_a_float():
    add[1](floats(), floats(), 64, BLOCK=64 / 2)
