"""The tests that a machine with a GPU adds: kernels run by the driver, and compared.

    python tests/on_gpu.py target/release/girih [--filter TEXT] [--device cuda] [--jobs N]

The cases of `tests/simulated.py`, and models of the sizes that GPUs are for, run with `--device cuda` and are compared with the
reference evaluator: integers exactly, floats within the bound of `--verify`, since a GPU's matrix unit adds in an order of its own.
"""

import argparse
import concurrent.futures
import os
import shlex
import subprocess
import sys
import time

import simulated

# Large enough for several waves of blocks and full pipelines; extents that divide nothing beside those that do.
HALF = "dtype=torch.float16"
LARGE = [
    f"torch.randn(512, 2048, {HALF}) @ torch.randn(2048, 2048, {HALF})",
    f"torch.nn.functional.gelu(torch.nn.Linear(1024, 1000).half()(torch.randn(900, 1024, {HALF})))",
    "torch.randn(2048, 1024, dtype=torch.bfloat16) @ torch.randn(1024, 2048, dtype=torch.bfloat16)",
    f"torch.randn(1000, 520, {HALF}).transpose(0, 1) @ torch.randn(1000, 776, {HALF})",
    f"torch.matmul(torch.randn(16, 512, 64, {HALF}), torch.randn(16, 64, 512, {HALF}))",
    f"torch.randn(2, 4096, {HALF}) @ torch.randn(4096, 4096, {HALF})",
    f"torch.randn(64, 8192, {HALF}) @ torch.randn(8192, 256, {HALF})",
    "torch.randn(512, 1000) @ torch.randn(1000, 700)",
    "torch.nn.Linear(1024, 1024)(torch.randn(300, 1024))",
    "torch.randn(200, 300).double() @ torch.randn(300, 500).double()",
    "torch.nn.functional.linear(torch.randint(-9, 9, (700, 1024), dtype=torch.int8).int(), torch.randint(-9, 9, (512, 1024), dtype=torch.int8).int())",
    "torch.nn.functional.linear(torch.randn(512, 768, dtype=torch.float8_e4m3fn).float(), torch.randn(256, 768, dtype=torch.float8_e4m3fn).float())",
    *(
        f"torch.nn.functional.scaled_dot_product_attention(torch.randn({q}, {HALF}), torch.randn({k}, {HALF}), torch.randn({k}, {HALF}){how})"
        for q, k, how in [
            ("2, 8, 1024, 64", "2, 8, 1024, 64", ""),
            ("2, 8, 1024, 64", "2, 8, 1024, 64", ", is_causal=True"),
            ("1, 8, 777, 128", "1, 2, 777, 128", ", is_causal=True, enable_gqa=True"),
            ("4, 8, 1, 128", "4, 8, 2048, 128", ""),
        ]
    ),
    "torch.nn.functional.scaled_dot_product_attention(torch.randn(1, 4, 512, 64), torch.randn(1, 4, 512, 64), torch.randn(1, 4, 512, 64))",
    "torch.softmax(torch.randn(4, 32768), dim=1)",
    "torch.softmax(torch.randn(2048, 1024), dim=1)",
    "torch.sum(torch.randn(2048, 2048))",
    "torch.sum(torch.randn(2048, 2048), dim=0)",
    "torch.argmax(torch.randn(500, 5000), dim=1)",
    f"torch.nn.LayerNorm(4096).half()(torch.randn(1000, 4096, {HALF}))",
    "torch.cumsum(torch.randn(64, 5000), 1)",
    "torch.cumsum(torch.randn(1, 100000), 1)",
    "torch.sort(torch.randn(16, 3000))[0]",
    "torch.topk(torch.randn(16, 3000), 8)[0]",
    "torch.sort(torch.randn(64, 4096))[1]",
    "torch.sort(torch.randn(100000))[1]",
    "torch.topk(torch.randn(64, 32000), 8)[1]",
    "torch.nn.functional.gelu(torch.randn(1 << 22))",
    "torch.randn(3000, 2000).transpose(0, 1).contiguous()",
    "torch.nn.Conv2d(64, 64, 3, padding=1)(torch.randn(2, 64, 56, 56))",
    f"torch.nn.Conv2d(64, 128, 3, padding=1, stride=2).half()(torch.randn(4, 64, 56, 56, {HALF}))",
    "torch.nn.Conv2d(96, 96, 3, padding=1, groups=96)(torch.randn(2, 96, 28, 28))",
    "torch.zeros(64).scatter_add(0, torch.randint(0, 64, (5000,)), torch.ones(5000))",
    "torch.zeros(1024, 512).scatter_add(0, torch.randint(0, 1024, (16384, 1)).expand(16384, 512), torch.randn(16384, 512))",
    "torch.zeros(1024, 512).scatter(0, torch.randint(0, 1024, (16384, 1)).expand(16384, 512), torch.randn(16384, 512))",
]

# Schedules that the rules choose for other sizes or only when they are asked for.
PRODUCT = f"torch.randn(1300, 512, {HALF}) @ torch.randn(512, 2048, {HALF})"
KNOBS = [
    (PRODUCT, knobs)
    for knobs in [
        "wgmma=0", "tensor_core=0", "warp_specialize=1", "warp_specialize=1 cluster=2", "persist=1", "persist=1 warp_specialize=1",
        "overlap=1", "split_k=4", "group=4", "slots=2",
    ]
] + [
    ("torch.randn(512, 1024) @ torch.randn(1024, 768)", "tf32=1"),
    ("torch.nn.Linear(1024, 512)(torch.randn(300, 1024))", "tf32=1"),
    ("torch.softmax(torch.randn(4, 32768), dim=1)", "cluster_rows=4"),
    ("torch.softmax(torch.randn(4, 32768), dim=1)", "cluster_rows=1"),
]  # fmt: skip

# The time limit of a run, in seconds.
LIMIT = 240


def cases(examples):
    for text in simulated.MODELS + LARGE:
        yield text, ["-c", text]
    for text, knobs in KNOBS:
        yield f"{text} with {knobs}", ["-c", text, *(word for knob in knobs.split() for word in ("--knob", knob))]
    for name, launch in simulated.EXAMPLES.items():
        yield name, [os.path.join(examples, f"{name}.mlir"), *launch.split()]
        # Launched as the file itself says, for programs that print nothing.
        if name not in ("hello", "print_in_turn", "mutex"):
            yield f"{name}, whole", [os.path.join(examples, f"{name}.mlir")]


def run(girih, device, name, what):
    command = [girih, "run", *what, "--device", device, "--compare", "eval"]
    start = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return name, LIMIT, f"took longer than {LIMIT} s: {shlex.join(command)}"
    error = None
    if done.returncode != 0:
        error = f"exit {done.returncode}: {(done.stdout + done.stderr).strip()[-1500:]}\n{shlex.join(command)}"
    return name, time.monotonic() - start, error


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("girih")
    parser.add_argument("--filter", default="", help="run the cases whose name has this text")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    examples = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples")
    chosen = [case for case in cases(examples) if args.filter in case[0]]
    if not chosen:
        sys.exit(f"no case has {args.filter!r} in its name")
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for name, seconds, error in pool.map(lambda case: run(args.girih, args.device, *case), chosen):
            if error is not None:
                failed += 1
                print(f"FAILED {name}:\n{error}", flush=True)
            else:
                print(f"ok {seconds:5.1f} s  {name}", flush=True)
    print(f"{len(chosen)} runs on {args.device}: {len(chosen) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
