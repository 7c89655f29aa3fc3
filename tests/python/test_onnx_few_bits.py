"""`MatMulNBits` with rows that are rounded to 8 bits (`accuracy_level` 4), against ONNX's formula: integers as the formula rounds them,
products of integers, and sums in float64."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import girih

RNG = np.random.default_rng(7)


class Product:
    """A file with weights of a few bits, and its result by the formula."""

    def __init__(self, k, n, bits=4, block=32, zero=None, bias=False, dtype=np.float32, accuracy=4):
        blocks = -(-k // block)
        self.k, self.n, self.bits, self.block, self.dtype = k, n, bits, block, dtype
        self.codes = RNG.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8)
        self.scales = ((RNG.random((n, blocks)) + 0.5) / 2**bits).astype(dtype)
        self.zero = None
        if zero == "codes":
            self.zero = RNG.integers(0, 256, (n, -(-blocks * bits // 8))).astype(np.uint8)
        elif zero == "floats":
            self.zero = (RNG.random((n, blocks)) * 2**bits).astype(dtype)
        self.bias = RNG.standard_normal(n).astype(dtype) if bias else None
        self.accuracy = accuracy

    def file(self, *rows):
        weights = {"codes": self.codes, "scales": self.scales.ravel()}
        weights |= {} if self.zero is None else {"zero": self.zero.ravel()}
        weights |= {} if self.bias is None else {"bias": self.bias}
        names = ["codes", "scales", "zero" if "zero" in weights else "", "", "bias" if "bias" in weights else ""]
        node = helper.make_node(
            "MatMulNBits", ["x", *names], ["y"], domain="com.microsoft",
            K=self.k, N=self.n, bits=self.bits, block_size=self.block, accuracy_level=self.accuracy,
        )  # fmt: skip
        elem = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        ports = [helper.make_tensor_value_info(name, elem, [*rows, last]) for name, last in (("x", self.k), ("y", self.n))]
        initial = [numpy_helper.from_array(array, name) for name, array in weights.items()]
        graph = helper.make_graph([node], "product", ports[:1], ports[1:], initial)
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()

    def numbers(self, packed, count):
        """Numbers of a few bits, the lower ones of a byte first."""
        parts = [(packed >> at) & (2**self.bits - 1) for at in range(0, 8, self.bits)]
        return np.stack(parts, -1).reshape(self.n, -1)[:, :count].astype(np.int64)

    def result(self, x):
        """The result, and the sum of the magnitudes of its terms: of sums of 32 products."""
        blocks = self.scales.shape[1]
        rows = np.zeros((*x.shape[:-1], blocks * self.block), np.float32)
        rows[..., : self.k] = x
        rows = rows.reshape(*x.shape[:-1], blocks, self.block)
        unit = np.abs(rows).max(-1, keepdims=True) / np.float32(127)
        with np.errstate(divide="ignore"):
            inverse = np.where(unit == 0, np.float32(0), np.float32(1) / unit)
        q = np.rint(rows * inverse).astype(np.int64)
        codes = self.numbers(self.codes.reshape(self.n, -1), blocks * self.block).reshape(self.n, blocks, self.block)
        zero = np.full((self.n, blocks), 2.0 ** (self.bits - 1))
        if self.zero is not None:
            zero = self.numbers(self.zero, blocks) if self.zero.dtype == np.uint8 else self.zero
        width = min(self.block, 32)
        parts = lambda x: x.reshape(*x.shape[:-1], self.block // width, width)  # noqa: E731
        q, codes, zero = parts(q), parts(codes), zero.astype(np.float64)[..., None]
        products = np.einsum("...bpl,nbpl->...nbp", q, codes) - q.sum(-1)[..., None, :, :] * zero
        terms = products * (unit[..., None, :, :].astype(np.float64) * self.scales.astype(np.float64)[..., None])
        bias = 0 if self.bias is None else self.bias.astype(np.float64)
        return terms.sum((-2, -1)) + bias, np.abs(terms).sum((-2, -1))

    def check(self, x, **options):
        y = girih.Model.from_onnx(self.file(*x.shape[:-1]), **options)(x)
        wanted, size = self.result(x)
        assert y.dtype == self.dtype and y.shape == wanted.shape
        # The sum of a few blocks in float32, and a result of 16 bits.
        unit = 2.0**-21 if self.dtype == np.float32 else 2.0**-10
        assert np.all(np.abs(y - wanted) <= unit * (size + np.abs(wanted)) + 1e-30)


def rows_of(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("block", [16, 32, 64, 128, 256])
@pytest.mark.parametrize("rows", [1, 3, 4])
def test_blocks(bits, block, rows):
    Product(1024, 96, bits, block).check(rows_of(rows, 1024))


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zero", ["codes", "floats"])
@pytest.mark.parametrize(("k", "n", "block"), [(512, 33, 32), (300, 7, 32), (40, 6, 16), (200, 5, 128), (17, 1, 16), (1, 2, 16)])
def test_zero_points_and_rows_that_end_within_a_block(bits, zero, k, n, block):
    Product(k, n, bits, block, zero, bias=True).check(rows_of(2, 3, k))


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("rows", [1, 2, 5, 7, 8, 12, 13, 130])
@pytest.mark.parametrize("threads", [1, 2])
def test_rows_and_threads(bits, rows, threads):
    # Enough of them that weights are unpacked in registers.
    Product(1024, 520, bits, 32, "codes").check(rows_of(rows, 1024), threads=threads)


@pytest.mark.parametrize("bits", [4, 8])
def test_a_number_of_rows_that_changes(bits):
    product = Product(1024, 520, bits)
    model = girih.Model.from_onnx(product.file("batch", "rows"))
    for shape in ((1, 1), (2, 3), (1, 64), (0, 5)):
        x = rows_of(*shape, 1024)
        wanted, size = product.result(x)
        assert np.all(np.abs(model(x) - wanted) <= 2.0**-21 * (size + 1))


@pytest.mark.parametrize("bits", [4, 8])
def test_rows_of_16_bits(bits):
    Product(256, 40, bits, dtype=np.float16, zero="codes", bias=True).check(rows_of(3, 256, dtype=np.float16))


def test_rows_of_zeros_of_great_and_of_small_numbers():
    product = Product(128, 24)
    x = rows_of(6, 128)
    x[0] = 0
    x[1, :32] = 0
    x[2] *= 1e30
    x[3] *= 1e-30
    x[4, 64:96] *= 1e6
    product.check(x)
    # The reciprocal of the unit is infinite: nothing is, in the result.
    x[5] *= np.float32(1e-39)
    y = girih.Model.from_onnx(product.file(6))(x)
    assert np.all(np.isfinite(y)) and np.abs(y[5]).max() < 1e-36


def test_numbers_that_are_not_finite():
    product = Product(128, 8)
    x = rows_of(3, 128)
    x[0, 5], x[1, 70] = np.nan, np.inf
    y = girih.Model.from_onnx(product.file(3))(x)
    assert np.all(np.isnan(y[:2])) and np.all(np.isfinite(y[2]))


def test_other_levels_round_nothing():
    product = Product(512, 48, accuracy=1)
    x = rows_of(4, 512)
    exact = girih.Model.from_onnx(product.file(4))(x)
    weights = (product.numbers(product.codes.reshape(48, -1), 512) - 8) * np.repeat(product.scales.astype(np.float64), 32, 1)
    np.testing.assert_allclose(exact, x @ weights.T, atol=1e-4)
    product.accuracy = 4
    rounded = girih.Model.from_onnx(product.file(4))(x)
    assert 1e-4 < np.abs(rounded - exact).max() < 0.2


def test_arrays_by_name_and_in_order_give_the_same():
    product = Product(64, 6)
    model = girih.Model.from_onnx(product.file("rows"))
    for rows in (1, 1, 3, 3, 1):
        x = rows_of(rows, 64)
        (y,) = model.run(None, {"x": x})
        np.testing.assert_array_equal(y, model(x))
        np.testing.assert_array_equal(model.run(["y"], {"x": x.copy()})[0], y)
    with pytest.raises(girih.ProgramError, match="no input `z`"):
        model.run(None, {"z": rows_of(1, 64)})


def test_devices_agree():
    product = Product(96, 10, 4, 32, "codes")
    x = rows_of(2, 96)
    for device in ("cpu", "eval", "sim"):
        product.check(x, device=device)
