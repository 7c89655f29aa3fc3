"""The suites of `girih bench` compile their models for everyone who takes part."""

from girih.bench import contestants, measure, suites


def test_dynamo_sees_the_models():
    """Dynamo leaves out the package, and the models are in it: neither inductor nor a training step would compile."""
    row = next(suites.launch())
    found = measure.row(row, ["girih", "torch", "torch.compile"], 1, 1)
    assert found["absent"] == {} and set(found["median_s"]) == {"girih", "torch", "torch.compile"}, found


def test_the_ratio_leaves_out_girih_itself():
    from girih.bench.__main__ import ratio

    assert ratio({"median_s": {"girih": 2.0, "girih.jit": 1.0, "torch": 4.0}}) == 0.5
    assert set(contestants.MAKERS) == set(contestants.ALL)
