"""``girih.testing``: what a measurement counts, and the tables of reports."""

import csv
import statistics
import sys

import girih
import girih.testing
import numpy as np
import pytest
from girih.testing import Benchmark, do_bench, perf_report


class Clock:
    """Seconds pass only in the function that is measured: 10, 1, 2, 3, ... milliseconds."""

    def __init__(self):
        self.now, self.calls = 0.0, 0

    def perf_counter(self):
        return self.now

    def work(self):
        self.now += (10 if self.calls == 0 else self.calls) / 1e3
        self.calls += 1


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(girih.testing, "time", clock)
    return clock


def test_the_first_call_and_the_warm_up_are_not_measured(clock):
    # The first call takes 10 ms; 1 + 2 + 3 + 4 reach the warm-up's 10 ms, and 5 + 6 + 7 the measurement's 15.
    times = do_bench(clock.work, warmup=10, rep=15, return_mode="all")
    assert times == pytest.approx([5, 6, 7])


@pytest.mark.parametrize("mode, expected", [("mean", 2.5), ("median", 2.5), ("min", 1), ("max", 4)])
def test_modes(clock, mode, expected):
    assert do_bench(clock.work, warmup=0, rep=9.5, return_mode=mode) == pytest.approx(expected)


def test_quantiles_are_numpys(clock):
    found = do_bench(clock.work, warmup=0, rep=27.5, quantiles=[0.5, 0.2, 0.8])
    assert found == pytest.approx(np.quantile(np.arange(1, 8), [0.5, 0.2, 0.8]))
    assert isinstance(do_bench(clock.work, warmup=0, rep=1, quantiles=[0.5]), float)


def test_three_runs_are_measured_at_least(clock):
    assert len(do_bench(clock.work, warmup=0, rep=0, return_mode="all")) == 3


def test_a_kernel_is_measured_and_has_run():
    @girih.jit
    def scale(x, n, BLOCK: girih.constexpr):
        i = girih.arange(0, BLOCK)
        girih.store(x + i, girih.load(x + i, i < n) * 2.0, i < n)

    x = np.ones(8, np.float32)
    runs = len(do_bench(lambda: scale[(1,)](x, 8, BLOCK=8), warmup=0, rep=0, return_mode="all")) + 1
    assert (x == 2.0**runs).all()


def test_gradients_are_cleared(clock):
    class Tensor:
        grad = 1

    tensor, seen = Tensor(), []

    def work():
        seen.append(tensor.grad)
        tensor.grad = 1
        clock.work()

    do_bench(work, warmup=0, rep=0, grad_to_none=[tensor])
    assert seen and set(seen) == {None}


def test_what_a_measurement_refuses():
    with pytest.raises(TypeError, match=r"do_bench measures a function, not 3; write `do_bench\(lambda: "):
        do_bench(3)
    with pytest.raises(ValueError, match="return_mode is one of mean, median, min, max, all, not 'fast'"):
        do_bench(lambda: None, return_mode="fast")
    for quantiles in ([2], [], [-0.1]):
        with pytest.raises(ValueError, match="quantiles are numbers from 0 to 1"):
            do_bench(lambda: None, quantiles=quantiles)
    with pytest.raises(ZeroDivisionError):
        do_bench(lambda: 1 / 0)


SUMS = Benchmark(["n", "m"], [(1, 2), (10, 20), 5], "who", ["a", "b"], ["A", "The second"], "sums", {"more": 100}, ylabel="ms")


def total(n, m, who, more, extra=0):
    number = n + m + more + extra + (0.5 if who == "b" else 0)
    return (number, number - 1, number + 1) if who == "b" else number


def test_a_report_measures_rows_and_lines():
    report = perf_report(SUMS)(total)
    assert report.run() is None
    assert report.rows == [[[1, 2, 103, 103.5], [10, 20, 130, 130.5], [5, 5, 110, 110.5]]]
    report.run(extra=1000)
    assert report.rows[0][0] == [1, 2, 1103, 1103.5]
    assert report(1, 2, "a", 3) == 6


def test_a_report_is_printed_in_columns(capsys):
    perf_report([SUMS])(total).run(print_data=True)
    title, head, *rows = capsys.readouterr().out.splitlines()
    assert title == "sums (ms)" and head.split() == ["n", "m", "A", "The", "second"]
    assert [r.split() for r in rows] == [["1", "2", "103", "103.5"], ["10", "20", "130", "130.5"], ["5", "5", "110", "110.5"]]
    assert len({len(line) for line in [head, *rows]}) == 1


def test_a_report_is_saved(tmp_path):
    perf_report(SUMS)(total).run(save_path=str(tmp_path / "new"))
    with open(tmp_path / "new" / "sums.csv", newline="") as f:
        assert list(csv.reader(f))[:2] == [["n", "m", "A", "The second"], ["1", "2", "103", "103.5"]]


def test_without_matplotlib_and_pandas(monkeypatch):
    for module in ("matplotlib", "pandas"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match="show_plots needs matplotlib"):
        perf_report(SUMS)(total).run(show_plots=True)
    with pytest.raises(ImportError, match="return_df needs pandas.*`rows` has the same numbers"):
        perf_report(SUMS)(total).run(return_df=True)


def test_what_a_report_refuses():
    with pytest.raises(TypeError, match=r"x_names is a list of names: \['n'\]"):
        Benchmark("n", [1], "who", ["a"], ["A"], "t", {})
    with pytest.raises(ValueError, match="there are 2 line_vals and 1 line_names"):
        Benchmark(["n"], [1], "who", ["a", "b"], ["A"], "t", {})
    with pytest.raises(ValueError, match="has 3 values for the 2 names"):
        Benchmark(["n", "m"], [(1, 2, 3)], "who", ["a"], ["A"], "t", {})
    with pytest.raises(TypeError, match="perf_report takes a Benchmark"):
        perf_report([])
    with pytest.raises(ValueError, match="a number, or three"):
        perf_report(SUMS)(lambda **_: (1, 2)).run()


def test_the_mean_is_that_of_all(clock):
    all_times = do_bench(clock.work, warmup=0, rep=20, return_mode="all")
    clock.calls = 0
    assert do_bench(clock.work, warmup=0, rep=20) == pytest.approx(statistics.fmean(all_times))
