"""Shapes that do not fit."""

import girih
import girih.language as tl

from .collect import floats, mistake


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
