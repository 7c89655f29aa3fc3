"""Kernels with a mistake each, and the launch that shows it; test_jit_errors.py compares what the user sees.

A function decorated with `mistake` is called with nothing and is expected to raise.
"""

import enum

import numpy as np

import girih
import girih.language as tl

MISTAKES = {}


def mistake(function):
    MISTAKES[function.__name__] = function
    return function


def floats(n=64):
    return np.zeros(n, np.float32)


TABLE = [1, 2, 3]
ARRAY = np.zeros(4)


def plain(x):
    return x + 1


# ---- shapes


@mistake
def shapes_do_not_match():
    @girih.jit
    def kernel(x):
        a = tl.load(x + tl.arange(0, 64))
        tl.store(x + tl.arange(0, 64), a + tl.arange(0, 32))

    kernel[1](floats())


@mistake
def no_power_of_two():
    @girih.jit
    def kernel(x, N: tl.constexpr):
        tl.store(x + tl.arange(0, N), 0)

    kernel[1](floats(), N=100)


@mistake
def empty_arange():
    @girih.jit
    def kernel(x):
        tl.store(x + tl.arange(8, 8), 0)

    kernel[1](floats())


@mistake
def runtime_shape():
    @girih.jit
    def kernel(x, n):
        tl.store(x + tl.arange(0, n), 0)

    kernel[1](floats(), 64)


@mistake
def tile_too_large():
    @girih.jit
    def kernel(x):
        tl.store(x, tl.sum(tl.zeros((8192, 8192), tl.float32)))

    kernel[1](floats())


@mistake
def wrong_axis():
    @girih.jit
    def kernel(x):
        tl.store(x, tl.sum(tl.load(x + tl.arange(0, 64)), axis=1))

    kernel[1](floats())


@mistake
def reshape_changes_the_number():
    @girih.jit
    def kernel(x):
        tl.store(x + tl.arange(0, 32), tl.reshape(tl.load(x + tl.arange(0, 64)), (32,)))

    kernel[1](floats())


@mistake
def dot_inner_dimensions():
    @girih.jit
    def kernel(x):
        a = tl.zeros((16, 32), tl.float32)
        b = tl.zeros((16, 32), tl.float32)
        tl.store(x, tl.sum(tl.dot(a, b)))

    kernel[1](floats())


@mistake
def dot_of_two_types():
    @girih.jit
    def kernel(x):
        a = tl.zeros((16, 16), tl.float16)
        b = tl.zeros((16, 16), tl.float32)
        tl.store(x, tl.sum(tl.dot(a, b)))

    kernel[1](floats())


@mistake
def tile_stored_to_one_address():
    @girih.jit
    def kernel(x):
        tl.store(x, tl.arange(0, 64))

    kernel[1](floats())


@mistake
def element_of_a_tile():
    @girih.jit
    def kernel(x):
        a = tl.load(x + tl.arange(0, 64))
        tl.store(x, a[3])

    kernel[1](floats())


@mistake
def assigned_element():
    @girih.jit
    def kernel(x):
        a = tl.load(x + tl.arange(0, 64))
        a[0] = 1.0
        tl.store(x + tl.arange(0, 64), a)

    kernel[1](floats())


# ---- types


@mistake
def store_to_a_number():
    @girih.jit
    def kernel(x, n):
        tl.store(n, 1.0)

    kernel[1](floats(), 64)


@mistake
def address_computed_with():
    @girih.jit
    def kernel(x):
        tl.store(x, x * 2)

    kernel[1](floats())


@mistake
def offset_by_a_float():
    @girih.jit
    def kernel(x, half):
        tl.store(x + half, 1.0)

    kernel[1](floats(), 0.5)


@mistake
def exp_of_integers():
    @girih.jit
    def kernel(x):
        tl.store(x + tl.arange(0, 64), tl.exp(tl.arange(0, 64)))

    kernel[1](floats())


@mistake
def floor_division_of_floats():
    @girih.jit
    def kernel(x):
        tl.store(x, tl.load(x) // 2.0)

    kernel[1](floats())


@mistake
def bits_of_a_float():
    @girih.jit
    def kernel(x):
        tl.store(x, tl.load(x) & 1)

    kernel[1](floats())


@mistake
def number_does_not_fit():
    @girih.jit
    def kernel(x):
        tl.store(x + tl.arange(0, 8), tl.full((8,), 300, tl.int8))

    kernel[1](np.zeros(8, np.int8))


@mistake
def unknown_type():
    @girih.jit
    def kernel(x):
        tl.store(x, tl.load(x).to("float31"))

    kernel[1](floats())


@mistake
def other_without_mask():
    @girih.jit
    def kernel(x):
        tl.store(x, tl.load(x, other=0.0))

    kernel[1](floats())


# ---- control flow


@mistake
def truth_of_a_tile():
    @girih.jit
    def kernel(x):
        a = tl.load(x + tl.arange(0, 64))
        if a > 0:
            tl.store(x, 1.0)

    kernel[1](floats())


@mistake
def shape_changes_in_a_loop():
    @girih.jit
    def kernel(x, n):
        a = tl.load(x + tl.arange(0, 64))
        for _ in range(n):
            a = tl.cat(a, a)
        tl.store(x, tl.sum(a))

    kernel[1](floats(), 100)


@mistake
def kinds_differ_between_branches():
    @girih.jit
    def kernel(x, n):
        if n > 3:
            a = tl.zeros((8,), tl.float32)
        else:
            a = tl.zeros((16,), tl.float32)
        tl.store(x, tl.sum(a))

    kernel[1](floats(), 100)


@mistake
def assigned_on_one_side():
    @girih.jit
    def kernel(x, n):
        if n > 3:
            a = 1.0
        tl.store(x, a)

    kernel[1](floats(), 100)


@mistake
def assigned_in_the_loop_only():
    @girih.jit
    def kernel(x, n):
        for i in range(n):
            a = i * 2
        tl.store(x, a)

    kernel[1](floats(), 100)


@mistake
def break_out_of_an_unrolled_loop():
    @girih.jit
    def kernel(x, n):
        for i in tl.static_range(4):
            if n == i:
                break
            tl.store(x + i, 1.0)

    kernel[1](floats(), 100)


@mistake
def static_range_of_a_runtime_value():
    @girih.jit
    def kernel(x, n):
        for i in tl.static_range(n):
            tl.store(x + i, 1.0)

    kernel[1](floats(), 100)


@mistake
def loop_over_a_tile():
    @girih.jit
    def kernel(x):
        for a in tl.load(x + tl.arange(0, 64)):
            tl.store(x, a)

    kernel[1](floats())


@mistake
def kernel_returns_a_value():
    @girih.jit
    def kernel(x):
        return tl.load(x)

    kernel[1](floats())


@mistake
def recursion():
    @girih.jit
    def kernel(x):
        down(x)

    kernel[1](floats())


@girih.jit
def down(x):
    down(x)


@mistake
def unsupported_statement():
    @girih.jit
    def kernel(x):
        try:
            tl.store(x, 1.0)
        except ValueError:
            pass

    kernel[1](floats())


@mistake
def unsupported_expression():
    @girih.jit
    def kernel(x):
        tl.store(x, sum({1, 2}))

    kernel[1](floats())


# ---- names and calls


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


# ---- launches


@girih.jit
def add(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(y + i, mask=i < n), mask=i < n)


@mistake
def called_without_a_grid():
    add(floats(), floats(), 64, BLOCK=64)


@mistake
def argument_missing():
    add[1](floats(), floats(), BLOCK=64)


@mistake
def argument_twice():
    add[1](floats(), floats(), 64, 64, BLOCK=64)


@mistake
def argument_unknown():
    add[1](floats(), floats(), 64, BLOK=64, BLOCK=64)


@mistake
def too_many_arguments():
    add[1](floats(), floats(), 64, 64, 64)


@mistake
def grid_of_floats():
    add[(64 / 16,)](floats(), floats(), 64, BLOCK=64)


@mistake
def grid_negative():
    add[(-1,)](floats(), floats(), 64, BLOCK=64)


@mistake
def grid_of_four():
    add[(1, 1, 1, 1)](floats(), floats(), 64, BLOCK=64)


@mistake
def array_of_objects():
    add[1](floats(), np.array([None]), 64, BLOCK=64)


@mistake
def array_reversed():
    add[1](floats(), floats()[::-1], 64, BLOCK=64)


@mistake
def array_read_only():
    x = floats()
    x.flags.writeable = False
    add[1](x, floats(), 64, BLOCK=64)


@mistake
def array_too_short():
    add[1](floats(), floats(8), 64, BLOCK=64)


@mistake
def list_as_an_argument():
    add[1](floats(), [1.0, 2.0], 64, BLOCK=64)


@mistake
def text_as_an_argument():
    add[1](floats(), "y", 64, BLOCK=64)


@mistake
def constant_not_annotated():
    class Mode(enum.Enum):
        FAST = 1

    @girih.jit
    def kernel(x, mode):
        tl.store(x, 1.0)

    kernel[1](floats(), Mode.FAST)


@mistake
def integer_too_large():
    add[1](floats(), floats(), 1 << 70, BLOCK=64)


@mistake
def unknown_device():
    add[1](floats(), floats(), 64, BLOCK=64, device="gpu")


@mistake
def kernel_without_source():
    namespace = {"girih": girih}
    exec("@girih.jit\ndef kernel(x):\n    girih.store(x, 1.0)\n", namespace)
    namespace["kernel"][1](floats())


@mistake
def lambda_as_a_kernel():
    girih.jit(lambda x: girih.store(x, 1.0))[1](floats())


@mistake
def kernel_with_star_arguments():
    @girih.jit
    def kernel(*xs):
        pass


@mistake
def failed_assertion():
    @girih.jit
    def kernel(x):
        tl.device_assert(tl.load(x + tl.arange(0, 64)) > 0, "x is positive")

    kernel[1](floats())


@mistake
def undefined_value():
    @girih.jit
    def kernel(x, zero):
        tl.store(x, tl.load(x) // zero)

    kernel[1](np.ones(4, np.int32), 0, device="eval")


# ---- at compile time


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


# ---- definitions


@mistake
def method_decorated_outside():
    class Operators:
        @girih.jit
        @staticmethod
        def kernel(x):
            tl.store(x, 1.0)


@mistake
def kernel_decorated_twice():
    girih.jit(add)


@mistake
def class_as_a_kernel():
    @girih.jit
    class Kernel:
        pass


@mistake
def coroutine_as_a_kernel():
    @girih.jit
    async def kernel(x):
        tl.store(x, 1.0)

    kernel[1](floats())


@mistake
def unknown_option():
    @girih.jit(do_not_specialise=("n",))
    def kernel(x, n):
        tl.store(x, n)


# ---- more launches


@mistake
def grid_function_of_floats():
    add[lambda meta: (64 / meta["BLOCK"],)](floats(), floats(), 64, BLOCK=64)


@mistake
def grid_of_text():
    add["1"](floats(), floats(), 64, BLOCK=64)


@mistake
def grid_too_large():
    add[(1 << 30,)](floats(), floats(), 64, BLOCK=64)


@mistake
def grid_of_nothing():
    add[()](floats(), floats(), 64, BLOCK=64)


@mistake
def array_of_complex_numbers():
    add[1](np.zeros(4, np.complex64), floats(), 64, BLOCK=64)


@mistake
def array_of_other_byte_order():
    add[1](floats(), np.zeros(4, ">f4"), 64, BLOCK=64)


@mistake
def array_not_aligned():
    add[1](floats(), np.zeros(41, np.uint8)[1:].view(np.float32), 10, BLOCK=64)


@mistake
def bytes_as_an_argument():
    add[1](floats(), b"1234", 64, BLOCK=64)


@mistake
def generator_as_an_argument():
    add[1](floats(), (v for v in (1.0, 2.0)), 64, BLOCK=64)
