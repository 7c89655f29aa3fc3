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


class Recurrent(nn.Module):
    """An LSTM of two layers in both directions, whose weights are codes of 8 bits and one scale for each matrix."""

    def __init__(self, size, hidden):
        super().__init__()
        self.lstm = nn.LSTM(size, hidden, 2, bidirectional=True)
        self.scales = {}
        for name, weight in self.lstm.named_parameters():
            if name.startswith("weight"):
                self.scales[name] = scale = weight.data.abs().max() / 127
                weight.data = (weight.data / scale).round() * scale

    def forward(self, x):
        return self.lstm(x)[0]

    def file(self) -> bytes:
        """The same as ONNX Runtime's quantiser writes it: the other operand of a product is rounded to 8 bits, too."""
        import onnx
        from onnx import TensorProto, helper, numpy_helper

        hidden, names = self.lstm.hidden_size, ("", "_reverse")
        held, nodes, given = [], [], "x"
        keep = lambda name, value: held.append(numpy_helper.from_array(value.contiguous().numpy(), name)) or name  # noqa: E731
        # The order of gates: PyTorch has the new cell before the output's gate.
        gates = lambda w: torch.cat([w[part * hidden : (part + 1) * hidden] for part in (0, 3, 1, 2)])  # noqa: E731
        keep("shape", torch.tensor([0, 0, -1]))
        for layer in range(self.lstm.num_layers):
            operands, quantities = [], []
            for kind in ("ih", "hh"):
                of = [f"weight_{kind}_l{layer}{name}" for name in names]
                codes = [gates((getattr(self.lstm, w).data / self.scales[w]).round()).t().to(torch.int8) for w in of]
                operands.append(keep(f"{kind}{layer}", torch.stack(codes)))
                quantities.append(keep(f"{kind}{layer}.scale", torch.stack([self.scales[w] for w in of])))
                quantities.append(keep(f"{kind}{layer}.zero", torch.zeros(2, dtype=torch.int8)))
            added = [torch.cat([gates(getattr(self.lstm, f"bias_{k}_l{layer}{n}").data) for k in ("ih", "hh")]) for n in names]
            inputs = [given, *operands, keep(f"bias{layer}", torch.stack(added)), "", "", "", "", *quantities]
            of, turned, given = f"y{layer}", f"turned{layer}", f"x{layer + 1}"
            nodes.append(helper.make_node("DynamicQuantizeLSTM", inputs, [of], domain="com.microsoft", hidden_size=hidden,
                                          direction="bidirectional"))  # fmt: skip
            nodes.append(helper.make_node("Transpose", [of], [turned], perm=[0, 2, 1, 3]))
            nodes.append(helper.make_node("Reshape", [turned, "shape"], [given]))
        port = lambda name, *shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)  # noqa: E731
        size = self.lstm.input_size
        graph = helper.make_graph(nodes, "recurrent", [port("x", "steps", 1, size)], [port(given, "steps", 1, 2 * hidden)], held)
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        model: onnx.ModelProto = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        return model.SerializeToString()


def recurrent():
    """An LSTM of 8 bits over a sentence, as in models that mark vowels or read aloud."""
    size, hidden, steps = 256, 256, 64
    products = 2.0 * 2 * 4 * hidden * ((size + hidden) + 3 * hidden)

    def make():
        torch.manual_seed(0)
        return Recurrent(size, hidden).eval(), (torch.randn(steps, 1, size),)

    return Row(f"LSTM of 8 bits, 2 layers in 2 directions, {steps} steps of 256", make, flops=steps * products, unit="int8",
               tolerance=5e-2, onnx=lambda model: model.file())  # fmt: skip


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
