"""A deployer: the wheel, a library in C, a model from ONNX Runtime, and compiled kernels for another machine.

    .venv/bin/python tests/walks/deployer.py [--keep DIR]
"""

from pathlib import Path

import nvidia
from walk import HAS_THE_WHEEL, Walk

with Walk("deployer", leave=HAS_THE_WHEEL) as walk:
    walk.install_wheel()
    # NVRTC, which the extra `cuda` brings.
    walk.environment["GIRIH_CUDA_LIBS"] = str(Path(nvidia.__path__[0]) / "cu13" / "lib")
    walk.have_file_of("docs/triton.md", "vector_add.py")
    walk.follow("docs/build.md")
    walk.follow("docs/python/from-onnxruntime.md")
    walk.follow("docs/cache.md")
