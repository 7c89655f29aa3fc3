"""Operands of wrong types."""

import numpy as np

import girih
import girih.language as tl

from .collect import floats, mistake


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
