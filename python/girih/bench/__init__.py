"""Benchmarks of models beside PyTorch, ONNX Runtime, NumPy and JAX: ``python -m girih.bench SUITE``.

A row is one piece of work with data of its own. Who takes part runs it in strict turns, on as many threads each, and the
figure is the median of the turns; before that, every result is compared with one in float64.
"""
