"""Compares the simulator's counts with Nsight Compute's on a GPU: sectors of global memory, wavefronts of shared memory.

    python tests/counted.py target/release/girih [--filter TEXT]

Needs a GPU of sm_90a and `ncu`. For each kernel, compares the sectors of its loads and stores and the wavefronts of its accesses of
shared memory. The copies of TMA and the operands of `wgmma`, which those counters leave out, are left out of the simulator's
counts, too.
"""

import argparse
import csv
import io
import json
import os
import shlex
import shutil
import subprocess
import sys

HALF = "dtype=torch.float16"
MODELS = [
    "torch.randn(512, 512).transpose(0, 1).contiguous()",
    "torch.randn(500, 333).transpose(0, 1).contiguous()",
    "torch.softmax(torch.randn(64, 1000), dim=1)",
    "torch.sum(torch.randn(512, 512), dim=0)",
    "torch.sum(torch.randn(512, 512), dim=1)",
    "torch.nn.LayerNorm(768)(torch.randn(64, 768))",
    "torch.exp(torch.randn(64, 1000))",
    f"torch.exp(torch.randn(1 << 16, {HALF}))",
    "torch.randn(64, 64, 3)[:, :, 1] * 2",
    "torch.cumsum(torch.randn(8, 1000), 1)",
    "torch.sort(torch.randn(8, 512))[0]",
    "torch.randn(128, 128) @ torch.randn(128, 128)",
    f"torch.randn(128, 256, {HALF}) @ torch.randn(256, 128, {HALF})",
    f"torch.nn.functional.scaled_dot_product_attention(torch.randn(1, 2, 128, 64, {HALF}), torch.randn(1, 2, 128, 64, {HALF}), torch.randn(1, 2, 128, 64, {HALF}))",
    "torch.nn.Conv2d(16, 16, 3, padding=1)(torch.randn(1, 16, 28, 28))",
]
KNOBS = [
    ("torch.randn(128, 128) @ torch.randn(128, 128)", "pad_smem=0"),
    (f"torch.randn(128, 256, {HALF}) @ torch.randn(256, 128, {HALF})", "wgmma=0"),
    (f"torch.randn(128, 256, {HALF}) @ torch.randn(256, 128, {HALF})", "tma=0"),
    (f"torch.randn(128, 256, {HALF}) @ torch.randn(256, 128, {HALF})", "tensor_core=0"),
]

METRICS = {
    "sectors": ["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"],
    "wavefronts": ["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"],
}


def simulated(girih, what):
    """The simulator's counts for each kernel, in the order of the launches."""
    done = subprocess.run([girih, "sim", *what, "--seed", "0", "--json"], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise ValueError(f"girih sim: {done.stderr.strip()[-400:]}")
    found = []
    for kernel in json.loads(done.stdout)["schedules"][0]["kernels"]:
        by_threads = [s for s in kernel["statements"] if s["kind"] != "matrix" and not s["statement"]["text"].startswith("copy tensor")]
        total = lambda space, what: sum(s[space][what] for s in by_threads)  # noqa: E731, B023
        found.append((kernel["kernel"], {"sectors": total("global", "sectors"), "wavefronts": total("shared", "wavefronts")}))
    return found


def measured(girih, what, ncu):
    """The counters' values for each launch."""
    names = [m for group in METRICS.values() for m in group]
    command = [ncu, "--clock-control", "none", "--csv", "--print-units", "base", "--metrics", ",".join(names)]
    done = subprocess.run([*command, girih, "run", *what, "--device", "cuda"], capture_output=True, text=True, timeout=300)
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    launches = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        launch = launches.setdefault(row["ID"], (row["Kernel Name"].split("(")[0], {}))
        launch[1][row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    if not launches:
        raise ValueError(f"ncu: {(done.stdout + done.stderr).strip()[-400:]}")
    return [(kernel, {what: sum(read.get(m, 0) for m in group) for what, group in METRICS.items()}) for kernel, read in launches.values()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("girih")
    parser.add_argument("--filter", default="", help="count the models whose text has this")
    parser.add_argument("--ncu", default="ncu")
    args = parser.parse_args()
    if shutil.which(args.ncu) is None:
        sys.exit(f"error: there is no `{args.ncu}`, which reads the counters; Nsight Compute brings it, and --ncu names another")
    os.environ.setdefault("GIRIH_TARGET", "sm_90a")
    cases = [(model, "") for model in MODELS] + KNOBS
    same = apart = failed = 0
    for model, knob in cases:
        if args.filter not in model:
            continue
        what = ["-c", model, *(["--knob", knob] if knob else [])]
        print(model + (f" with {knob}" if knob else ""), flush=True)
        try:
            counts, reads = simulated(args.girih, what), measured(args.girih, what, args.ncu)
        except (ValueError, OSError, subprocess.TimeoutExpired) as e:
            failed += 1
            print(f"  {e}\n  {shlex.join(what)}")
            continue
        # A run may launch the model again, to be timed: the first launches are those that are counted.
        for (kernel, predicted), (name, read) in zip(counts, reads):
            for count, number in predicted.items():
                equal = number == read[count]
                same, apart = same + equal, apart + (not equal)
                note = "" if equal else f"  ({number / read[count]:.3f} of it)" if read[count] else "  (none were read)"
                print(f"  {kernel:24} {count:10} {number:10.0f} predicted {read[count]:10.0f} read{note}{'' if name == kernel else ' in ' + name}")
    print(f"{same} counts are equal, {apart} differ; {failed} models could not be counted")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
