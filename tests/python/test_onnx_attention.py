"""Attention of `com.microsoft` with padding on either side, a bias, causal masks and caches, against ONNX Runtime: one model for
all lengths."""

import itertools

import numpy as np
import pytest
from onnx import helper
from test_onnx_extents import F, I32, proto, runtime

import girih

HEADS, SIZE = 2, 8
WIDTH = HEADS * SIZE
RNG = np.random.default_rng(7)
normal = lambda *shape: RNG.standard_normal(shape).astype("f4")


def mask(kind, b, s, past):
    """Padding of some sequences: ONNX Runtime's forms of it."""
    total, fewer = past + s, np.arange(b)
    if kind == "lengths":
        return np.maximum(total - fewer, 1).astype("i4")
    if kind == "ends and starts":
        return np.concatenate([np.full(b, total), np.minimum(fewer, total - 1)]).astype("i4")
    left = np.arange(total) >= np.minimum(fewer, total)[:, None]
    return left.astype("i4") if kind == "keys" else np.repeat(left[:, None], s, 1).astype("i4")


SHAPES = {"lengths": ["b"], "ends and starts": ["b2"], "keys": ["b", "total"], "pairs": ["b", "s", "total"]}
LENGTHS = [(1, 7, 0), (2, 1, 3), (3, 4, 0), (1, 1, 1), (3, 3, 2)]


def run(file, feeds):
    model, judge = girih.Model.from_onnx(file.SerializeToString(), threads=1, device="eval"), runtime(file)
    for feed in feeds:
        # Scores beside -10000 are rounded to a thousandth, where nothing but padding is seen.
        for got, want in zip(model.run(None, feed), judge(feed), strict=True):
            np.testing.assert_allclose(got, want, rtol=3e-3, atol=3e-3)


@pytest.mark.filterwarnings("ignore:girih")
@pytest.mark.parametrize("kind", ["lengths", "keys"])
@pytest.mark.parametrize("past", [False, True])
def test_padding_in_multi_head_attention(kind, past):
    """Sequences on the left of a cache are padded: their first queries see padding alone, which then counts."""
    for causal, bias in itertools.product((0, 1), (False, True)):
        names = ["q", "k", "v", "", "mask", "bias" if bias else "", *(["pk", "pv"] if past else [])]
        inputs = [("q", F, ["b", "s", WIDTH]), ("k", F, ["b", "s", WIDTH]), ("v", F, ["b", "s", WIDTH]), ("mask", I32, SHAPES[kind])]
        inputs += [("bias", F, ["b", HEADS, "s", "total"])] if bias else []
        inputs += [(n, F, ["b", HEADS, "past", SIZE]) for n in ("pk", "pv") if past]
        outputs = ["y", *(["ks", "vs"] if past else [])]
        node = helper.make_node("MultiHeadAttention", names, outputs, domain="com.microsoft", num_heads=HEADS, unidirectional=causal)
        file = proto([node], inputs, [(n, F) for n in outputs], sets=["com.microsoft"])
        feeds = []
        for b, s, before in LENGTHS:
            before *= past
            feed = {n: normal(b, s, WIDTH) for n in "qkv"} | {"mask": mask(kind, b, s, before)}
            feed |= {"bias": normal(b, HEADS, s, before + s)} if bias else {}
            feed |= {n: normal(b, HEADS, before, SIZE) for n in ("pk", "pv") if past}
            feeds.append(feed)
        run(file, feeds)


@pytest.mark.filterwarnings("ignore:girih")
@pytest.mark.parametrize("kind", SHAPES)
def test_padding_in_attention(kind):
    constants = {"w": normal(WIDTH, 3 * WIDTH), "c": normal(3 * WIDTH)}
    for causal, value in itertools.product((0, 1), (None, -50.0)):
        more = {} if value is None else {"mask_filter_value": value}
        node = helper.make_node("Attention", ["x", "w", "c", "mask"], ["y"], domain="com.microsoft", num_heads=HEADS, unidirectional=causal, **more)
        inputs = [("x", F, ["b", "s", WIDTH]), ("mask", I32, SHAPES[kind])]
        file = proto([node], inputs, [("y", F)], constants, ["com.microsoft"])
        run(file, [{"x": normal(b, s, WIDTH), "mask": mask(kind, b, s, 0)} for b, s, _ in LENGTHS])
