"""Kernels compiled for types that are written out, without a launch."""

from girih.triton import hosting
from girih.triton.driver import exact_by_default


def ttir(kernel, given):
    """The TTIR of a kernel of Triton's; `given` has for each parameter a type and what divides it, or a constant."""
    import triton
    from triton.backends.compiler import GPUTarget

    hosting.offer()
    exact_by_default()
    names = list(kernel.arg_names)
    signature = {name: given[name].type or "constexpr" for name in names}
    constants = {(at,): given[name].constant for at, name in enumerate(names) if given[name].type is None}
    facts = {(at,): [["tt.divisibility", 16]] for at, name in enumerate(names) if given[name].type and given[name].divisor == 16}
    source = triton.compiler.ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=facts)
    return triton.compile(source, target=GPUTarget("girih", "cpu", 1)).asm["ttir"]
