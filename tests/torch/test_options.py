"""Options and modes that code written for inductor gives: mapped or ignored, said once; what nobody knows is an error."""

import warnings

import pytest
import torch

import girih.torch
from girih.torch import _options


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    _options._said.clear()


def run(**given):
    """The warnings of a compiled function."""
    x = torch.arange(4.0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for function in (lambda x: x * 2, lambda x: x + 1):
            assert torch.equal(torch.compile(function, backend="girih", **given)(x), function(x))
    return [str(w.message) for w in said if str(w.message).startswith("girih: ")]


@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"])
def test_modes(mode):
    said = run(mode=mode)
    assert len(said) == (mode != "default") and all(f"mode='{mode}' changes nothing: " in text for text in said)


def test_options_of_inductor():
    said = run(options={"triton.cudagraphs": True, "max_autotune": True, "epilogue-fusion": True, "device": "eval"})
    names = ["'triton.cudagraphs'", "'max_autotune'", "'epilogue_fusion'"]
    assert len(said) == 3 and all(f"the option {name} is one of inductor's" in text for name, text in zip(names, said))


def test_options_that_girih_has_too():
    assert _options.taken({"freezing": True, "cpp.threads": 2}) == {"freeze": True, "threads": 2}
    assert _options.taken({"freezing": False, "cpp.threads": -1, "threads": 3}) == {"freeze": False, "threads": 3}
    assert _options.taken(None) == {}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mode": "fast"}, "girih has no mode 'fast'; the modes are default, reduce-overhead"),
        ({"options": {"treads": 2}}, "girih has no option `treads`; the options are cache, check, device, freeze"),
        ({"options": {"freeze": 1}}, "the option `freeze` is True or False, not 1"),
        ({"options": {"device": "tpu"}}, "tpu"),
    ],
)
def test_what_nobody_knows(given, message):
    with pytest.raises(Exception, match=message):
        torch.compile(lambda x: x * 2, backend="girih", **given)(torch.ones(2))


def test_exported_models_take_girihs_own():
    with pytest.raises(girih.GirihError, match="girih has no option `max_autotune`"):
        girih.torch.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),), max_autotune=True)
