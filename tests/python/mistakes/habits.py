"""Habits of NumPy, CUDA and Triton that a kernel does not share."""

import girih
import girih.language as tl
import numpy as np

from .collect import floats, mistake
from .launches import add


def launch(kernel):
    kernel[1](floats(), floats(), 64, BLOCK=64)


@mistake
def cuda_thread_index():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        i = threadIdx.x + blockIdx.x * BLOCK  # noqa: F821
        tl.store(out + i, 1.0)

    launch(kernel)


@mistake
def cuda_barrier():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        tl.store(out + tl.arange(0, BLOCK), 1.0)
        tl.syncthreads()

    launch(kernel)


@mistake
def cuda_atomic():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        atomicAdd(out, 1.0)  # noqa: F821

    launch(kernel)


@mistake
def address_indexed():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, x[i])

    launch(kernel)


@mistake
def address_assigned():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        out[i] = tl.load(x + i)

    launch(kernel)


@mistake
def length_of_an_address():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        for i in range(len(x)):
            tl.store(out + i, 1.0)

    launch(kernel)


@mistake
def memory_of_two_dimensions():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        tile = tl.shared((BLOCK, BLOCK))
        tl.store(out, tl.load(tile))

    launch(kernel)


@mistake
def mean_of_a_tile():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        tl.store(out, tl.load(x + tl.arange(0, BLOCK)).mean())

    launch(kernel)


@mistake
def method_astype():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, i.astype(tl.float32))

    launch(kernel)


@mistake
def function_ones():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        tl.store(out + tl.arange(0, BLOCK), tl.ones((BLOCK,), tl.float32))

    launch(kernel)


@mistake
def function_matmul():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        a = tl.zeros((16, 16), tl.float32)
        tl.store(out, tl.sum(tl.matmul(a, a)))

    launch(kernel)


@mistake
def function_any():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        tl.store(out, tl.any(tl.load(x + tl.arange(0, BLOCK)) > 0))

    launch(kernel)


@mistake
def builtin_sum():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        tl.store(out, sum(tl.load(x + tl.arange(0, BLOCK))))

    launch(kernel)


@mistake
def builtin_max():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        tl.store(out, max(tl.load(x + tl.arange(0, BLOCK))))

    launch(kernel)


@mistake
def builtin_round():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        tl.store(out, round(tl.load(x), 2))

    launch(kernel)


@mistake
def maximum_by_max():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, tl.max(tl.load(x + i), 0.0))

    launch(kernel)


@mistake
def slice_of_a_tile():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        a = tl.load(x + tl.arange(0, BLOCK))
        tl.store(out, a[1:])

    launch(kernel)


@mistake
def row_of_a_tile():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        a = tl.zeros((BLOCK, BLOCK), tl.float32)
        tl.store(out + tl.arange(0, BLOCK), a[0, :])

    launch(kernel)


@mistake
def tile_indexed_by_a_mask():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        a = tl.load(x + tl.arange(0, BLOCK))
        tl.store(out, tl.sum(a[a > 0]))

    launch(kernel)


@mistake
def extent_to_be_inferred():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        a = tl.load(x + tl.arange(0, BLOCK))
        tl.store(out + tl.arange(0, BLOCK), a.reshape(-1))

    launch(kernel)


@mistake
def zeros_without_a_type():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        tl.store(out + tl.arange(0, BLOCK), tl.zeros((BLOCK,)))

    launch(kernel)


@mistake
def arange_of_one_number():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        tl.store(out + tl.arange(BLOCK), 1.0)

    launch(kernel)


@mistake
def arange_with_a_step():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        tl.store(out + tl.arange(0, BLOCK, 2), 1.0)

    launch(kernel)


@mistake
def numpys_keepdims():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        a = tl.zeros((BLOCK, BLOCK), tl.float32)
        tl.store(out, tl.sum(tl.sum(a, axis=1, keepdims=True)))

    launch(kernel)


@mistake
def pytorchs_dim():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        tl.store(out, tl.sum(tl.load(x + tl.arange(0, BLOCK)), dim=0))

    launch(kernel)


@mistake
def where_without_a_choice():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, tl.where(i < n, 1.0))

    launch(kernel)


@mistake
def type_called():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, tl.float32(i))

    launch(kernel)


@mistake
def pythons_type():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, i.to(float))

    launch(kernel)


@mistake
def product_of_vectors():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        a = tl.load(x + tl.arange(0, BLOCK))
        tl.store(out, a @ a)

    launch(kernel)


@mistake
def offsets_for_a_mask():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x, i))

    launch(kernel)


@mistake
def value_for_a_mask():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, 0.0))

    launch(kernel)


@mistake
def numbers_for_a_mask():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, 1.0, i)

    launch(kernel)


@mistake
def other_of_a_store():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, 1.0, i < n, 0.0)

    launch(kernel)


@mistake
def division_by_zero():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, i // 0)

    launch(kernel)


@mistake
def identity_of_a_number():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        three = 3
        if n is three:
            tl.store(out, 1.0)

    launch(kernel)


@mistake
def range_with_keywords():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        for i in range(0, n, step=2):
            tl.store(out + i, 1.0)

    launch(kernel)


@mistake
def constexpr_of_run_time():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        half: tl.constexpr = n // 2
        tl.store(out + half, 1.0)

    launch(kernel)


@mistake
def key_that_is_missing():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        scales = {"a": 2.0}
        tl.store(out, scales["b"])

    launch(kernel)


@mistake
def value_that_is_not_used():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        a = tl.load(x)
        a.to(tl.float16)
        tl.store(out, a)

    launch(kernel)


@mistake
def comparison_that_is_not_used():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        a = tl.load(x)
        a == 1.0
        tl.store(out, a)

    launch(kernel)


@mistake
def output_assigned():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        out = tl.load(x + i) * 2.0

    launch(kernel)


@mistake
def kernel_without_a_store():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.load(x + i, i < n)

    launch(kernel)


@mistake
def fraction_to_integers():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        tl.store(out.to(tl.pointer_type(tl.int32)), 0.5)

    launch(kernel)


@mistake
def grid_of_blocks_and_threads():
    girih.jit(add.fn)[1, 64](floats(), floats(), 64, BLOCK=64)


@mistake
def grid_of_a_kernel_that_reads_no_block():
    @girih.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, i < n), i < n)

    kernel[4](floats(), floats(), 64, BLOCK=64)


@mistake
def grid_as_a_call():
    add(1)(floats(), floats(), 64, BLOCK=64)


@mistake
def configurations_that_are_dictionaries():
    girih.autotune([{"BLOCK": 64}], key=["n"])(add)


@mistake
def one_configuration():
    girih.autotune(girih.Config({"BLOCK": 64}), key=["n"])(add)


@mistake
def key_that_is_text():
    girih.autotune([girih.Config({"BLOCK": 64})], key="n")(add)


@mistake
def configuration_of_pairs():
    girih.Config(["BLOCK", 64])


@mistake
def misspelt_option_of_autotune():
    girih.autotune([girih.Config({"BLOCK": 64})], key=["n"], restore_values=["x"])(add)


@mistake
def autotune_below_jit():
    girih.jit(girih.autotune([girih.Config({"BLOCK": 64})], key=["n"])(add))


@mistake
def autotune_of_a_function():
    girih.autotune([girih.Config({"BLOCK": 64})], key=["n"])(floats)


@mistake
def heuristics_of_an_unknown_name():
    girih.heuristics({"BLOK": lambda args: 64})(add)


@mistake
def heuristics_that_are_numbers():
    girih.heuristics({"BLOCK": 64})(add)


@mistake
def parameter_that_is_not_specialised_is_unknown():
    girih.jit(add.fn, do_not_specialize=["m"])


@mistake
def setting_that_is_text():
    add[1](floats(), floats(), 64, BLOCK=64, check="yes")


@mistake
def device_that_is_a_number():
    add[1](floats(), floats(), 64, BLOCK=64, device=0)


@mistake
def array_for_a_constant():
    add[1](floats(), floats(), 64, BLOCK=np.arange(64))


@mistake
def number_for_an_array():
    add[1](floats(), 1.0, 64, BLOCK=64)
