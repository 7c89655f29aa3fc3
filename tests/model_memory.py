"""The memory that models with weights of 8 bits take: weights stay as they are, and nothing is kept twice.

    .venv/bin/python tests/model_memory.py target/release/girih

Products by int8 weights as quantisers write them. Each model's results agree with NumPy's, in float64 and in integers; the peak of
a run, less that of the same model with hardly any weights, is at most 1.3 times the weights and the largest set of arrays that a run
holds at once; and a limit below that is an error before it is exceeded.
"""

import argparse
import os
import sys
import tempfile

import numpy as np
import onnx
import peak_memory
from onnx import helper, numpy_helper

LAYERS, ROWS = 4, 64
WEIGHTS, LIVE = 1.3, 1 << 21


class Chain:
    """Layers of one kind: the nodes, the weights, and the same in NumPy."""

    def __init__(self, n):
        self.rng, self.n = np.random.default_rng(3), n
        self.nodes, self.constants, self.last = [], [], "x"

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weights(self, i):
        w = self.rng.integers(-127, 128, (self.n, self.n)).astype("i1")
        return w, self.constant(f"w{i}", w)

    def scales(self, i, count):
        # So that the values between layers keep one size.
        s = (self.rng.uniform(0.5, 1.5, count) / (74 * self.n**0.5)).astype("f4")
        return s, self.constant(f"s{i}", s)

    def node(self, op, inputs, *outputs, **attributes):
        self.nodes.append(helper.make_node(op, inputs, list(outputs), **attributes))
        self.last = outputs[0]

    def dequantized(self, i, x, by, transposed=False):
        w, name = self.weights(i)
        s, scale = self.scales(i, self.n if by == "column" else ())
        inputs, w = [name, scale], w.astype("f8")
        if by == "column":
            z = self.rng.integers(-9, 9, self.n).astype("i1")
            inputs.append(self.constant(f"z{i}", z))
            w = w - (z[:, None] if transposed else z)
        w = w * (s[:, None] if transposed and by == "column" else s)
        before = self.last
        self.node("DequantizeLinear", inputs, f"d{i}", axis=0 if transposed else 1)
        if transposed:
            self.node("Gemm", [before, f"d{i}"], f"y{i}", transB=1)
            return x @ w.T
        self.node("MatMul", [before, f"d{i}"], f"y{i}")
        return x @ w

    def dynamic(self, i, x):
        """As ONNX Runtime's dynamic quantiser writes a product."""
        w, name = self.weights(i)
        s, scale = self.scales(i, self.n)
        self.node("DynamicQuantizeLinear", [self.last], f"q{i}", f"qs{i}", f"qz{i}")
        self.node("MatMulInteger", [f"q{i}", name, f"qz{i}"], f"m{i}")
        self.node("Cast", [f"m{i}"], f"c{i}", to=onnx.TensorProto.FLOAT)
        self.node("Mul", [f"c{i}", f"qs{i}"], f"g{i}")
        self.node("Mul", [f"g{i}", scale], f"y{i}")
        x = x.astype("f4")
        low, high = min(x.min(), np.float32(0)), max(x.max(), np.float32(0))
        by = np.float32((high - low) / np.float32(255))
        q = np.clip(np.rint(x / by) + np.rint(-low / by), 0, 255).astype("i8") - int(np.rint(-low / by))
        return (q @ w.astype("i8")) * np.float64(by) * s

    def qlinear(self, i, x):
        w, name = self.weights(i)
        s = np.float32(1 / (74 * self.n**0.5))
        step, point = np.float32(0.04), np.uint8(128)
        a, z = self.constant(f"a{i}", step), self.constant(f"z{i}", point)
        b, nothing = self.constant(f"b{i}", s), self.constant(f"n{i}", np.int8(0))
        self.node("QuantizeLinear", [self.last, a, z], f"q{i}")
        self.node("QLinearMatMul", [f"q{i}", a, z, name, b, nothing, a, z], f"r{i}")
        self.node("DequantizeLinear", [f"r{i}", a, z], f"y{i}")
        q = np.clip(np.rint(x.astype("f4") / step) + 128, 0, 255) - 128
        r = np.clip(np.rint((q @ w.astype("f8")) * s) + 128, 0, 255) - 128
        return r * np.float64(step)

    def save(self, path):
        inputs = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["rows", self.n])]
        graph = helper.make_graph(self.nodes, "g", inputs, [helper.make_empty_tensor_value_info(self.last)], self.constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


# How a layer is written, and by how much its results may differ: where a quantised value lies between two integers, either is right.
KINDS = {
    "by tensor": (lambda c, i, x: c.dequantized(i, x, "tensor"), 1e-5),
    "by column": (lambda c, i, x: c.dequantized(i, x, "column"), 1e-5),
    "transposed": (lambda c, i, x: c.dequantized(i, x, "column", transposed=True), 1e-5),
    "dynamic": (Chain.dynamic, 2e-2),
    "QLinearMatMul": (Chain.qlinear, 2e-2),
}


def run(girih, folder, name, *options):
    """The exit code, the output, and the peak memory in bytes of a run whose kernels are compiled."""
    command = [girih, "run", f"{folder}/m.onnx", "--arg", f"x={folder}/x.npy", "--save", f"{name}={folder}/y.npy", *options]
    peak_memory.run(command)
    code, _, said, peak = peak_memory.run(command)
    return code, said, peak


def measure(girih, kind, n):
    """The error, the peak, and that of a run that a limit of half the weights stops."""
    layer, _ = KINDS[kind]
    with tempfile.TemporaryDirectory() as folder:
        chain = Chain(n)
        x = chain.rng.standard_normal((ROWS, n)).astype("f4")
        np.save(f"{folder}/x.npy", x)
        want = x.astype("f8")
        for i in range(LAYERS):
            want = layer(chain, i, want)
        chain.save(f"{folder}/m.onnx")
        code, said, peak = run(girih, folder, chain.last)
        assert code == 0, said
        error = np.abs(np.load(f"{folder}/y.npy") - want).max() / np.abs(want).max()
        weights = LAYERS * n * n
        code, said, stopped = run(girih, folder, chain.last, "--max-memory", str(weights // 2))
        assert code == 1 and "more than the limit" in said, said
    return error, peak, stopped


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("girih", type=os.path.abspath)
    parser.add_argument("--size", type=int, default=2048)
    given = parser.parse_args()
    wrong = 0
    weights = LAYERS * given.size**2
    for kind, (_, bound) in KINDS.items():
        _, least, _ = measure(given.girih, kind, 32)
        error, peak, stopped = measure(given.girih, kind, given.size)
        allowed = WEIGHTS * weights + LIVE
        problems = [f"the error is above {bound:.0e}"] if not error <= bound else []
        if peak - least > allowed:
            problems.append(f"the peak is above {allowed / 2**20:.1f} MiB")
        if stopped - least > weights // 2:
            problems.append(f"a run with a limit took {(stopped - least) / 2**20:.1f} MiB")
        wrong += bool(problems)
        print(f"{kind:14} error {error:.1e}, {weights >> 20} MiB of weights, peak {(peak - least) / 2**20:.1f} MiB", *problems)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
