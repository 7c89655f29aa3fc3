"""Branches and loops."""

import girih
import girih.language as tl

from .collect import floats, mistake


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
def shape_changes_before_the_last_line_of_a_loop():
    @girih.jit
    def kernel(x, n):
        a = tl.load(x + tl.arange(0, 64))
        i = 0
        while i < n:
            a = tl.cat(a, a)
            i += 1
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


@mistake
def comparisons_without_parentheses():
    @girih.jit
    def kernel(x, n):
        i = tl.arange(0, 64)
        tl.store(x + i, 1.0, mask=i < n & i > 2)

    kernel[1](floats(), 10)


@mistake
def a_mask_bound_to_a_bound():
    @girih.jit
    def kernel(x, n):
        i = tl.arange(0, 64)
        even = i % 2 == 0
        tl.store(x + i, 1.0, mask=i < n & even)

    kernel[1](floats(), 10)


@mistake
def comparison_of_a_comparison():
    @girih.jit
    def kernel(x, n):
        i = tl.arange(0, 64)
        tl.store(x + i, 1.0, mask=i < n == (i > 2))

    kernel[1](floats(), 10)


@mistake
def inverted_python_bool():
    @girih.jit
    def kernel(x, n, ALL: tl.constexpr):
        i = tl.arange(0, 64)
        tl.store(x + i, 1.0, mask=(i < n) | ~ALL)

    kernel[1](floats(), 10, ALL=True)
