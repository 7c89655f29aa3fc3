"""Writes the TTIR of `kernels.py` to tests/ttir: what Triton prints, with the paths of this checkout left out.

    python tests/triton/generate.py

The files are then read by tests that have no Triton.
"""

import os
import sys

os.environ.setdefault("GIRIH_TRITON", "1")

import girih.triton  # noqa: F401, E402  (offers the backend)
import triton  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(os.path.dirname(HERE), "ttir")


def ttir(kernel, signature, constants):
    every = {name: signature.get(name, "constexpr") for name in kernel.arg_names}
    pointers = [i for i, name in enumerate(kernel.arg_names) if every[name].startswith("*")]
    source = ASTSource(
        fn=kernel,
        signature=every,
        constexprs={(kernel.arg_names.index(name),): value for name, value in constants.items()},
        attrs={(i,): [["tt.divisibility", 16]] for i in pointers},
    )
    return triton.compile(source).asm["ttir"]


def main():
    sys.path.insert(0, HERE)
    import kernels

    os.makedirs(OUT, exist_ok=True)
    for kernel, (signature, constants) in kernels.SIGNATURES.items():
        name = kernel.fn.__name__
        text = ttir(kernel, signature, constants).replace(HERE + os.sep, "")
        folder = os.path.dirname(triton.__file__) + os.sep
        with open(os.path.join(OUT, f"{name}.ttir"), "w") as file:
            file.write(text.replace(folder, "triton/"))
        print(name)


if __name__ == "__main__":
    main()
