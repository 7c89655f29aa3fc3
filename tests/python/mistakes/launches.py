"""Launches: grids, arguments, constants."""

import enum

import numpy as np

import girih
import girih.language as tl

from .collect import floats, mistake


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
