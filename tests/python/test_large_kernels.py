"""Kernels of thousands of statements: native code has them in several functions, and the answers are the evaluator's."""

import importlib.util

import numpy as np

HEAD = """\
import girih as tl

@tl.jit
def k(x, o, n, B: tl.constexpr):
    p = tl.program_id(0)
    i = tl.arange(0, B)
    a = 0.0
    c = 0
    for t in range(0, n):
        v = tl.load(x + t)
"""
STEP = """\
        a += tl.sum(tl.load(x + i + {j} + t), 0) * 0.001
        if v > {high}.0:
            a = a * 0.5 + {j}.0
"""
TAIL = """\
        if v == 5.0:
            continue
        c += 1
        if v > 6.5:
            break
    if p == 2:
        return
    tl.store(o + p * 2, a)
    tl.store(o + p * 2 + 1, c.to(tl.float32))
"""


def test_a_large_loop_is_left_from_its_parts(tmp_path):
    path = tmp_path / "large.py"
    path.write_text(HEAD + "".join(STEP.format(j=j, high=j * 20 + 2) for j in range(110)) + TAIL)
    spec = importlib.util.spec_from_file_location("large", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x, wanted = (np.arange(1024) % 13).astype(np.float32), np.full(8, -1, np.float32)
    module.k[(4,)](x, wanted, 20, B=64, device="eval")
    assert wanted[1] == 7
    for check in (False, True):
        o = np.full(8, -1, np.float32)
        module.k[(4,)](x, o, 20, B=64, device="cpu", check=check)
        np.testing.assert_allclose(o, wanted, rtol=1e-4)
    assert "_part_2(" in module.k.source("c", x, wanted, 20, B=64)
