"""Random ONNX graphs over the arithmetic of extents, against ONNX Runtime.

    python tests/onnx_random.py [--count N] [--seed S] [--depth D] [--device eval|cpu] [--keep-going]

A graph makes integers of the extents of `x [b, t]` and `z [b, u]` (sums, quotients, remainders, rounding through floats,
comparisons, lists of extents, branches and loops that count) and uses them as the extents of a tensor, the bounds of a slice, the
lengths of padding and pieces, or as they are. One session runs it at eight sizes, empty ones and ones of 1 among them.
Results must be equal; a refusal of what ONNX Runtime runs is an error too. Models that are compiled for some sizes are counted.
"""

import argparse
import collections
import sys
import warnings

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import girih

F, D, I, I32, B = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL
SIZES = [(2, 6, 3), (3, 5, 5), (1, 1, 1), (4, 2, 9), (7, 9, 2), (2, 2, 2), (0, 4, 1), (3, 0, 2)]
OPSETS = [14, 16, 18, 21]
INTS = """Add Sub Mul Min Max times by Div rest Mod fmod Neg Abs Sign up ceil Where bool float float Pow at reduced narrow Clip size
    range same If Loop""".split()
BOOLS = "Greater Less Equal GreaterOrEqual LessOrEqual Not And Or Xor floats cast".split()
FLOATS = "Cast Mul Div Add Sub Sqrt Pow by Reciprocal wide Min Max Neg Abs".split()
LISTS = "shape cat cat plus times slice Where scatter back sum Tile Split made".split()
USES = "int list expand slice steps pad Reshape Range Tile Trilu Gather OneHot Split add".split()


class Random:
    def __init__(self, seed):
        self.rng, self.count = np.random.default_rng(seed), 0
        self.opset = int(self.pick(*OPSETS))
        self.nodes, self.constants, self.text = [], {}, {}

    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def constant(self, value):
        name = self.name()
        self.constants[name] = np.asarray(value)
        self.text[name] = str(self.constants[name].tolist())
        return name

    def op(self, op, *inputs, outputs=1, **attributes):
        names = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        given = [self.text.get(i, i) for i in inputs] + [f"{k}={v}" for k, v in attributes.items() if not hasattr(v, "node")]
        self.text.update(dict.fromkeys(names, f"{op}({', '.join(given)})"))
        return names[0] if outputs == 1 else names

    def int(self, depth):
        if depth <= 0 or self.rng.random() < 0.08:
            return self.pick("b", "t", "u")
        kind, c = self.pick(*INTS), int(self.rng.integers(1, 6))
        x = lambda: self.int(depth - 1)
        if kind in ("Add", "Sub", "Mul", "Min", "Max"):
            return self.op(kind, x(), x())
        if kind in ("Neg", "Abs", "Sign"):
            return self.op(kind, x())
        if kind in ("Div", "Mod"):
            return self.op(kind, x(), self.pick("b1", "t1", self.op("Max", x(), self.constant(1))))
        if kind in ("times", "by", "rest"):
            return self.op({"times": "Mul", "by": "Div", "rest": "Mod"}[kind], x(), self.constant(self.pick(c, c, -c)))
        if kind == "fmod":
            return self.op("Mod", x(), self.constant(c), fmod=1)
        if kind == "up":
            return self.op("Neg", self.op("Div", self.op("Neg", x()), self.constant(c)))
        if kind == "ceil":
            return self.op("Div", self.op("Add", x(), self.constant(c - 1)), self.constant(c))
        if kind == "Where":
            return self.op("Where", self.bool(depth - 1), x(), x())
        if kind == "bool":
            return self.op("Cast", self.bool(depth - 1), to=I)
        if kind == "float":
            wide = self.float(depth - 1)
            rounded = self.op(self.pick("Ceil", "Floor", "Round"), wide) if self.rng.random() < 0.8 else wide
            return self.op("Cast", rounded, to=I)
        if kind == "Pow":
            return self.op("Pow", self.op("Min", x(), self.constant(20)), self.constant(self.pick(0, 1, 2, 3)))
        if kind == "at":
            list, n = self.list(depth - 1)
            return self.op("Gather", list, self.constant(int(self.rng.integers(-n, n))), axis=0)
        if kind == "reduced":
            return self.op(self.pick("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin"), self.list(depth - 1)[0], keepdims=0)
        if kind == "narrow":
            return self.op("Cast", self.op("Cast", x(), to=I32), to=I)
        if kind == "Clip":
            return self.op("Clip", x(), self.constant(c - 3), self.constant(c + 20))
        if kind == "size":
            return self.op("Size", self.op("Expand", self.constant(np.float32(1)), self.extents(depth - 1)))
        if kind == "range":
            return self.op("Size", self.op("Range", self.constant(0), self.extent(depth - 1), self.constant(c)))
        if kind == "same":
            return self.op("Squeeze", self.list_of(x()), self.constant([0]))
        return self.branches(depth - 1) if kind == "If" else self.loop(depth - 1)

    def inner(self, make):
        outer, self.nodes = self.nodes, []
        result, outer, self.nodes = make(), self.nodes, outer
        return outer, result

    def branches(self, depth):
        def branch(name):
            nodes, result = self.inner(lambda: self.op("Identity", self.int(depth)))
            return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(result, I, [])])

        return self.op("If", self.bool(depth), then_branch=branch("then"), else_branch=branch("else"))

    def loop(self, depth):
        rounds = self.op("Min", self.op("Max", self.int(depth), self.constant(0)), self.constant(7))
        i, go, state, again = (self.name() for _ in range(4))
        kind = self.pick("extent", "round", "half", "two")

        def body():
            self.nodes.append(helper.make_node("Identity", [go], [again]))
            if kind == "half":
                return self.op("Max", self.op("Div", state, self.constant(2)), i)
            by = {"extent": self.pick("b", "t"), "round": i, "two": self.constant(2)}[kind]
            return self.op("Add", state, by)

        nodes, result = self.inner(body)
        inputs = [(i, I), (go, B), (state, I)]
        infos = [[helper.make_tensor_value_info(n, kind, []) for n, kind in all] for all in (inputs, [(again, B), (result, I)])]
        return self.op("Loop", rounds, "", self.int(depth), body=helper.make_graph(nodes, "body", *infos))

    def bool(self, depth):
        kind = self.pick(*BOOLS) if depth > 0 else "Less"
        if kind == "Not":
            return self.op("Not", self.bool(depth - 1))
        if kind in ("And", "Or", "Xor"):
            return self.op(kind, self.bool(depth - 1), self.bool(depth - 1))
        if kind == "floats":
            return self.op(self.pick("Greater", "Less"), self.float(depth - 1), self.constant(np.float32(self.pick(2.5, 3, 0, -1))))
        if kind == "cast":
            return self.op("Cast", self.int(depth - 1), to=B)
        other = self.int(depth - 1) if self.rng.random() < 0.5 else self.constant(int(self.rng.integers(-1, 8)))
        return self.op(kind, self.int(depth - 1), other)

    def float(self, depth):
        kind, c = self.pick(*FLOATS), np.float32(self.pick(2, 3, 0.5, 1.5, 0.6, 0.7, 2.3, 4, 8, 1 / 3, 0.1))
        if depth <= 0 or kind == "Cast":
            return self.op("Cast", self.int(depth - 1), to=F)
        x = lambda: self.float(depth - 1)
        if kind in ("Mul", "Div", "Add"):
            return self.op(kind, x(), self.constant(c))
        if kind in ("Sub", "Min", "Max"):
            return self.op(kind, x(), x())
        if kind in ("Neg", "Abs"):
            return self.op(kind, x())
        if kind == "Sqrt":
            return self.op("Sqrt", self.op("Abs", x()))
        if kind == "Pow":
            return self.op("Pow", self.op("Abs", x()), self.constant(np.float32(self.pick(0.5, 2))))
        if kind == "wide":
            wide = self.op("Mul", self.op("Cast", self.int(depth - 1), to=D), self.constant(self.pick(0.6, 0.7, 1.5, 2.3)))
            return self.op("Cast", wide, to=F)
        divisor = self.op("Cast", self.pick("b1", "t1"), to=F)
        return self.op("Div", x(), divisor) if kind == "by" else self.op("Reciprocal", divisor)

    def list_of(self, x):
        return self.op("Unsqueeze", x, self.constant([0]))

    def list(self, depth):
        """A list of integers, and its length."""
        kind = self.pick(*LISTS) if depth > 0 else "shape"
        if kind == "shape":
            return self.pick(("xs", 2), ("zs", 2))
        if kind == "cat":
            n = int(self.rng.integers(1, 4))
            return self.op("Concat", *(self.list_of(self.int(depth - 1)) for _ in range(n)), axis=0), n
        if kind == "made":
            return self.op("Shape", self.op("ConstantOfShape", self.extents(depth - 1))), 2
        list, n = self.list(depth - 1)
        if kind == "plus":
            return self.op(self.pick("Add", "Mul", "Sub"), list, self.int(depth - 1)), n
        if kind == "times":
            return self.op(self.pick("Add", "Mul"), list, self.constant(self.rng.integers(-1, 4, n))), n
        if kind == "slice" and n > 1:
            return self.op("Slice", list, self.constant([0]), self.constant([-1]), self.constant([0])), n - 1
        if kind == "Where":
            test = self.op("Equal", list, self.constant(int(self.pick(1, 2, -1))))
            return self.op("Where", test, self.constant(np.full(n, 3)), list), n
        if kind == "scatter":
            at = self.constant([int(self.rng.integers(n))])
            return self.op("ScatterElements", list, at, self.list_of(self.int(depth - 1)), axis=0), n
        if kind == "back":
            return self.op("Slice", list, *(self.constant([v]) for v in (-1, -100, 0, -1))), n
        if kind == "sum":
            return self.op("CumSum", list, self.constant(0)), n
        if kind == "Tile" and n < 4:
            return self.op("Tile", list, self.constant([2])), 2 * n
        if kind == "Split" and n > 1:
            first = int(self.rng.integers(1, n))
            parts = self.op("Split", list, self.constant([first, n - first]), outputs=2, axis=0)
            return self.pick((parts[0], first), (parts[1], n - first))
        return list, n

    def extent(self, depth):
        return self.op("Min", self.op("Max", self.int(depth), self.constant(0)), self.constant(9))

    def extents(self, depth, count=2):
        return self.op("Concat", *(self.list_of(self.extent(depth)) for _ in range(count)), axis=0)

    def use(self, depth):
        kind = self.pick(*USES)
        axis, sums = self.constant([int(self.rng.integers(2))]), self.op("ReduceSum", "x", keepdims=0)
        if kind in ("int", "list"):
            return self.op("Identity", self.int(depth) if kind == "int" else self.list(depth)[0])
        if kind == "expand":
            return self.op("Expand", sums, self.extents(depth))
        if kind in ("slice", "steps"):
            steps = [self.constant([self.pick(-1, 2, -2, 3)])] if kind == "steps" else []
            return self.op("Slice", "x", self.list_of(self.int(depth)), self.list_of(self.int(depth)), axis, *steps)
        if kind == "pad":
            return self.op("Pad", "x", self.extents(depth - 1, 4), self.constant(np.float32(7)))
        if kind == "Reshape":
            return self.op("Reshape", "x", self.constant(self.pick([-1], [1, -1])))
        if kind == "Range":
            return self.op("Range", self.constant(0), self.extent(depth), self.constant(1))
        if kind == "Tile":
            times = self.op("Min", self.extent(depth - 1), self.constant(3))
            return self.op("Tile", "x", self.op("Concat", self.list_of(times), self.constant([2]), axis=0))
        if kind == "Trilu":
            return self.op("Trilu", "x", self.int(depth), upper=int(self.rng.integers(2)))
        if kind == "Gather":
            return self.op("Gather", "z", self.op("Range", self.constant(0), self.op("Min", self.extent(depth), "b"), self.constant(1)))
        if kind == "OneHot":
            numbers = self.op("Range", self.constant(0), self.extent(depth - 1), self.constant(1))
            length = self.op("Max", self.extent(depth - 1), self.constant(1))
            return self.op("OneHot", numbers, length, self.constant(np.array([0, 1], "f4")), axis=-1)
        if kind == "Split":
            first = self.op("Min", self.extent(depth), "t")
            sizes = self.op("Concat", self.list_of(first), self.list_of(self.op("Sub", "t", first)), axis=0)
            return self.pick(*self.op("Split", "x", sizes, outputs=2, axis=1))
        return self.op("Add", self.op("Expand", self.constant(np.float32(0)), self.extents(depth - 1)), sums)

    def model(self, depth):
        self.constants.update(zero=np.int64(0), one=np.int64(1))
        first = [("Shape", "x", "xs"), ("Shape", "z", "zs"), ("Gather", "xs zero", "b"), ("Gather", "xs one", "t"),
                 ("Gather", "zs one", "u"), ("Max", "b one", "b1"), ("Max", "t one", "t1")]  # fmt: skip
        self.result = self.use(depth)
        nodes = [helper.make_node(op, inputs.split(), [output]) for op, inputs, output in first] + self.nodes
        inputs = [helper.make_tensor_value_info("x", F, ["b", "t"]), helper.make_tensor_value_info("z", F, ["b", "u"])]
        tensors = [numpy_helper.from_array(a, n) for n, a in self.constants.items()]
        graph = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info(self.result)], tensors)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=9).SerializeToString()


def feeds():
    for b, t, u in SIZES:
        ramp = lambda n, by: (np.arange(b * n, dtype="f4") % by - 3).reshape(b, n)
        yield (b, t, u), {"x": ramp(t, 11), "z": ramp(u, 7)}


def check(seed, depth, device="eval"):
    """How one graph went, and what is to be said of it."""
    made = Random(seed)
    bytes = made.model(depth)
    text = made.text[made.result]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    judge = onnxruntime.InferenceSession(bytes, options, providers=["CPUExecutionProvider"])
    model, said = girih.Model.from_onnx(bytes, threads=1, device=device), set()
    for sizes, feed in feeds():
        try:
            want = judge.run(None, feed)[0]
        except Exception:  # noqa: BLE001: sizes that it does not take either.
            continue
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                got = model.run(None, feed)[0]
            except girih.GirihError as e:
                return "refused", f"at {sizes}: {text}: {e}"
        said |= {str(w.message) for w in told}
        alike = (got.shape, got.dtype) == (want.shape, want.dtype) and np.allclose(got, want, rtol=1e-4, atol=1e-4, equal_nan=True)
        if not alike:
            return "wrong", f"at {sizes}: {text} is {got.dtype}{got.shape} {got}, not {want.dtype}{want.shape} {want}"
    if any("2147483647" in w for w in said):
        return "alarmed", f"{text}: {said}"
    return ("special", f"{text}: {said}") if said else ("one model", text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--device", default="eval")
    parser.add_argument("--keep-going", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="show graphs that are compiled for some sizes")
    args = parser.parse_args()
    onnxruntime.set_default_logger_severity(4)
    counts = collections.Counter()
    for seed in range(args.seed, args.seed + args.count):
        outcome, text = check(seed, args.depth, args.device)
        counts[outcome] += 1
        bad = outcome in ("wrong", "refused", "alarmed")
        if bad or args.verbose and outcome == "special":
            print(f"seed {seed}, {outcome}: {text}", flush=True)
        if bad and not args.keep_going:
            break
    print(", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items())))
    sys.exit(any(counts[bad] for bad in ("wrong", "refused", "alarmed")))


if __name__ == "__main__":
    main()
