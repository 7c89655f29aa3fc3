"""Launches with grids and arguments of other kinds."""

import numpy as np

from .collect import floats, mistake
from .launches import add


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
