"""Loops and branches of ONNX models beside ONNX Runtime: recurrent layers, Loop, Scan and If.

    .venv/bin/python tests/loops.py target/release/girih [--device cpu] [--filter WORD] [--seeds N]

Each model is made from a seed and compiled once for all lengths; it runs at several of them, 0 and 1 among them. Results agree within 5e-5 of the greatest magnitude, integers exactly. The number of kernels must be the
same for every length.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

BOUND = 5e-5
CODES = {"f4": TensorProto.FLOAT, "i8": TensorProto.INT64, "i4": TensorProto.INT32, "b1": TensorProto.BOOL}


class Case:
    """A model: `feed(length)` gives arrays for its inputs."""

    def __init__(self, name, seed):
        self.name, self.rng = name, np.random.default_rng(seed)
        self.inputs, self.outputs, self.constants, self.nodes, self.shapes = [], [], [], [], {}
        # The outputs for length 0, where ONNX Runtime cannot be asked.
        self.empty = None

    def normal(self, *shape, scale=0.3):
        return (self.rng.standard_normal(shape) * scale).astype("f4")

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def input(self, name, kind, dims, make=None):
        """`dims` are numbers, or names: `t` is the length, `n` the batch."""
        self.inputs.append(info(name, kind, dims))
        self.shapes[name] = (kind, dims, make)
        return name

    def node(self, op, inputs, outputs, **attributes):
        self.nodes.append(helper.make_node(op, inputs, outputs, **attributes))

    def output(self, *names):
        self.outputs += names

    def model(self):
        outputs = [helper.make_empty_tensor_value_info(name) for name in self.outputs]
        graph = helper.make_graph(self.nodes, "g", self.inputs, outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def feed(self, length, batch):
        arrays = {}
        for name, (kind, dims, make) in self.shapes.items():
            shape = [{"t": length, "n": batch}.get(d, d) for d in dims]
            if make is not None:
                array = make(self.rng, length, shape)
            elif kind == "f4":
                array = self.normal(*shape, scale=1.0)
            else:
                array = self.rng.integers(0, 2 if kind == "b1" else 5, shape)
            arrays[name] = np.asarray(array).astype(kind)
        return arrays


def info(name, kind, dims):
    # An extent called `past...` may be 0.
    dims = ["past_t" if d == "t" else d for d in dims]
    return helper.make_tensor_value_info(name, CODES[kind], dims)


def body(nodes, inputs, outputs, constants=()):
    """A graph; inputs and outputs are (name, kind, dims)."""
    constants = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants]
    return helper.make_graph(nodes, "body", [info(*i) for i in inputs], [info(*o) for o in outputs], constants)


# Bounded, so that long sequences stay numbers.
ACTIVATIONS = ["Tanh", "Sigmoid", "Softsign", "HardSigmoid"]


def recurrent(seed):
    c = Case("recurrent", seed)
    rng = c.rng
    kind = ["LSTM", "GRU", "RNN"][seed % 3]
    direction = ["forward", "reverse", "bidirectional"][rng.integers(3)]
    gates, each = {"LSTM": (4, 3), "GRU": (3, 2), "RNN": (1, 1)}[kind]
    both = 2 if direction == "bidirectional" else 1
    width, hidden = int(rng.integers(1, 20)), int(rng.integers(1, 34))
    c.input("x", "f4", ["t", "n", width])
    weights = [("w", (both, gates * hidden, width)), ("r", (both, gates * hidden, hidden))]
    # Small, so that rounding does not grow with the steps.
    names = ["x"] + [c.constant(name, c.normal(*shape, scale=0.1)) for name, shape in weights]
    names.append(c.constant("b", c.normal(both, 2 * gates * hidden)) if rng.integers(2) else "")
    ragged = lambda rng, length, shape: rng.integers(1, max(length, 1) + 1, shape)
    c.name = f"{kind} {direction}"
    with_lengths = rng.integers(2)
    names.append(c.input("lens", "i4", ["n"], ragged) if with_lengths else "")
    states = ["h0", "c0"] if kind == "LSTM" else ["h0"]
    given = rng.integers(2)
    names += [c.input(s, "f4", [both, "n", hidden]) if given else "" for s in states]
    attributes = {}
    if kind == "LSTM" and rng.integers(2):
        names.append(c.constant("p", c.normal(both, 3 * hidden)))
    if kind == "GRU":
        attributes["linear_before_reset"] = int(rng.integers(2))
    if rng.integers(2):
        attributes["activations"] = [ACTIVATIONS[rng.integers(len(ACTIVATIONS))] for _ in range(each * both)]
    if rng.integers(3) == 0:
        attributes["clip"] = 0.7
    results = ["y", "yh", "yc"][: 3 if kind == "LSTM" else 2]
    c.node(kind, names, results, hidden_size=hidden, direction=direction, **attributes)

    def empty(feed):
        batch = feed["x"].shape[1]
        last = [feed.get(s, np.zeros((both, batch, hidden), "f4")) for s in states]
        return dict(zip(results, [np.zeros((0, both, batch, hidden), "f4"), *last]))

    c.empty = empty
    # Some are not asked for.
    c.output(*[r for r in results if rng.integers(4)] or results[:1])
    return c


def scan(seed):
    """Several states and outputs, some of them constant or exchanged; axes and directions at random."""
    c = Case("Scan", seed)
    rng = c.rng
    k = int(rng.integers(1, 9))
    states = ["s0", "s1"]
    for s in states:
        c.input(s, "f4", ["n", k])
    axes = [int(a) for a in rng.integers(0, 3, 2)]
    for name, axis in zip(["x", "z"], axes):
        dims = ["n", k]
        dims.insert(axis, "t")
        c.input(name, "f4", dims)
    c.constant("w", c.normal(k, k))
    swap = rng.integers(2)
    nodes = [
        helper.make_node("MatMul", ["a", "w"], ["aw"]),
        helper.make_node("Add", ["aw", "xt"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["new"]),
        helper.make_node("Mul", ["new", "zt"], ["row"]),
        helper.make_node("Identity", ["b" if not swap else "a"], ["kept"]),
        helper.make_node("Identity", ["zt"], ["same"]),
    ]
    row = ["n", k]
    ins = [("a", "f4", row), ("b", "f4", row), ("xt", "f4", row), ("zt", "f4", row)]
    outs = [("new", "f4", row), ("kept", "f4", row), ("row", "f4", row), ("new2", "f4", row), ("same", "f4", row)]
    nodes.append(helper.make_node("Neg", ["b"], ["new2"]))
    back = [int(v) for v in rng.integers(0, 2, 5)]
    out_axes = [int(a) for a in rng.integers(0, 3, 3)]

    def empty(feed):
        batch = feed["s0"].shape[0]
        shapes = [list(np.insert([batch, k], axis, 0)) for axis in out_axes]
        return {"f0": feed["s0"], "f1": feed["s1"], **{f"r{i}": np.zeros(s, "f4") for i, s in enumerate(shapes)}}

    c.empty = empty
    c.node(
        "Scan",
        [*states, "x", "z"],
        ["f0", "f1", "r0", "r1", "r2"],
        body=body(nodes, ins, outs),
        num_scan_inputs=2,
        scan_input_axes=axes,
        scan_input_directions=back[:2],
        scan_output_axes=out_axes,
        scan_output_directions=back[2:],
    )
    c.output("f0", "f1", "r0", "r1", "r2")
    return c


def loop_count(seed):
    """A number of rounds that is an extent, the number of the round, state that nobody asks for, and rows."""
    c = Case("Loop over an extent", seed)
    k = int(c.rng.integers(1, 9))
    c.input("x", "f4", ["t", k])
    c.input("s", "f4", [k])
    c.node("Shape", ["x"], ["shape"])
    c.constant("zero", np.int64(0))
    c.constant("go", np.bool_(True))
    c.node("Gather", ["shape", "zero"], ["t"])
    nodes = [
        helper.make_node("Gather", ["x", "i"], ["row"]),
        helper.make_node("Cast", ["i"], ["fi"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["row", "fi"], ["moved"]),
        helper.make_node("Mul", ["acc", "half"], ["less"]),
        helper.make_node("Add", ["less", "moved"], ["next"]),
        helper.make_node("Identity", ["cond"], ["again"]),
        helper.make_node("Add", ["unused", "i"], ["unused2"]),
        helper.make_node("Sqrt", ["fi"], ["root"]),
    ]
    ins = [("i", "i8", []), ("cond", "b1", []), ("acc", "f4", [k]), ("unused", "i8", [])]
    outs = [("again", "b1", []), ("next", "f4", [k]), ("unused2", "i8", []), ("moved", "f4", [k]), ("root", "f4", [])]
    c.node("Loop", ["t", "go", "s", "zero"], ["acc_", "n_", "rows", "roots"],
           body=body(nodes, ins, outs, [("half", np.float32(0.5))]))
    c.output(*[["acc_", "rows", "roots"], ["acc_"], ["rows", "n_"]][seed % 3])
    return c


def loop_while(seed):
    """Rounds until a computed condition fails, or until an input's count is reached."""
    c = Case("Loop with a condition", seed)
    k = int(c.rng.integers(1, 9))
    c.input("x", "f4", [k], lambda rng, length, shape: rng.uniform(0.5, 1.5, shape))
    c.input("limit", "f4", [], lambda rng, length, shape: np.float32(length))
    most = ""
    if seed % 2:
        most = c.input("most", "i8", [], lambda rng, length, shape: rng.integers(0, length + 2))
    go = ["", "start"][seed // 2 % 2]
    if go:
        c.input("start", "b1", [])
    nodes = [
        helper.make_node("Mul", ["v", "factor"], ["next"]),
        helper.make_node("ReduceSum", ["next"], ["sum"], keepdims=0),
        helper.make_node("Less", ["sum", "limit"], ["again"]),
        helper.make_node("Add", ["n", "one"], ["n2"]),
    ]
    ins = [("i", "i8", []), ("cond", "b1", []), ("v", "f4", [k]), ("n", "i8", [])]
    outs = [("again", "b1", []), ("next", "f4", [k]), ("n2", "i8", [])]
    c.constant("none", np.int64(0))
    c.node("Loop", [most, go, "x", "none"], ["y", "count"],
           body=body(nodes, ins, outs, [("factor", np.float32(1.25)), ("one", np.int64(1))]))
    c.output("y", "count")
    return c


def nested(seed):
    """A loop in a loop, both over extents; the inner one reads a row of the outer one's and constants of both."""
    c = Case("nested", seed)
    k = int(c.rng.integers(1, 6))
    c.input("x", "f4", ["t", "n", k])
    c.input("s", "f4", [k])
    c.constant("w", c.normal(k, k))
    inner = body(
        [helper.make_node("MatMul", ["h", "w"], ["hw"]), helper.make_node("Add", ["hw", "v"], ["sum"]),
         helper.make_node("Mul", ["sum", "scale"], ["scaled"]), helper.make_node("Tanh", ["scaled"], ["h2"]),
         helper.make_node("Add", ["h2", "g"], ["out"])],
        [("h", "f4", [k]), ("v", "f4", [k])], [("h2", "f4", [k]), ("out", "f4", [k])], [("scale", np.float32(0.8))])
    outer = body(
        [helper.make_node("Scan", ["g", "plane"], ["g2", "rows"], body=inner, num_scan_inputs=1,
                          scan_input_directions=[int(c.rng.integers(2))])],
        [("g", "f4", [k]), ("plane", "f4", ["n", k])], [("g2", "f4", [k]), ("rows", "f4", ["n", k])])
    c.node("Scan", ["s", "x"], ["last", "all"], body=outer, num_scan_inputs=1,
           scan_input_directions=[int(c.rng.integers(2))], scan_output_directions=[int(c.rng.integers(2))])
    c.empty = lambda feed: {"last": feed["s"], "all": np.zeros_like(feed["x"])}
    c.output("last", "all")
    return c


def branch(seed):
    """A branch by what an input holds, alone or in a loop; the branches may read what is around them, or be constants."""
    c = Case("If", seed)
    k = int(c.rng.integers(1, 9))
    c.input("x", "f4", ["t", k])
    c.input("c", "b1", [] if seed % 2 else [1])
    c.constant("w", c.normal(k, k))
    then = body([helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["q"])],
                [], [("q", "f4", ["t", k]), ("p", "f4", ["t", k])])
    other = body([helper.make_node("Neg", ["x"], ["u"]), helper.make_node("Identity", ["x"], ["v"])],
                 [], [("u", "f4", ["t", k]), ("v", "f4", ["t", k])])
    c.node("If", ["c"], ["y", "z"], then_branch=then, else_branch=other)
    c.output("y", "z")
    return c


FAMILIES = [recurrent, scan, loop_count, loop_while, nested, branch]


def run(girih, device, path, feed, outputs, folder):
    """The results, or girih's message, and the number of kernels it compiled."""
    command = [girih, "run", path, "--device", device]
    for name, array in feed.items():
        np.save(f"{folder}/{name}.npy", array)
        command += ["--arg", f"{name}={folder}/{name}.npy"]
    for name in outputs:
        command += ["--save", f"{name}={folder}/out_{name}.npy"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        return None, None, done.stdout.strip()
    kernels = re.search(r"(\d+) kernels?", done.stdout)
    return [np.load(f"{folder}/out_{name}.npy") for name in outputs], kernels and kernels[1], ""


def differs(got, want):
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
    if not want.size:
        return ""
    error = np.abs(got.astype("f8") - want.astype("f8")).max()
    bound = BOUND * max(np.abs(want.astype("f8")).max(), 1e-30) if want.dtype.kind == "f" else 0
    return "" if error <= bound else f"error {error:.1e}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("girih", type=os.path.abspath)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--filter", default="")
    parser.add_argument("--seeds", type=int, default=3, help="models of each family")
    parser.add_argument("--lengths", default="1,7,64", help="beside 0")
    args = parser.parse_args()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    lengths = [0, *map(int, args.lengths.split(","))]
    runs, wrong = 0, 0
    for make in FAMILIES:
        for seed in range(args.seeds):
            if args.filter not in make.__name__:
                continue
            case = make(seed)
            counts = set()
            with tempfile.TemporaryDirectory() as folder:
                path = f"{folder}/model.onnx"
                onnx.save(case.model(), path)
                session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
                for length in lengths:
                    feed = case.feed(length, int(case.rng.integers(1, 4)))
                    if length == 0 and case.empty:
                        want = [case.empty(feed)[name] for name in case.outputs]
                    else:
                        want = session.run(None, feed)
                    got, kernels, trouble = run(args.girih, args.device, path, feed, case.outputs, folder)
                    problem = trouble or "; ".join(filter(None, map(differs, got, want)))
                    runs += 1
                    wrong += bool(problem)
                    counts.add(kernels)
                    if problem:
                        print(f"WRONG {case.name}, seed {seed}, length {length}: {problem}")
            if len(counts) > 1:
                wrong += 1
                print(f"WRONG {case.name}, seed {seed}: {sorted(map(str, counts))} kernels, by the length")
    print(f"loops on {args.device}: {runs - wrong} of {runs} runs agree with ONNX Runtime {onnxruntime.__version__}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
