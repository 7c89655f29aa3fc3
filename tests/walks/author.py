"""An author of kernels who has a wheel: kernels in Python, Triton's and cuTile's programs, on a laptop.

    .venv/bin/python tests/walks/author.py [--keep DIR]
"""

from walk import HAS_THE_WHEEL, Walk

with Walk("author", leave={**HAS_THE_WHEEL, "export GIRIH_CUTILE": "it changes a whole shell", "torchrun": "it needs that shell"}) as walk:
    walk.install_wheel()
    walk.follow("docs/python/guide.md")
    walk.follow("docs/triton.md", until="## PyTorch's inductor")
    walk.follow("docs/triton.md", section="## A library in C", until="## How fast")
    walk.follow("docs/python/from-triton.md")
    # A program of the reader's own, and a test of it.
    walk.have("script.py", walk.text("examples/vector_add.py"))
    walk.have("test_kernels.py", "def test_a_program():\n    import script\n\n    assert (script.c == script.a + script.b).all()\n")
    walk.module("pytest")
    walk.follow("docs/cutile.md")
    walk.follow("docs/python/from-cutile.md")
