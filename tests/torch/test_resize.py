"""Resampling with extents that are symbols, against PyTorch: in kernels, with PyTorch's values and strides."""

import warnings

import pytest
import torch
import torch.nn.functional as F

import girih.torch


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    girih.torch._partition._warned.clear()
    girih.torch.report(clear=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def to_others(mode, **more):
    return lambda x: F.interpolate(x, size=(x.shape[2] * 2 + 1, x.shape[3] // 2 + 1), mode=mode, **more)


def to_fixed(mode, **more):
    return lambda x: F.interpolate(x, size=(4, 9), mode=mode, **more)


def by(factor, mode, **more):
    return lambda x: F.interpolate(x, scale_factor=factor, mode=mode, **more)


FUNCTIONS = {
    **{f"{mode} to others": to_others(mode) for mode in ("nearest", "bilinear")},
    "nearest to fixed": to_fixed("nearest"),
    "nearest by 2": by(2, "nearest"),
    "bilinear by 1.5": by(1.5, "bilinear"),
    "bilinear, corners": by(2, "bilinear", align_corners=True),
    "bilinear, antialias to others": to_others("bilinear", antialias=True),
    **{f"{mode}, antialias by 0.4": by(0.4, mode, antialias=True) for mode in ("bilinear", "bicubic")},
    "nearest of one axis": lambda x: F.interpolate(x[0], size=x.shape[3] + 3, mode="nearest"),
    "linear of one axis": lambda x: F.interpolate(x[0], scale_factor=2, mode="linear"),
}


def place(value):
    return value.dtype, value.shape, value.stride()


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_unknown_extents(layout):
    """All functions as one, so that one refusal would show."""
    run = torch.compile(lambda x: {n: f(x) for n, f in FUNCTIONS.items()}, backend="girih", dynamic=True, options={"device": "eval"})
    with torch.no_grad():
        for size in ((2, 3, 8, 10), (2, 3, 5, 6)):
            x = torch.randn(size).to(memory_format=layout)
            for name, given in run(x).items():
                wanted = FUNCTIONS[name](x)
                assert place(given) == place(wanted), f"{name} of {size}: {place(given)}, not {place(wanted)}"
                torch.testing.assert_close(given, wanted, rtol=1e-4, atol=1e-5, msg=lambda m, n=name: f"{n}: {m}")
    report = girih.torch.report()
    assert report.native and not [graph for graph in report.graphs if graph.left], str(report)


def test_known_extents_stay_whole(monkeypatch):
    """Where Girih has constant weights."""
    graphs, build = [], girih.torch._backend.build
    monkeypatch.setattr(girih.torch._backend, "build", lambda module, *rest: graphs.append(module) or build(module, *rest))
    run = torch.compile(lambda x: (by(2, "bilinear")(x), by(2, "nearest")(x)), backend="girih", dynamic=False)
    with torch.no_grad():
        run(torch.randn(1, 2, 4, 4))
    names = [getattr(node.target, "_opname", None) for node in graphs[0].graph.nodes]
    assert {"upsample_bilinear2d", "upsample_nearest2d"} <= set(names), names
