"""The kernels in Rust are compared with the Tile IR of their twins in Python: this is it."""

import pytest
import rust_twins


@pytest.mark.parametrize("name, text", list(rust_twins.texts()), ids=lambda v: v if len(v) < 20 else "")
def test_twin(name, text):
    kept = (rust_twins.TWINS / f"{name}.mlir").read_text()
    assert kept == rust_twins.without_places(text), "run `python tests/python/rust_twins.py`"
