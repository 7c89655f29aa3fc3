"""Kernels that are defined in ways they cannot be."""

import girih
import girih.language as tl

from .collect import floats, mistake
from .launches import add


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
