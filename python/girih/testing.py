"""Times of kernels, and tables of them.

    import girih.testing

    ms = girih.testing.do_bench(lambda: add[grid](x, y, out, n, BLOCK=1024))

    @girih.testing.perf_report(girih.testing.Benchmark(
        x_names=["n"], x_vals=[2**k for k in range(12, 24)], line_arg="who", line_vals=["girih", "numpy"],
        line_names=["Girih", "NumPy"], plot_name="add", ylabel="GB/s", args={}))
    def bandwidth(n, who): ...
    bandwidth.run(print_data=True)

In: a function without arguments, or a function of the names of a `Benchmark`. Out: milliseconds, or a table with a row for each
`x` and a column for each line; pictures where matplotlib is installed. The names are those of Triton's module, so that its
programs measure the same.

Invariants: the first call, which compiles, is never measured; a function that raises ends the measurement.
"""

from __future__ import annotations

import csv
import dataclasses
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

__all__ = ["Benchmark", "Report", "do_bench", "perf_report"]

# A measurement has this number of runs at least.
LEAST_RUNS = 3
# The width of a column of numbers.
NUMBER = 9

MODES: dict[str, Callable[[list[float]], Any]] = {
    "mean": statistics.fmean, "median": statistics.median, "min": min, "max": max, "all": list,
}  # fmt: skip


def do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Iterable[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """The milliseconds that a function takes, of warm caches.

    Args:
        fn: it is called without arguments; a launch has ended when it returns.
        warmup, rep: the milliseconds to run it before the measurement, and in it; at least three runs are measured.
        grad_to_none: tensors whose `grad` is set to None before each run.
        quantiles: numbers from 0 to 1; the result is a list with the time at each, a number where there is one.
        return_mode: without `quantiles`, "mean", "median", "min", "max", or "all" for the list of times.

    Example:
        >>> ms = girih.testing.do_bench(lambda: add[(1,)](x, y, out, n, BLOCK=1024), warmup=1, rep=2, return_mode="median")
        >>> ms > 0
        True
    """
    if not callable(fn):
        raise TypeError(f"do_bench measures a function, not {fn!r}; write `do_bench(lambda: kernel[grid](...))`")
    if return_mode not in MODES:
        raise ValueError(f"return_mode is one of {', '.join(MODES)}, not {return_mode!r}")
    if quantiles is not None and not (len(quantiles) and all(0 <= q <= 1 for q in quantiles)):
        raise ValueError(f"quantiles are numbers from 0 to 1, not {quantiles!r}")
    tensors = list(grad_to_none or ())
    one(fn, tensors)
    spent = 0.0
    while spent < warmup:
        spent += one(fn, tensors)
    times: list[float] = []
    spent = 0.0
    while len(times) < LEAST_RUNS or spent < rep:
        times.append(one(fn, tensors))
        spent += times[-1]
    if quantiles is None:
        return MODES[return_mode](times)
    found = [quantile(times, q) for q in quantiles]
    return found[0] if len(found) == 1 else found


def one(fn: Callable[[], Any], tensors: list[Any]) -> float:
    """The milliseconds of one run, the work that it leaves on a GPU included."""
    for tensor in tensors:
        tensor.grad = None
    wait()
    start = time.perf_counter()
    fn()
    wait()
    return (time.perf_counter() - start) * 1e3


def wait() -> None:
    """Waits for a GPU that PyTorch uses; launches on a stream of it only begin."""
    # Only a PyTorch that has work on a GPU has imported this; a folder of the name `torch` never does.
    cuda = sys.modules.get("torch.cuda")
    if cuda is not None and cuda.is_available() and cuda.is_initialized():
        cuda.synchronize()


def quantile(times: list[float], at: float) -> float:
    """The time below which the share `at` of the times lies, between two of them where it must."""
    ordered = sorted(times)
    place = at * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


@dataclasses.dataclass
class Benchmark:
    """The rows and the columns of a report.

    Args:
        x_names: the arguments that a row gives its value to.
        x_vals: a value for each row: one for all names, or a tuple with one for each.
        line_arg: the argument that a column gives its value to.
        line_vals, line_names: a value for each column, and its heading.
        plot_name: the title, and the name of files.
        args: other arguments, the same in the whole table.
        xlabel, ylabel, x_log, y_log, styles: of the picture.

    Example:
        >>> b = girih.testing.Benchmark(["n"], [1, 2], "who", ["a"], ["A"], "sizes", {})
        >>> b.x_vals
        [1, 2]
    """

    x_names: list[str]
    x_vals: list[Any]
    line_arg: str
    line_vals: list[Any]
    line_names: list[str]
    plot_name: str
    args: dict[str, Any] = dataclasses.field(default_factory=dict)
    xlabel: str = ""
    ylabel: str = ""
    x_log: bool = False
    y_log: bool = False
    styles: list[tuple[str, str]] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.x_names, str):
            raise TypeError(f"x_names is a list of names: [{self.x_names!r}]")
        self.x_vals, self.line_vals = list(self.x_vals), list(self.line_vals)
        if len(self.line_vals) != len(self.line_names):
            raise ValueError(f"there are {len(self.line_vals)} line_vals and {len(self.line_names)} line_names")
        for x in self.x_vals:
            if isinstance(x, (tuple, list)) and len(x) != len(self.x_names):
                raise ValueError(f"{x!r} of x_vals has {len(x)} values for the {len(self.x_names)} names of x_names")

    def row(self, x: Any) -> list[Any]:
        """The value of each name in a row."""
        return list(x) if isinstance(x, (tuple, list)) else [x] * len(self.x_names)


class Report:
    """A function under `perf_report`; called, it is the function.

    Attributes:
        fn: the function, which gives a number, or three: the number, and the least and the greatest.
        benchmarks: the tables.
        rows: after `run`, for each benchmark its rows: the values of `x_names`, then the number of each line.
    """

    def __init__(self, fn: Callable, benchmarks: list[Benchmark]):
        self.fn = fn
        self.benchmarks = benchmarks
        self.rows: list[list[list[Any]]] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)

    def run(
        self, show_plots: bool = False, print_data: bool = False, save_path: str = "", return_df: bool = False, **kwargs: Any
    ) -> Any:
        """Measures every row and every line.

        Args:
            show_plots: shows pictures; needs matplotlib.
            print_data: prints the tables, a row at a time.
            save_path: a folder for `PLOT_NAME.csv`, and `PLOT_NAME.png` where matplotlib is installed.
            return_df: returns the tables as pandas has them: one for one benchmark, else a list.
            kwargs: more arguments of the function.

        Example:
            >>> b = girih.testing.Benchmark(["n"], [1, 2], "k", [10, 20], ["ten", "twenty"], "products")
            >>> girih.testing.perf_report(b)(lambda n, k: n * k).run(print_data=True)
            products
            n        ten     twenty
            1         10         20
            2         20         40
        """
        plots = pyplot() if show_plots or save_path else None
        if show_plots and plots is None:
            raise ImportError("show_plots needs matplotlib: `pip install matplotlib`")
        if return_df:
            try:
                import pandas
            except ImportError:
                raise ImportError("return_df needs pandas: `pip install pandas`; `rows` has the same numbers") from None
        self.rows, frames = [], []
        for benchmark in self.benchmarks:
            rows, spreads = self._measure(benchmark, kwargs, print_data)
            self.rows.append(rows)
            head = [*benchmark.x_names, *benchmark.line_names]
            if save_path:
                os.makedirs(save_path, exist_ok=True)
                with open(os.path.join(save_path, f"{benchmark.plot_name}.csv"), "w", newline="") as f:
                    csv.writer(f).writerows([head, *rows])
            if plots is not None and rows:
                draw(plots, benchmark, rows, spreads)
                if save_path:
                    plots.savefig(os.path.join(save_path, f"{benchmark.plot_name}.png"))
                if show_plots:
                    plots.show()
                plots.close()
            if return_df:
                frames.append(pandas.DataFrame(rows, columns=head))
        if return_df:
            return frames[0] if len(frames) == 1 else frames
        return None

    def _measure(self, benchmark: Benchmark, kwargs: dict[str, Any], shown: bool) -> tuple[list[list[Any]], list[list[Any]]]:
        """The rows of a table, and for each number its least and greatest, or None."""
        rows, spreads = [], []
        table = Table([*benchmark.x_names, *benchmark.line_names], benchmark)
        if shown:
            print(benchmark.plot_name + (f" ({benchmark.ylabel})" if benchmark.ylabel else ""))
            print(table.line(table.head), flush=True)
        for x in benchmark.x_vals:
            values = benchmark.row(x)
            numbers, between = [], []
            for line in benchmark.line_vals:
                given = {**dict(zip(benchmark.x_names, values)), benchmark.line_arg: line}
                found = self.fn(**given, **benchmark.args, **kwargs)
                several = isinstance(found, (tuple, list))
                if several and len(found) != 3:
                    raise ValueError(f"the function gives a number, or three: it, the least and the greatest; not {found!r}")
                numbers.append(found[0] if several else found)
                between.append(tuple(found[1:]) if several else None)
            rows.append([*values, *numbers])
            spreads.append(between)
            if shown:
                print(table.line(rows[-1]), flush=True)
        return rows, spreads


class Table:
    """Lines of columns that are aligned to the right, though later rows are not known yet."""

    def __init__(self, head: list[str], benchmark: Benchmark):
        self.head = head
        known = [[str(v) for v in benchmark.row(x)] for x in benchmark.x_vals]
        first = [max(map(len, column)) for column in zip(*known)] if known else [0] * len(benchmark.x_names)
        widths = [*first, *[NUMBER] * (len(head) - len(first))]
        self.widths = [max(len(h), w) for h, w in zip(head, widths)]

    def line(self, values: list[Any]) -> str:
        return "  ".join(spell(v).rjust(w) for v, w in zip(values, self.widths))


def spell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def pyplot() -> Any:
    """The module of matplotlib, if it is installed."""
    try:
        from matplotlib import pyplot
    except ImportError:
        return None
    return pyplot


def draw(plots: Any, benchmark: Benchmark, rows: list[list[Any]], spreads: list[list[Any]]) -> None:
    """A line for each of the benchmark's, over the first of its names."""
    _, axes = plots.subplots()
    xs = [row[0] for row in rows]
    for i, name in enumerate(benchmark.line_names):
        color, style = (*(benchmark.styles or [])[i : i + 1], (None, "-"))[0]
        ys = [row[len(benchmark.x_names) + i] for row in rows]
        (drawn,) = axes.plot(xs, ys, label=name, color=color, linestyle=style)
        if all(s[i] is not None for s in spreads):
            axes.fill_between(xs, [s[i][0] for s in spreads], [s[i][1] for s in spreads], alpha=0.15, color=drawn.get_color())
    axes.set_title(benchmark.plot_name)
    axes.set_xlabel(benchmark.xlabel or benchmark.x_names[0])
    axes.set_ylabel(benchmark.ylabel)
    axes.set_xscale("log" if benchmark.x_log else "linear")
    axes.set_yscale("log" if benchmark.y_log else "linear")
    axes.legend()


def perf_report(benchmarks: Benchmark | Sequence[Benchmark]) -> Callable[[Callable], Report]:
    """Makes a function of a row's and a column's values a report, whose `run` measures all of them.

    Example:
        >>> @girih.testing.perf_report(girih.testing.Benchmark(["n"], [3], "k", [2], ["twice"], "doubled"))
        ... def product(n, k):
        ...     return n * k
        >>> product.run()
        >>> product.rows
        [[[3, 6]]]
    """
    several = [benchmarks] if isinstance(benchmarks, Benchmark) else benchmarks
    if not isinstance(several, (list, tuple)) or not several or not all(isinstance(b, Benchmark) for b in several):
        raise TypeError(f"perf_report takes a Benchmark or a list of them, not {benchmarks!r}")
    return lambda fn: Report(fn, list(several))
