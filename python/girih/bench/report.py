"""Rows drawn as one page: bars of Girih's time over the others', and a roofline of each number of threads."""

from __future__ import annotations

import html
import json
import math
import sys

COLOURS = {"torch": "#c2571a", "torch.compile": "#8a6d1b", "onnxruntime": "#2a6f97", "numpy": "#5b8c5a", "jax": "#7b4b94", "triton": "#b0457b"}

STYLE = """
:root { color-scheme: light dark; --ink: #1d2127; --paper: #fff; --line: #d5d9df; --faint: #69717c; --good: #2e7d4f; --bad: #b3402a }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --paper: #15181c; --line: #363c45; --faint: #98a1ad; --good: #67c08b; --bad: #ec8069 } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto; max-width: 76rem; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2.2rem }
p, figcaption { color: var(--faint) }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th { text-align: left; font-weight: 600; border-bottom: 1px solid var(--line); padding: .2rem .5rem }
td { padding: .15rem .5rem; border-bottom: 1px solid var(--line); white-space: nowrap }
td.n { text-align: right } .good { color: var(--good) } .bad { color: var(--bad) }
svg text { fill: currentColor; font: 12px system-ui, sans-serif } svg .faint { fill: var(--faint) } svg line { stroke: var(--line) }
"""


def write(paths, output):
    """Reads the results of suites and draws them."""
    from girih.bench.__main__ import written

    reports = []
    for path in paths:
        try:
            found = json.loads(path.read_text())
            [(r["row"], r["unit"], r["median_s"], found["machine"]["limits"][str(r["threads"])]) for r in found["rows"]]
        except OSError as e:
            sys.exit(f"error: {path}: {e.strerror}")
        except (ValueError, KeyError, TypeError, AttributeError):
            sys.exit(f"error: {path} is not what a suite of `girih bench` writes")
        reports.append(found)
    written(output, page(reports))
    print(f"written to {output}")


def page(reports):
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>Girih's benchmarks</title>",
        f"<meta name='viewport' content='width=device-width'><style>{STYLE}</style><h1>Girih beside others</h1>",
        "<p>Girih's time over the best other's, measured in strict turns in one run; below 1, Girih is faster. "
        "Every result was compared with float64 first.</p>",
    ]
    for report in reports:
        machine = report["machine"]
        who = ", ".join(f"{n} {v}" for n, v in report["versions"].items())
        parts.append(f"<h2>{html.escape(machine['processor'])}</h2><p>{html.escape(who)}; medians of {report['rounds']} rounds</p>")
        for threads, limits in machine["limits"].items():
            rows = [r for r in report["rows"] if str(r["threads"]) == threads]
            if not rows:
                continue
            of = f"{threads} thread{'s' if threads != '1' else ''}" if threads != "0" else machine["gpu"]
            parts.append(f"<h2>{of}</h2><p>The machine's limit: {limits['flops'] / 1e9:.0f} Gflop/s of f32, {limits['bf16'] / 1e9:.0f} of products of bf16, {limits['int8'] / 1e9:.0f} of int8, and {limits['bytes'] / 1e9:.1f} GB/s read</p>")
            parts += [memory(limits), table(rows, limits), roofline(rows, limits)]
    return "\n".join(parts) + "\n"


def memory(limits):
    """Rates by how much memory they are of."""
    sizes = limits.get("by_size")
    if not sizes:
        return ""
    kinds = [kind for kind in sizes[0] if kind != "bytes"]
    lines = [f"<table><tr><th>GB/s, of what all threads touch{''.join(f'<th>{kind}' for kind in kinds)}"]
    for of in sizes:
        rates = "".join(f"<td class=n>{of[kind] / 1e9:.1f}" for kind in kinds)
        lines.append(f"<tr><td>{of['bytes'] / 2**20:.3g} MiB{rates}")
    return "\n".join([*lines, "</table>"])


def table(rows, limits):
    from girih.bench.__main__ import duration, fraction, others, ratio

    lines = ["<table><tr><th>row<th>ratio<th>goal<th><th>Girih<th>best other<th>of the limit<th>error"]
    for row in rows:
        times = row["median_s"]
        r = ratio(row)
        if r is None:
            why = row["absent"].get("girih", "nobody to compare with")
            lines.append(f"<tr><td>{html.escape(row['row'])}<td colspan=7 class=bad>{html.escape(why)}")
            continue
        theirs = others(row)
        best = min(theirs, key=theirs.get)
        kind = "good" if r <= row["goal"] else "bad"
        lines.append(
            f"<tr><td>{html.escape(row['row'])}<td class='n {kind}'>{r:.2f}<td class=n>{row['goal']:.1f}<td>{bars(times['girih'], theirs)}"
            f"<td class=n>{duration(times['girih'])}<td>{duration(theirs[best])} {best}"
            f"<td class=n>{fraction(row, limits):.0%}<td class=n>{row['error']['girih']:.0e}"
        )
    return "\n".join([*lines, "</table>"])


def bars(mine, others):
    """A line for each other, from the centre, where times are equal: to the right as far as Girih is slower, by powers of two."""
    high, parts = 7 * len(others) + 2, []
    for i, (who, time) in enumerate(others.items()):
        at = max(-4.0, min(4.0, math.log2(mine / time))) * 25
        x, colour = (100 + min(at, 0), COLOURS.get(who, "#888"))
        parts.append(f"<rect x='{x:.1f}' y='{7 * i + 1}' width='{max(abs(at), 0.5):.1f}' height='5' fill='{colour}'><title>{who}: {mine / time:.2f}</title></rect>")
    return f"<svg width=200 height={high} role=img><line x1=100 x2=100 y1=0 y2={high} />{''.join(parts)}</svg>"


def roofline(rows, limits):
    """Operations a second over operations a byte, both by powers of ten."""
    wide, high, left, low = 720, 300, 60, 30
    x = lambda intensity: left + (math.log10(intensity) + 1) / 4 * (wide - left - 10)  # noqa: E731
    y = lambda rate: high - low - (math.log10(rate) - 8) / 5 * (high - low - 10)  # noqa: E731
    parts = []
    for power in range(-1, 4):
        parts.append(f"<line x1={x(10**power):.0f} x2={x(10**power):.0f} y1=10 y2={high - low} /><text x={x(10**power):.0f} y={high - 12} text-anchor=middle class=faint>{10.0**power:g}</text>")
    for power in range(8, 14):
        parts.append(f"<line x1={left} x2={wide - 10} y1={y(10**power):.0f} y2={y(10**power):.0f} /><text x={left - 6} y={y(10**power) + 4:.0f} text-anchor=end class=faint>{10.0 ** (power - 9):g}</text>")
    corner = limits["flops"] / limits["bytes"]
    roof = [(0.1, 0.1 * limits["bytes"]), (corner, limits["flops"]), (1000, limits["flops"])]
    points = " ".join(f"{x(i):.1f},{y(r):.1f}" for i, r in roof)
    parts.append(f"<polyline points='{points}' fill=none stroke=currentColor stroke-width=1.5 />")
    seen = [r for r in rows if r["flops"] and r["unit"] == "flops" and "girih" in r["median_s"]]
    for row in seen:
        intensity, rate = row["flops"] / row["bytes"], row["flops"] / row["median_s"]["girih"]
        inside = min(max(intensity, 0.1), 1000), min(max(rate, 1e8), 1e13)
        parts.append(f"<circle cx={x(inside[0]):.1f} cy={y(inside[1]):.1f} r=4 fill='#2a6f97'><title>{html.escape(row['row'])}: {rate / 1e9:.1f} Gflop/s</title></circle>")
    if not seen:
        return ""
    return (f"<figure><svg width={wide} height={high} role=img>{''.join(parts)}</svg>"
            "<figcaption>Gflop/s of f32 over operations a byte; the line is the machine's limit</figcaption></figure>")  # fmt: skip
