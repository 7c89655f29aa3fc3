"""Operands that do not fit: what ONNX Runtime refuses, Girih must refuse.

    .venv/bin/python tests/onnx_refused.py [--filter WORD] [--most N] [--every N] [-v]

In: the models of one node among ONNX's own tests, and those of `contrib.py`. One operand at a time is changed: an axis has one
element, one more or one less, the tensor has an axis more, or is one number, and integers are other ones. Out: a line for each
changed model that ONNX Runtime refuses and Girih runs, unless `TAKEN` says why. Exit code 1 where there is one.
"""

import argparse
import itertools
import os
import random
import re
import sys
import time
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import contrib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python"))

# Operators that take more: their names, the words of ONNX Runtime, and the reason.
TAKEN = [
    (".*", r"Unable to handle|No corresponding Numpy|Numpy_type|not a registered|Invalid tensor data type|Batchwise|NOT_IMPLEMENTED|"
     r"Could not find an impl|antialias|outermost|empty set", "ONNX Runtime has no kernel for it"),
    ("AffineGrid|Col2Im|CenterCropPad|ConstantOfShape|Pad|Reduce.*|Reshape|Resize|Slice|Split|Squeeze|Unsqueeze|Tile|TopK|Expand|OneHot",
     r"1-?D|1 dimensional|vector|axes_tensor|pads_tensor_dims|shape mismatch|unification|rank 1 but",
     "a list may have axes of one element around it"),
    ("Dropout|Range|If|Loop|.*Integer|QLinear.*|.*QuantizeLinear|Trilu|CumSum|CumProd",
     r"scalar|ElementVector|QuantParam|declared=0|filter (scale|zero point) shape|is not valid", "a number may have axes of one element"),
    ("QLinearMatMul|ConvInteger", "ElementVector", "ONNX has a scale for each row, and a zero point for each channel"),
    ("Attention|ReverseSequence|TensorScatter", "Invalid sequence length|write_indices|nonpad_kv_seqlen|mask_index value", "the values of a run are not looked at"),
    ("Attention", "attn_mask", "ONNX broadcasts a mask, and what is missing at the end of its last axis masks"),
    ("ConvTranspose", "inconsistent", "ONNX computes the padding from the shape of the result"),
    ("LRN", "NumDimensions", "ONNX has no limit of axes"),
    ("Pad", "Pad reflect requires", "NumPy repeats the one element of an axis, as ONNX's own evaluation does"),
    ("RotaryEmbedding", "dimension 0 should be of size batch_size", "positions of one row serve all of the batch"),
    ("Scan", "declared dimension|Declared", "the operands say what shapes they have, not the node's graph"),
    ("Split", "negative final split", "the last piece may be empty"),
    ("TreeEnsemble.*", "rank 2 but has rank 1", "one row is a batch of one"),
]  # fmt: skip


def changed(array):
    """Other arrays in its place, with a word for each."""
    for axis, n in enumerate(array.shape):
        if n > 1:
            yield f"one element along axis {axis}", array.take([0], axis)
        if n > 2:
            yield f"one element less along axis {axis}", array.take(range(n - 1), axis)
        if n > 0:
            yield f"one element more along axis {axis}", np.concatenate([array, array.take([0], axis)], axis)
    yield "an axis more", array[None]
    if array.ndim and array.size:
        yield "one number", array.reshape(-1)[:1]
    if array.dtype.kind == "i" and array.size:
        yield "less 100", array - array.dtype.type(100)
        yield "plus 100", array + array.dtype.type(100)


def models():
    """(name, model, arrays by input) of models of one node whose operands are numbers, and few."""
    from onnx.backend.test.case.node import collect_testcases

    found = []
    for case in collect_testcases(None):
        if "_expanded" not in case.name and len(case.model.graph.node) == 1 and case.data_sets:
            found.append((case.name, case.model, case.data_sets[0][0]))
    for i, case in enumerate(contrib.cases()):
        model, feed = contrib.model(*case)
        found.append((f"com.microsoft {i}", model, list(feed.values())))
    for name, model, operands in found:
        try:
            arrays = [numpy_helper.to_array(a) if isinstance(a, onnx.TensorProto) else np.asarray(a) for a in operands]
        except (TypeError, ValueError, AttributeError):
            continue
        small = all(a.dtype.kind in "fiub" and a.size <= 20000 for a in arrays)
        if small and len(arrays) == len(model.graph.input):
            yield name, model, arrays


def with_operands(model, arrays):
    """The model, with inputs of the arrays' shapes and results of any."""
    other = onnx.ModelProto()
    other.CopyFrom(model)
    for port, array in zip(other.graph.input, arrays):
        shape = helper.make_tensor_value_info("", onnx.TensorProto.FLOAT, array.shape).type.tensor_type.shape
        port.type.tensor_type.shape.CopyFrom(shape)
    for port in other.graph.output:
        if port.type.HasField("tensor_type"):
            port.type.tensor_type.ClearField("shape")
    return other


def refused_by_onnxruntime(model, arrays, options):
    """The words of ONNX Runtime, or nothing."""
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        session.run(None, {port.name: array for port, array in zip(model.graph.input, arrays)})
    except Exception as e:  # noqa: BLE001 (it has a type for each kind)
        return " ".join(str(e).split())
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default="")
    parser.add_argument("--most", type=int, default=4, help="changes of a model that are tried, of those that ONNX Runtime refuses")
    parser.add_argument("--every", type=int, default=1, help="only each N-th model")
    parser.add_argument("-v", action="store_true", help="list also what may be taken")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    import girih

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    onnxruntime.set_default_logger_severity(4)
    start, tried, taken, wrong = time.time(), 0, 0, 0
    for name, model, arrays in itertools.islice(models(), 0, None, args.every):
        op = model.graph.node[0].op_type
        if args.filter not in f"{name} {op}":
            continue
        cases = [(i, what, other) for i, a in enumerate(arrays) for what, other in changed(a)]
        random.Random(name).shuffle(cases)
        left = args.most
        for i, what, other in cases:
            if not left:
                break
            given = [*arrays[:i], np.ascontiguousarray(other) if other.ndim else other, *arrays[i + 1 :]]
            proto = with_operands(model, given)
            why = refused_by_onnxruntime(proto, given, options)
            if not why:
                continue
            left, tried = left - 1, tried + 1
            try:
                girih.Model.from_onnx(proto.SerializeToString(), device="eval")(*given)
            except (girih.GirihError, TypeError, ValueError):
                continue
            except Exception:
                print(f"{op} ({name}), operand {i + 1} with {what}:", flush=True)
                raise
            reason = next((r for ops, says, r in TAKEN if re.fullmatch(ops, op) and re.search(says, why)), None)
            taken += reason is not None
            wrong += reason is None
            if reason is None or args.v:
                shapes = ", ".join(f"{a.dtype}{list(a.shape)}" for a in given)
                word = "WRONG" if reason is None else f"taken ({reason})"
                print(f"{word} {op} ({name}), operand {i + 1} with {what}: {shapes}: {why[-200:]}")
    print(
        f"operands that do not fit: {tried} models that ONNX Runtime {onnxruntime.__version__} refuses, {tried - taken - wrong} refused, "
        f"{taken} taken for a reason, {wrong} wrong ({time.time() - start:.0f} s)"
    )
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
