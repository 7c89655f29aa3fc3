"""Operators of `com.microsoft` beside ONNX Runtime, which defines them.

    .venv/bin/python tests/contrib.py target/release/girih [--device cpu] [--filter WORD]

Each case is a model of one operator with random operands, where those that are weights in practice are constants. Floats
agree within 1e-5 of the greatest magnitude; integers of quantised results may differ by 1 where a rounding is close.
"""

import argparse
import os
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

RNG = np.random.default_rng(0)
BOUND = 1e-5


def normal(*shape, scale=1.0):
    return (RNG.standard_normal(shape) * scale).astype(np.float32)


def bytes_of(*shape, dtype=np.uint8):
    return RNG.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)


def weights_of(*shape):
    """Seven bits, as ONNX Runtime's quantiser makes them with `reduce_range`: on a processor with AVX2 alone it adds two products
    of unsigned with signed bytes in 16 bits, which saturate, and its result is not the defined one."""
    return RNG.integers(-64, 65, shape).astype(np.int8)


def scale(*shape):
    return RNG.uniform(0.01, 0.05, shape).astype(np.float32)


def zero(dtype, *shape):
    return np.asarray(RNG.integers(-20, 20, shape) if dtype == np.int8 else RNG.integers(100, 150, shape), dtype)


class Weight:
    """A constant operand."""

    def __init__(self, array):
        self.array = np.asarray(array)


def cases():
    """(operator, operands by position: an array, a Weight or None, the number of results, attributes)"""
    W = Weight
    for dtype in (np.uint8, np.int8):
        one = lambda: [W(scale()), W(zero(dtype))]
        x, y = bytes_of(2, 3, 5, dtype=dtype), bytes_of(3, 1, dtype=dtype)
        for op in ("QLinearAdd", "QLinearMul"):
            yield op, [x, *one(), y, *one(), *one()], 1, {}
        flat = lambda *shape: [bytes_of(*shape, dtype=dtype), *one()]
        yield "QLinearSigmoid", [*flat(3, 7), W(np.float32(1 / 256)), W(zero(dtype))], 1, {}
        yield "QLinearLeakyRelu", [*flat(3, 7), *one()], 1, {"alpha": 0.2}
        yield "QLinearConcat", [*one(), *flat(2, 3), *flat(2, 4), *flat(2, 1)], 1, {"axis": 1}
        yield "QLinearGlobalAveragePool", [*flat(2, 3, 6, 5), *one()], 1, {}
    u = lambda *shape: [bytes_of(*shape), W(scale()), W(zero(np.uint8))]
    pool = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
    for include in (0, 1):
        attributes = {**pool, "count_include_pad": include}
        yield "QLinearAveragePool", [*u(1, 3, 8, 6), W(scale()), W(zero(np.uint8))], 1, attributes
    for opset, axis in ((13, -1), (13, 1), (11, 1)):
        operands = [*u(2, 4, 5), W(np.float32(1 / 256)), W(np.uint8(0))]
        yield "QLinearSoftmax", operands, 1, {"axis": axis, "opset": opset}

    for trans in (0, 1):
        b = weights_of(*((5, 8) if trans else (8, 5)))
        operands = [*u(3, 8), W(b), W(scale(5)), W(zero(np.int8, 5)), W(RNG.integers(-99, 99, 5).astype("i4"))]
        yield "QGemm", [*operands, W(scale()), W(zero(np.uint8))], 1, {"transB": trans}
        yield "QGemm", operands, 1, {"transB": trans, "alpha": 0.5}
    for columns in ((), (5,)):
        weights = [W(weights_of(8, 5)), W(scale(*columns)), W(zero(np.int8, *columns))]
        yield "DynamicQuantizeMatMul", [normal(2, 3, 8), *weights, W(normal(5))], 1, {}
        operands = [bytes_of(2, 3, 8), weights[0], W(scale()), weights[1], W(zero(np.uint8)), weights[2], W(normal(5))]
        yield "MatMulIntegerToFloat", operands, 1, {}
    for k, block, given in ((64, 32, False), (40, 16, True), (128, 64, True)):
        n, blocks = 6, -(-k // block)
        operands = [normal(2, 3, k), W(bytes_of(n, blocks, block // 2)), W(scale(n * blocks))]
        operands += [W(bytes_of(n * -(-blocks // 2)))] if given else []
        yield "MatMulNBits", operands, 1, {"K": k, "N": n, "bits": 4, "block_size": block}

    # Enough of them that a few rows unpack them in registers.
    for rows, bits, block, given in (
        (1, 4, 32, True), (1, 4, 64, False), (1, 8, 32, True), (3, 4, 32, False), (4, 8, 32, False), (5, 4, 128, True), (9, 4, 32, True),
    ):  # fmt: skip
        n, k = 520, 1024
        blocks = k // block
        operands = [normal(1, rows, k), W(bytes_of(n, blocks, block * bits // 8)), W(scale(n * blocks))]
        operands += [W(bytes_of(n * blocks * bits // 8))] if given else []
        yield "MatMulNBits", operands, 1, {"K": k, "N": n, "bits": bits, "block_size": block}
        # ONNX Runtime rounds the rows to 8 bits then, and so does Girih.
        yield "MatMulNBits", operands, 1, {"K": k, "N": n, "bits": bits, "block_size": block, "accuracy_level": 4}

    image = normal(1, 3, 7, 6)
    convolution = {"kernel_shape": [3, 3], "pads": [1] * 4}
    for activation, params in (
        ("Relu", []), ("Sigmoid", []), ("Tanh", []), ("LeakyRelu", [0.1]), ("Clip", [-0.5, 0.5]), ("HardSigmoid", [0.3, 0.4]),
    ):  # fmt: skip
        attributes = {**convolution, "activation": activation, **({"activation_params": params} if params else {})}
        yield "FusedConv", [image, W(normal(4, 3, 3, 3)), W(normal(4))], 1, attributes
    yield "FusedConv", [image, W(normal(4, 3, 3, 3)), W(normal(4)), normal(1, 4, 7, 6)], 1, {**convolution, "activation": "Relu"}

    for activation, params in (
        ("Relu", {}), ("Sigmoid", {}), ("Tanh", {}), ("LeakyRelu", {"alpha": 0.1}), ("Elu", {"alpha": 0.5}), ("Softplus", {}),
        ("Softsign", {}), ("ThresholdedRelu", {"alpha": 0.3}), ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}),
    ):  # fmt: skip
        attributes = {"activation": activation, **{f"activation_{name}": value for name, value in params.items()}}
        yield "FusedGemm", [normal(3, 8), W(normal(5, 8)), W(normal(5))], 1, {**attributes, "transB": 1, "alpha": 0.5}

    rows = np.array([[3, 0, 9], [1, 1, 8]])
    for dtype, zeros in ((ml_dtypes.uint4, True), (ml_dtypes.int4, True), (ml_dtypes.int4, False), (np.uint8, True), (np.uint8, False)):
        packed = dtype == np.uint8
        table = bytes_of(10, 24) if packed else RNG.integers(*((0, 16) if dtype == ml_dtypes.uint4 else (-8, 8)), (10, 48)).astype(dtype)
        zero_points = (bytes_of(10, 2) if packed else RNG.integers(0, 8, (10, 3)).astype(dtype),) if zeros else ()
        attributes = {"block_size": 16, "gather_axis": 0, "quantize_axis": 1, **({"bits": 4} if packed else {})}
        yield "GatherBlockQuantized", [W(table), rows, W(scale(10, 3)), *map(W, zero_points)], 1, attributes

    b, s, kept, size = 2, 1, 4, 8
    new = [normal(b, s, 4 * size), normal(b, s, 2 * size), normal(b, s, 2 * size)]
    past = [normal(b, 2, kept, size), normal(b, 2, kept, size)]
    lengths = [W(np.full(b, kept + s - 1, np.int32)), W(np.array(kept + s, np.int32))]
    grouped = {"num_heads": 4, "kv_num_heads": 2}
    yield "GroupQueryAttention", [*new, *past, *lengths], 3, grouped
    yield "GroupQueryAttention", [*new, *past, *lengths], 3, {**grouped, "smooth_softmax": 1}
    yield "GroupQueryAttention", [*new, *past, *lengths, *[None] * 4, W(normal(4))], 3, grouped
    yield "GroupQueryAttention", [*new, *past, *lengths, *[None] * 3, normal(b, 4, s, kept + s)], 3, grouped

    b, heads, room, size = 2, 2, 6, 8
    new, cache = [normal(b, 1, heads * size) for _ in range(3)], [normal(b, heads, room, size) for _ in range(2)]
    shared = {"num_heads": heads, "past_present_share_buffer": 1}
    for length in (0, 2, 5):
        used = np.array([length], np.int32)
        yield "DecoderMaskedMultiHeadAttention", [*new, None, None, *cache, used], 3, shared
        bias = [None, None, W(normal(3 * heads * size))]
        yield "DecoderMaskedMultiHeadAttention", [*new, None, None, *cache, used, *bias], 3, {**shared, "scale": 0.5}

    b, s, heads, size = 2, 5, 2, 4
    hidden = heads * size
    base = [normal(b, s, hidden), W(normal(hidden, 3 * hidden, scale=0.5)), W(normal(3 * hidden))]
    keys = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    yield "Attention", base, 1, {"num_heads": heads}
    yield "Attention", base, 1, {"num_heads": heads, "unidirectional": 1}
    yield "Attention", [*base, keys], 1, {"num_heads": heads}
    yield "Attention", [*base, keys.sum(1, dtype=np.int32)], 1, {"num_heads": heads}
    past = normal(2, b, heads, 3, size)
    yield "Attention", [*base, None, past], 2, {"num_heads": heads, "unidirectional": 1}
    yield "Attention", [*base, None, None, normal(b, heads, s, s)], 1, {"num_heads": heads}
    ids, segments = RNG.integers(0, 9, (b, s)).astype("i4"), RNG.integers(0, 2, (b, s)).astype("i4")
    tables = [W(normal(9, 8)), W(normal(12, 8)), W(normal(2, 8)), W(normal(8)), W(normal(8))]
    yield "EmbedLayerNormalization", [ids, segments, *tables], 2, {"epsilon": 1e-6}
    yield "EmbedLayerNormalization", [ids, None, *tables[:2], None, *tables[3:], keys], 2, {}


def model(op, operands, results, attributes):
    names = ["" if o is None else f"x{at}" for at, o in enumerate(operands)]
    node = helper.make_node(op, names, [f"y{i}" for i in range(results)], domain="com.microsoft", **attributes)
    number = lambda array: helper.np_dtype_to_tensor_dtype(array.dtype)
    feed = {n: o for n, o in zip(names, operands) if isinstance(o, np.ndarray)}
    weights = [numpy_helper.from_array(o.array, n) for n, o in zip(names, operands) if isinstance(o, Weight)]
    # A dimension that comes with the array, except of one batch of rows.
    comes = lambda array: array.ndim and op not in FIXED and (op != "MatMulNBits" or len(array) > 1)
    shape = lambda n, array: [f"{n}_rows", *array.shape[1:]] if comes(array) else list(array.shape)
    inputs = [helper.make_tensor_value_info(n, number(a), shape(n, a)) for n, a in feed.items()]
    outputs = [onnx.ValueInfoProto(name=f"y{i}") for i in range(results)]
    graph = helper.make_graph([node], op, inputs, outputs, weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), feed


#: Several operands have the same rows.
FIXED = {"Attention", "DecoderMaskedMultiHeadAttention", "EmbedLayerNormalization", "FusedConv", "GroupQueryAttention", "QLinearConcat"}


def girih(binary, device, path, feed, results, folder):
    command = [binary, "run", path, "--device", device]
    for name, array in feed.items():
        np.save(f"{folder}/{name}.npy", array)
        command += ["--arg", f"{name}={folder}/{name}.npy"]
    for i in range(results):
        command += ["--save", f"y{i}={folder}/y{i}.npy"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        return None, done.stdout.strip()
    return [np.load(f"{folder}/y{i}.npy") for i in range(results)], ""


def differs(got, want):
    """The error of a result; nothing if it is right."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
    error = np.abs(got.astype(np.float64) - want.astype(np.float64)).max(initial=0)
    if want.dtype.kind == "f":
        error /= max(np.abs(want).max(initial=0), 1e-30)
        return f"error {error:.1e}" if not error <= BOUND else ""
    least = 1 if want.dtype.itemsize == 1 else 0
    return f"off by {error:.0f}" if error > least else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("girih", type=os.path.abspath)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--filter", default="")
    args = parser.parse_args()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    count, wrong = 0, 0
    for op, operands, results, attributes in cases():
        if args.filter not in op:
            continue
        proto, feed = model(op, operands, results, attributes)
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/model.onnx"
            onnx.save(proto, path)
            session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            want = session.run(None, feed)
            got, trouble = girih(args.girih, args.device, path, feed, results, folder)
        problem = trouble or "; ".join(filter(None, map(differs, got, want)))
        count += 1
        wrong += bool(problem)
        if problem:
            print(f"WRONG {op} {attributes} ({', '.join(str(list(a.shape)) for a in feed.values())}): {problem}")
    print(f"com.microsoft on {args.device}: {count - wrong} of {count} cases agree with ONNX Runtime {onnxruntime.__version__}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
