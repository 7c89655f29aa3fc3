"""ONNX models of a few hundred bytes whose results, or whose graphs, are larger than any machine.

`models()` yields `(name, bytes)`. Sizes come from constants, so that they are seen while the model is read, and from
inputs, so that they are seen when it runs.
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
GREAT = [10**9, 2**40, 2**63 - 1, -(2**63), -5]


def model(nodes, inputs=(), constants=(), outputs=("y",), opset=17, functions=(), extra=()):
    """A model of these nodes; inputs are (name, type, shape), constants (name, array) or a tensor."""
    port = lambda n, t, s: helper.make_tensor_value_info(n, t, s)
    tensors = [c if isinstance(c, TensorProto) else numpy_helper.from_array(np.asarray(c[1]), c[0]) for c in constants]
    untyped = []
    for name in outputs:
        info = helper.ValueInfoProto()
        info.name = name
        untyped.append(info)
    graph = helper.make_graph(list(nodes), "bomb", [port(*i) for i in inputs], untyped, tensors)
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in extra)]
    made = helper.make_model(graph, opset_imports=imports, ir_version=10, functions=list(functions))
    return made.SerializeToString()


def node(kind, *inputs, outputs=("y",), **attrs):
    return helper.make_node(kind, list(inputs), list(outputs), **attrs)


def ints(*values):
    return np.array(values, np.int64)


SMALL = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)


def growing():
    """One operator each whose operands say how large its result is."""
    x, row = ("x", SMALL), ("r", np.arange(3, dtype=np.float32))
    for n in GREAT:
        yield f"resize_sizes_{n}", model([node("Resize", "x", "", "", "s")], constants=[x, ("s", ints(1, 1, n, n))])
        yield f"expand_{n}", model([node("Expand", "r", "s")], constants=[row, ("s", ints(n, 3))])
        yield f"tile_{n}", model([node("Tile", "r", "s")], constants=[row, ("s", ints(n))])
        yield f"pad_{n}", model([node("Pad", "r", "s")], constants=[row, ("s", ints(n, n))])
        yield f"range_{n}", model([node("Range", "a", "b", "c")], constants=[("a", np.int64(0)), ("b", np.int64(n)), ("c", np.int64(1))])
        yield f"range_back_{n}", model([node("Range", "a", "b", "c")], constants=[("a", np.int64(5)), ("b", np.int64(n)), ("c", np.int64(-1))])
        yield f"constant_of_shape_{n}", model([node("ConstantOfShape", "s")], constants=[("s", ints(n, 2))])
        yield f"constant_of_shapes_{n}", model([node("ConstantOfShape", "s")], constants=[("s", ints(n, n, n))])
        yield f"one_hot_{n}", model([node("OneHot", "i", "d", "v")], constants=[("i", ints(1, 2)), ("d", np.int64(n)), ("v", np.float32([0, 1]))])
        yield f"reshape_{n}", model([node("Reshape", "r", "s")], constants=[row, ("s", ints(n, -1))])
        yield f"slice_{n}", model([node("Slice", "r", "a", "b", "", "c")], constants=[row, ("a", ints(n)), ("b", ints(~n)), ("c", ints(n))])
        yield f"window_{n}", model([node("HannWindow", "n")], constants=[("n", np.int64(n))])
        yield f"dft_{n}", model([node("DFT", "x", "n")], constants=[("x", SMALL.reshape(1, 4, 1)), ("n", np.int64(n))])
        yield f"mel_{n}", model([node("MelWeightMatrix", "a", "b", "c", "d", "e")], constants=[("a", np.int64(n)), ("b", np.int64(n)), ("c", np.int64(8000)), ("d", np.float32(0)), ("e", np.float32(4000))])
        yield f"top_k_{n}", model([node("TopK", "r", "k", outputs=("y", "z"))], constants=[row, ("k", ints(n))])
        yield f"trilu_{n}", model([node("Trilu", "x", "k")], constants=[x, ("k", np.int64(n))])
        yield f"cumsum_{n}", model([node("CumSum", "r", "k")], constants=[row, ("k", np.int64(n))])
        yield f"stft_{n}", model([node("STFT", "x", "a", "", "b")], constants=[("x", SMALL.reshape(1, 4, 1)), ("a", np.int64(n)), ("b", np.int64(n))])
        yield f"split_{n}", model([node("Split", "r", "s", outputs=("y", "z"))], constants=[row, ("s", ints(n, 3 - n if abs(n) < 2**62 else 3))])
        yield f"gather_{n}", model([node("Gather", "r", "i")], constants=[row, ("i", ints(n))])
        yield f"scatter_{n}", model([node("ScatterElements", "r", "i", "u")], constants=[row, ("i", ints(n)), ("u", np.float32([1]))])
        yield f"unsqueeze_{n}", model([node("Unsqueeze", "r", "i")], constants=[row, ("i", ints(n))])
    for n in (1e9, 1e30, np.inf, np.nan, -1.0, 0.0):
        scales = ("s", np.float32([1, 1, n, n]))
        yield f"resize_scales_{n}", model([node("Resize", "x", "", "s")], constants=[x, scales])
        yield f"resize_cubic_{n}", model([node("Resize", "x", "", "s", mode="cubic", antialias=1)], constants=[x, scales], opset=18)
        yield f"upsample_{n}", model([node("Upsample", "x", "s", mode="linear")], constants=[x, scales], opset=9)
        yield f"range_float_{n}", model([node("Range", "a", "b", "c")], constants=[("a", np.float32(0)), ("b", np.float32(n)), ("c", np.float32(0.5))])
        yield f"range_step_{n}", model([node("Range", "a", "b", "c")], constants=[("a", np.float32(0)), ("b", np.float32(1)), ("c", np.float32(1 / n if n else 0))])


def attributes():
    """One operator each whose attributes are extreme."""
    image, w = ("x", F, [1, 1, 8, 8]), ("w", np.ones((1, 1, 3, 3), np.float32))
    for n in GREAT:
        for name in ("dilations", "strides", "pads"):
            many = [n] * (4 if name == "pads" else 2)
            yield f"conv_{name}_{n}", model([node("Conv", "x", "w", **{name: many})], [image], [w])
            yield f"conv_transpose_{name}_{n}", model([node("ConvTranspose", "x", "w", **{name: many})], [image], [w])
            yield f"max_pool_{name}_{n}", model([node("MaxPool", "x", kernel_shape=[2, 2], **{name: many})], [image])
            if name != "dilations":
                yield f"average_pool_{name}_{n}", model([node("AveragePool", "x", kernel_shape=[2, 2], **{name: many})], [image])
        yield f"conv_transpose_output_{n}", model([node("ConvTranspose", "x", "w", output_padding=[n, n])], [image], [w])
        yield f"conv_transpose_shape_{n}", model([node("ConvTranspose", "x", "w", output_shape=[n, n])], [image], [w])
        yield f"max_pool_kernel_{n}", model([node("MaxPool", "x", kernel_shape=[n, n], pads=[2**20] * 4)], [image])
        yield f"conv_group_{n}", model([node("Conv", "x", "w", group=n)], [image], [w])
        yield f"depth_to_space_{n}", model([node("DepthToSpace", "x", blocksize=n)], [image])
        yield f"space_to_depth_{n}", model([node("SpaceToDepth", "x", blocksize=n)], [image])
        yield f"flatten_{n}", model([node("Flatten", "x", axis=n)], [image])
        yield f"concat_{n}", model([node("Concat", "x", "x", axis=n)], [image])
        yield f"softmax_{n}", model([node("Softmax", "x", axis=n)], [image])
        yield f"transpose_{n}", model([node("Transpose", "x", perm=[n, 1, 2, 3])], [image])
        yield f"lrn_{n}", model([node("LRN", "x", size=n)], [image])
        yield f"col2im_{n}", model([node("Col2Im", "x", "a", "b")], [("x", F, [1, 4, 4])], [("a", ints(n, n)), ("b", ints(2, 2))], opset=18)
        yield f"roi_align_{n}", model([node("RoiAlign", "x", "r", "i", output_height=n, output_width=n, sampling_ratio=n)], [image], [("r", np.float32([[0, 0, 1, 1]])), ("i", ints(0))])
        yield f"random_{n}", model([node("RandomNormal", shape=[n, n])])
        yield f"eye_{n}", model([node("EyeLike", "x", k=n)], [("x", F, [8, 8])])
        yield f"gru_{n}", model([node("GRU", "x", "w", "r", hidden_size=n)], [("x", F, [2, 1, 4])], [("w", np.ones((1, 3, 4), np.float32)), ("r", np.ones((1, 3, 1), np.float32))])
        yield f"constant_dims_{n}", model([node("Identity", "t")], constants=[TensorProto(name="t", data_type=F, dims=[n, n], raw_data=b"0000")])
        yield f"external_{n}", model([node("Identity", "t")], constants=[external("t", n)])
        yield f"input_{n}", model([node("Relu", "x")], [("x", F, [n, n])])
        yield f"trip_{n}", loop(n)


def external(name, n):
    made = TensorProto(name=name, data_type=F, dims=[n], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "weights.bin"), ("offset", str(n)), ("length", str(n))):
        entry = made.external_data.add()
        entry.key, entry.value = key, value
    return made


def loop(n, nested=0):
    """A loop of `n` rounds, with as many inside each as `nested` says."""
    inner = [helper.make_node("Add", ["v", "v"], ["w"]), helper.make_node("Identity", ["c"], ["d"])]
    if nested:
        count = numpy_helper.from_array(np.int64(n), "n2")
        deeper = helper.make_node("Loop", ["n2", "c", "v"], ["w"], body=body(nested - 1, n))
        inner = [helper.make_node("Constant", [], ["n2"], value=count), deeper, helper.make_node("Identity", ["c"], ["d"])]
    graph = helper.make_graph(
        inner, "body",
        [helper.make_tensor_value_info("i", I, []), helper.make_tensor_value_info("c", B, []), helper.make_tensor_value_info("v", F, [2])],
        [helper.make_tensor_value_info("d", B, []), helper.make_tensor_value_info("w", F, [2])],
    )
    return model([node("Loop", "n", "", "x", body=graph)], [("x", F, [2])], [("n", np.int64(n))])


def body(nested, n):
    name = lambda s: f"{s}_{nested}"
    nodes = [helper.make_node("Add", [name("v"), name("v")], [name("w")]), helper.make_node("Identity", [name("c")], [name("d")])]
    if nested:
        count = numpy_helper.from_array(np.int64(n), name("n"))
        nodes = [
            helper.make_node("Constant", [], [name("n")], value=count),
            helper.make_node("Loop", [name("n"), name("c"), name("v")], [name("w")], body=body(nested - 1, n)),
            helper.make_node("Identity", [name("c")], [name("d")]),
        ]
    info = helper.make_tensor_value_info
    return helper.make_graph(
        nodes, f"body{nested}", [info(name("i"), I, []), info(name("c"), B, []), info(name("v"), F, [2])],
        [info(name("d"), B, []), info(name("w"), F, [2])],
    )


def branch(depth):
    """`If`s within `If`s, both branches alive: twice as many nodes at each level."""
    def at(level):
        out = helper.make_empty_tensor_value_info(f"o{level}_{at.count}")
        at.count += 1
        if level == 0:
            nodes = [helper.make_node("Relu", ["x"], [out.name])]
        else:
            nodes = [helper.make_node("If", ["c"], [out.name], then_branch=at(level - 1), else_branch=at(level - 1))]
        return helper.make_graph(nodes, f"g{level}_{at.count}", [], [out])
    at.count = 0
    top = node("If", "c", then_branch=at(depth), else_branch=at(depth))
    return model([top], [("x", F, [2]), ("c", B, [])])


def doubling(levels, kind):
    """Functions that call the one below twice."""
    made = []
    for level in range(levels):
        call = f"f{level - 1}" if level else kind
        where = "bomb" if level else ""
        nodes = [
            helper.make_node(call, ["a"] if level or kind == "Relu" else ["a", "a"], ["t"], domain=where),
            helper.make_node(call, ["t"] if level or kind == "Relu" else ["t", "t"], ["b"], domain=where),
        ]
        made.append(helper.make_function("bomb", f"f{level}", ["a"], ["b"], nodes, [helper.make_opsetid("", 17), helper.make_opsetid("bomb", 1)]))
    top = helper.make_node(f"f{levels - 1}", ["x"], ["y"], domain="bomb")
    return model([top], [("x", F, [2])], functions=made, extra=("bomb",))


def chain(kind, count, twice=False):
    names = ["x", *(f"v{i}" for i in range(count - 1)), "y"]
    nodes = [helper.make_node(kind, [a] * (2 if twice else 1), [b]) for a, b in zip(names, names[1:])]
    return model(nodes, [("x", F, [4])])


def doubled_constant(count):
    """A constant concatenated with itself again and again."""
    names = ["x", *(f"v{i}" for i in range(count - 1)), "y"]
    nodes = [helper.make_node("Concat", [a, a], [b], axis=0) for a, b in zip(names, names[1:])]
    return model(nodes, constants=[("x", np.arange(2, dtype=np.float32))])


def squared(count):
    """Outer products: the rank stays, and the number of elements is squared."""
    nodes, before = [], "x"
    for i in range(count):
        name = "y" if i == count - 1 else f"v{i}"
        nodes += [
            helper.make_node("Reshape", [before, "col"], [f"c{i}"]),
            helper.make_node("Reshape", [before, "row"], [f"r{i}"]),
            helper.make_node("MatMul", [f"c{i}", f"r{i}"], [name]),
        ]
        before = name
    return model(nodes, [("x", F, [16])], [("col", ints(-1, 1)), ("row", ints(1, -1))])


def structure():
    """Graphs that expand, nest or run on."""
    yield "loops_nested", loop(1000, 3)
    yield "loops_deep", loop(2, 24)
    yield "branches_14", branch(14)
    yield "branches_constant", branch(3)
    for levels in (10, 31):
        yield f"functions_{levels}", doubling(levels, "Relu")
        yield f"functions_add_{levels}", doubling(levels, "Mul")
    again = helper.make_function("bomb", "f", ["a"], ["b"], [helper.make_node("f", ["a"], ["b"], domain="bomb")], [helper.make_opsetid("", 17), helper.make_opsetid("bomb", 1)])
    yield "function_of_itself", model([helper.make_node("f", ["x"], ["y"], domain="bomb")], [("x", F, [2])], functions=[again], extra=("bomb",))
    yield "relu_5000", chain("Relu", 5000)
    yield "sigmoid_5000", chain("Sigmoid", 5000)
    yield "add_400", chain("Add", 400, twice=True)
    yield "transpose_3000", chain("Transpose", 3000)
    outputs = [f"y{i}" for i in range(8000)]
    yield "split_8000", model([node("Split", "x", outputs=outputs)], [("x", F, [8000])], outputs=outputs)
    yield "concat_doubled_20", doubled_constant(20)
    yield "concat_doubled_70", doubled_constant(70)
    yield "outer_products_2", squared(2)
    yield "outer_products_6", squared(6)
    yield "broadcast", model([node("Add", "a", "b")], [("a", F, [65536, 1]), ("b", F, [1, 65536])])
    yield "broadcast_huge", model([node("Add", "a", "b")], [("a", F, [2**31, 1]), ("b", F, [1, 2**31])])
    yield "gather_nd", model([node("Gather", "x", "i")], [("x", F, [65536, 65536]), ("i", I, [65536, 65536])])
    yield "matmul_huge", model([node("MatMul", "a", "b")], [("a", F, [2**20, 1]), ("b", F, [1, 2**20])])
    yield "einsum_huge", model([node("Einsum", "a", "b", "c", equation="i,j,k->ijk")], [("a", F, [2**20]), ("b", F, [2**20]), ("c", F, [2**20])])
    yield "deep_attribute", b"\x3a" + bytes([0xFF] * 9 + [0x01]) + b"x"
    yield "dims_run", model([node("ConstantOfShape", "s")], [("s", I, [6])])
    yield "rank_5000", model([node("ConstantOfShape", "s")], constants=[("s", np.ones(5000, np.int64))])
    yield "rank_64_of_2", model([node("ConstantOfShape", "s")], constants=[("s", np.full(64, 2, np.int64))])


def models():
    yield from growing()
    yield from attributes()
    yield from structure()


# Thousands of kernels: their C is not asked for.
LONG = {"functions_10", "functions_add_10", "split_8000", "sigmoid_5000", "relu_5000", "transpose_3000"}
# They expand to the limit while they are read: once is enough.
EXPANDING = {"loops_nested", "loops_deep", "functions_31", "functions_add_31", "branches_14"}
