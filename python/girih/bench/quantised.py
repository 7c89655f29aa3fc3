"""Products with weights of a few bits: ONNX files, which Girih and ONNX Runtime load."""

from __future__ import annotations

import torch
from torch import nn

from girih.bench.suites import Row

#: Weights that have a scale in common.
BLOCK = 32


class FewBits(nn.Module):
    """A product with codes `[n, k/BLOCK, BLOCK*bits/8]` of weights, the lower bits first, and scales `[n, k/BLOCK]`."""

    def __init__(self, n, k, bits):
        super().__init__()
        torch.manual_seed(0)
        self.bits = bits
        self.codes = torch.randint(0, 256, (n, k // BLOCK, BLOCK * bits // 8), dtype=torch.uint8)
        self.scales = nn.Buffer((torch.rand(n, k // BLOCK) + 0.5) / 2**bits)

    def forward(self, x):
        parts = [(self.codes >> at) & (2**self.bits - 1) for at in range(0, 8, self.bits)]
        codes = torch.stack(parts, -1).flatten(-2)
        weights = (codes.to(x.dtype) - 2 ** (self.bits - 1)) * self.scales.unsqueeze(-1)
        return x @ weights.flatten(1).t()

    def file(self, rows, accuracy) -> bytes:
        """The same as an ONNX file; at accuracy level 4 a runtime may round `x` to 8 bits."""
        import onnx
        from onnx import TensorProto, helper, numpy_helper

        n, blocks, _ = self.codes.shape
        k = blocks * BLOCK
        node = helper.make_node(
            "MatMulNBits", ["x", "codes", "scales"], ["y"], domain="com.microsoft",
            K=k, N=n, bits=self.bits, block_size=BLOCK, accuracy_level=accuracy,
        )  # fmt: skip
        port = lambda name, *shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)  # noqa: E731
        weights = [numpy_helper.from_array(x.numpy(), name) for x, name in ((self.codes, "codes"), (self.scales, "scales"))]
        graph = helper.make_graph([node], "product", [port("x", rows, k)], [port("y", rows, n)], weights)
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        model: onnx.ModelProto = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        return model.SerializeToString()


def rows():
    n = k = 2048
    for bits in (4, 8):
        for accuracy in (0, 4):
            for count in (1, 4, 128):
                yield Row(
                    f"{count}x{k} by {k}x{n} of {bits} bits" + (", rounded" if accuracy else ""),
                    lambda count=count, bits=bits: (FewBits(n, k, bits), (torch.randn(count, k),)),
                    flops=2.0 * count * n * k,
                    bytes=n * k * bits / 8 + n * k / BLOCK * 4 + 4.0 * count * (n + k),
                    tolerance=2e-2 if accuracy else 1e-4,
                    onnx=lambda model, count=count, accuracy=accuracy: model.file(count, accuracy),
                    without={"torch": "it unpacks the weights at each call"},
                )
