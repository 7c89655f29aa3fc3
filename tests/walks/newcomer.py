"""A newcomer: the README from its first command on.

    .venv/bin/python tests/walks/newcomer.py [--keep DIR]
"""

import numpy as np
import onnx
from onnx import TensorProto, helper
from walk import HAS_NO_GPU, Walk

LEFT = {**HAS_NO_GPU, "make test": "it is the rest of the tests", "torchrun": "make test-torchrun runs it"}

with Walk("newcomer", leave=LEFT, checkout=["cargo", "pip install ."]) as walk:
    # The README shows a kernel before it says how to install what runs it.
    walk.follow("README.md", section="## Two commands", until="## Models")
    # Files to try the commands on.
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 8]) for name in ("input", "output")]
    graph = helper.make_graph([helper.make_node("Softmax", ["input"], ["output"])], "model", ports[:1], ports[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    walk.have("model.onnx", model.SerializeToString())
    np.save(walk.folder / "x.npy", np.ones((4, 8), np.float32))
    walk.have("kernel.mlir", walk.text("examples/vector_add.mlir"))
    walk.have("script.py", walk.text("examples/python/vector_add.py"))
    walk.follow("README.md")
