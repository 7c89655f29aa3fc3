"""Kernels for GPUs on the simulator: models and the example programs, for every target, under many schedules.

    python tests/simulated.py target/release/girih [--filter TEXT] [--all]

Each case runs with `--device sim` and is compared with the reference evaluator; a race, a missing barrier, an access out of
bounds or a deadlock is an error of the run. A seed is a schedule: 0 goes round, others run the newest first, starve a warp,
go backwards or are drawn. Without `--all`, each model runs for two targets and each example for one, in an order that
covers every target and every schedule over the list; with it, everything runs with everything. For products of full size,
one block is run and its traffic is counted.
"""

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import time

TARGETS = ["sm_80", "sm_90a", "sm_100a", "sm_120"]
SEEDS = range(8)

# Elementwise, views, reductions, products, attention, scans, sorts, types; extents that divide nothing.
MODELS = [
    "torch.nn.functional.gelu(torch.randn(5, 300))",
    "torch.nn.functional.gelu(torch.randn(400, 400)) + torch.randn(400)",
    "torch.randn(512, 16) + torch.randn(16)",
    "torch.relu(torch.randn(7)) * 2 - 1",
    "torch.randn(3, 1, 5) * torch.randn(4, 1)",
    "torch.randn(33, 65).transpose(0, 1) + 1",
    "torch.cat([torch.randn(3, 20), torch.randn(4, 20)])",
    "torch.randn(4, 6, 5).permute(2, 0, 1).reshape(10, 12)",
    "torch.randn(6, 40)[1:5:2, 3:]",
    "torch.sum(torch.randn(5, 777), dim=1)",
    "torch.sum(torch.randn(777, 5), dim=0)",
    "torch.amax(torch.randn(3, 70), dim=1)",
    "torch.mean(torch.randn(2, 3, 129), dim=(1, 2))",
    "torch.prod(torch.randn(3, 100), dim=1)",
    "torch.argmax(torch.randn(4, 90), dim=1)",
    "torch.nn.functional.softmax(torch.randn(6, 1000), dim=-1)",
    "torch.nn.functional.softmax(torch.randn(2, 9001), dim=-1)",
    "torch.nn.functional.softmax(torch.randn(70, 9), dim=0)",
    "torch.nn.functional.log_softmax(torch.randn(4, 130), dim=-1)",
    "torch.nn.functional.layer_norm(torch.randn(4, 200), (200,))",
    "torch.nn.RMSNorm(96)(torch.randn(5, 96))",
    "torch.nn.BatchNorm2d(3)(torch.randn(2, 3, 5, 5))",
    "torch.nn.Linear(64, 96)(torch.randn(12, 64))",
    "torch.nn.Linear(33, 7)(torch.randn(1, 33))",
    "torch.matmul(torch.randn(2, 9, 17), torch.randn(2, 17, 5))",
    "torch.nn.Linear(72, 130)(torch.randn(70, 72))",
    "torch.nn.functional.gelu(torch.randn(64, 100) @ torch.randn(100, 64)) + torch.randn(64)",
    "torch.randn(40, 24).double() @ torch.randn(24, 36).double()",
    "torch.randn(48, 64).half() @ torch.randn(64, 48).half()",
    "torch.nn.Linear(96, 33).bfloat16()(torch.randn(35, 96).bfloat16())",
    # On the matrix unit, by rows and by columns, with edges.
    "torch.randn(100, 72, dtype=torch.float16) @ torch.randn(72, 60, dtype=torch.float16)",
    "torch.nn.Linear(200, 136).half()(torch.randn(70, 200, dtype=torch.float16))",
    "torch.randn(64, 70, dtype=torch.bfloat16).transpose(0, 1) @ torch.randn(64, 96, dtype=torch.bfloat16)",
    "torch.nn.functional.gelu(torch.nn.Linear(128, 192).bfloat16()(torch.randn(130, 128, dtype=torch.bfloat16)))",
    "torch.matmul(torch.randn(3, 33, 40, dtype=torch.float16), torch.randn(3, 40, 34, dtype=torch.float16))",
    # Integers of 8 bits: side by side along the sum, and across it.
    "torch.nn.functional.linear(torch.randint(-9, 9, (70, 96), dtype=torch.int8).int(), torch.randint(-9, 9, (40, 96), dtype=torch.int8).int())",
    "torch.randint(-9, 9, (96, 80), dtype=torch.int8).transpose(0, 1).int() @ torch.randint(-9, 9, (96, 144), dtype=torch.int8).int()",
    "torch.randint(-9, 9, (70, 80), dtype=torch.int8).int() @ torch.randint(0, 9, (80, 48), dtype=torch.uint8).int()",
    # Floats of 8 bits, which some targets multiply as f16, and of both kinds.
    "torch.nn.functional.linear(torch.randn(70, 96, dtype=torch.float8_e4m3fn).float(), torch.randn(48, 96, dtype=torch.float8_e5m2).float())",
    "torch.randn(70, 96, dtype=torch.float8_e4m3fn).float() @ torch.randn(96, 80, dtype=torch.float8_e4m3fn).float()",
    "torch.randn(70, 96, dtype=torch.float16).float() @ torch.randn(96, 80, dtype=torch.float8_e5m2).float()",
    "(torch.arange(600) % 7).reshape(20, 30) @ (torch.arange(900) % 5).reshape(30, 30)",
    "torch.randn(37, 50).transpose(0, 1) @ torch.randn(37, 44)",
    "torch.matmul(torch.randn(3, 33, 40), torch.randn(3, 40, 34))",
    "torch.nn.functional.silu(torch.nn.Linear(20, 30)(torch.randn(4, 20)))",
    # Long sums, which are split over blocks.
    "torch.nn.functional.gelu(torch.nn.Linear(1024, 20)(torch.randn(6, 1024)))",
    "torch.randn(9, 1111) @ torch.randn(1111, 12) + torch.randn(9, 12)",
    "torch.nn.Linear(2048, 16).half()(torch.randn(5, 2048).half())",
    "torch.nn.Conv2d(3, 8, 3)(torch.randn(1, 3, 10, 10))",
    "torch.nn.functional.max_pool2d(torch.randn(1, 2, 9, 9), 2)",
    "torch.nn.functional.scaled_dot_product_attention("
    "torch.randn(1, 2, 16, 8), torch.randn(1, 2, 16, 8), torch.randn(1, 2, 16, 8))",
    "torch.nn.functional.scaled_dot_product_attention("
    "torch.randn(1, 2, 9, 8), torch.randn(1, 2, 9, 8), torch.randn(1, 2, 9, 8), is_causal=True)",
    # Shared memory does not hold 64 of these rows, and a thread moves two of these numbers at once.
    "torch.nn.functional.scaled_dot_product_attention("
    "torch.randn(1, 1, 70, 128), torch.randn(1, 1, 70, 128), torch.randn(1, 1, 70, 128), is_causal=True)",
    "torch.nn.functional.scaled_dot_product_attention(torch.randn(1, 1, 40, 64).double(), "
    "torch.randn(1, 1, 40, 64).double(), torch.randn(1, 1, 40, 64).double())",
    # On the matrix unit, with rows in registers.
    "torch.nn.functional.scaled_dot_product_attention(torch.randn(1, 2, 100, 32, dtype=torch.float16), "
    "torch.randn(1, 2, 150, 32, dtype=torch.float16), torch.randn(1, 2, 150, 32, dtype=torch.float16))",
    "torch.nn.functional.scaled_dot_product_attention(torch.randn(1, 2, 140, 64, dtype=torch.bfloat16), "
    "torch.randn(1, 2, 140, 64, dtype=torch.bfloat16), torch.randn(1, 2, 140, 40, dtype=torch.bfloat16), is_causal=True)",
    "torch.nn.functional.scaled_dot_product_attention(torch.randn(1, 4, 7, 48, dtype=torch.float16), "
    "torch.randn(1, 2, 90, 48, dtype=torch.float16), torch.randn(1, 2, 90, 48, dtype=torch.float16), enable_gqa=True)",
    "torch.cumsum(torch.randn(4, 50), 1)",
    # By all threads of a block: one stretch and several, forwards and back, rows and columns.
    "torch.cumsum(torch.randn(3, 1000), 1)",
    "torch.cumprod(torch.randint(1, 3, (2, 9001)), 1)",
    "torch.cumsum(torch.randn(300, 3).flip(0), 0)",
    "torch.sort(torch.randn(3, 20))[0]",
    "torch.topk(torch.randn(3, 20), 4)[0]",
    # Sorted by a block for each row; a longer row in parts, which are merged, or only their first elements kept.
    "torch.sort(torch.randn(3, 700))[1]",
    "torch.argsort(torch.randint(0, 9, (300, 2)), 0)",
    "torch.sort(torch.randn(2, 300).double(), descending=True)[1]",
    "torch.topk(torch.randn(2, 300), 5)[1]",
    "torch.sort(torch.randn(8300).half())[1]",
    "torch.topk(torch.randn(2, 5000), 7)[1]",
    # Elements that look for their updates, rows that list them, and updates that replace, whose last one counts.
    "torch.zeros(9).scatter_add(0, torch.randint(0, 9, (300,)), torch.randn(300))",
    "torch.ones(7, 40).scatter_add(1, torch.randint(0, 40, (5, 300)), torch.randn(5, 300))",
    "torch.randn(70, 130).scatter_add(0, torch.randint(0, 70, (3000, 1)).expand(3000, 130), torch.randn(3000, 130))",
    "torch.zeros(7, 40).scatter(0, torch.randint(0, 7, (300, 1)).expand(300, 40), torch.randn(300, 40))",
    "torch.nn.functional.embedding(torch.tensor([3, 0, 2]), torch.randn(5, 12))",
    "torch.randn(5, 300).half() * 2",
    "torch.randn(4, 300).bfloat16().float().exp()",
    "torch.sum(torch.randn(3, 200).double(), dim=1)",
    "(torch.randn(6, 50) > 0).sum(dim=1)",
    "torch.arange(1000) * 3 % 7",
]

# Each example, with a launch that the simulator runs in a moment where the example's own has more blocks than that.
EXAMPLES = {
    "attention": "--grid 1",
    "attention_f16": "--grid 1",
    "batched_gemm": "--grid 1",
    "gemm": "--grid 2,1 --arg A=randn:f16[150x40] --arg B=randn:f16[40x100] --arg C=zeros:f32[150x100]"
    " --arg M=i32:150 --arg N=i32:100 --arg K=i32:40",
    "gemm_block": "",
    "gemm_f32": "--grid 1 --arg A=randn:f32[100x40] --arg B=randn:f32[40x100] --arg C=zeros:f32[100x100]"
    " --arg M=i32:100 --arg N=i32:100 --arg K=i32:40",
    "gemm_pointers": "--grid 1",
    "gemm_transposed": "--grid 1",
    "hello": "",
    "histogram": "--grid 8",
    "layer_norm": "--grid 4",
    "mutex": "--grid 8",
    "prefix_sum": "--grid 4",
    "print_in_turn": "--grid 4",
    "saxpy": "--grid 2",
    "softmax": "--grid 16",
    "transpose": "--grid 2,2",
    "vector_add": "--grid 8",
}

# Products of full size, run for one block: extents m, n, k, bytes of an element, the kernel and the target. No access of shared
# memory may have a bank conflict, none of global memory take more sectors than it needs (but stores of sums of the matrix unit in
# two bytes, which are half a sector each), and a block may move 1.15 times the bytes that its tile requires: its rows of both
# operands, once, and its stores. On a target with products of warpgroups, those of two bytes use them; then its
# instructions are issued in a fifth of the matrix unit's time, and shared memory has three slots of an operand or more.
PRODUCTS = [
    ("torch.nn.Linear(3584, 3584)(torch.randn(512, 3584))", (512, 3584, 3584), 4, "k_linear", "sm_90a"),
    ("torch.randn(512, 3584) @ torch.randn(3584, 3584)", (512, 3584, 3584), 4, "k_matmul", "sm_80"),
    (
        "torch.nn.Linear(3584, 3584).half()(torch.randn(512, 3584, dtype=torch.float16))",
        (512, 3584, 3584),
        2,
        "k_linear",
        "sm_90a",
    ),
    (
        "torch.randn(512, 3584, dtype=torch.float16) @ torch.randn(3584, 3584, dtype=torch.float16)",
        (512, 3584, 3584),
        2,
        "k_matmul",
        "sm_80",
    ),
    (
        "torch.randn(512, 3584, dtype=torch.float16) @ torch.randn(3584, 3584, dtype=torch.float16)",
        (512, 3584, 3584),
        2,
        "k_matmul",
        "sm_90a",
    ),
    (
        "torch.randn(1024, 2048, dtype=torch.float16) @ torch.randn(2048, 4096, dtype=torch.float16)",
        (1024, 4096, 2048),
        2,
        "k_matmul",
        "sm_100a",
    ),
]
MOST_BYTES = 1.15

# The time limit of a run in seconds, on a busy machine.
LIMIT = 300

# The page whose table shows the gain of each rule for this product: a row for each target as the rules choose, and one for
# each knob.
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "simulator.md")
SHOWN = "torch.nn.Linear(512, 256, dtype=torch.float16)(torch.randn(128, 512, dtype=torch.float16))"
# Without the matrix unit it takes long.
LONG_ROWS = ["tensor_core=0"]


def run(girih, name, what, target, seed):
    command = [girih, "run", *what, "--device", "sim", "--target", target, "--seed", str(seed), "--compare", "eval"]
    start = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return name, target, seed, LIMIT, f"took longer than {LIMIT} s"
    error = None if done.returncode == 0 else (done.stdout + done.stderr).strip() or f"exit code {done.returncode}"
    return name, target, seed, time.monotonic() - start, error


def cases(examples, everything):
    """Each case with its targets and seeds."""
    listed = [(text, ["-c", text], 2) for text in MODELS]
    for name, launch in EXAMPLES.items():
        listed.append((name, [os.path.join(examples, f"{name}.mlir"), *launch.split()], 1))
    at = 0
    for name, what, some in listed:
        pairs = [(target, seed) for target in TARGETS for seed in SEEDS]
        if not everything:
            # 9 is odd and no multiple of a target's schedules, so that the list as a whole meets all pairs.
            pairs = [pairs[(at + 9 * k) % len(pairs)] for k in range(some)]
            at += 9 * some
        for target, seed in pairs:
            yield name, what, target, seed


def product(girih, text, extents, size, kernel, target):
    """The cost of one block of a product: a case as `run` returns it."""
    name, start = f"one block of {text}", time.monotonic()

    def failed(why):
        return name, target, 0, time.monotonic() - start, why

    def girih_on(*args):
        return subprocess.run([girih, *args, "--target", target], capture_output=True, text=True, timeout=LIMIT)

    printed = girih_on("compile", "-c", text, "--ir", "kernel").stdout
    header = re.search(rf"^kernel {kernel}\(.*grid \((\d+), (\d+), (\d+)\)", printed, re.M)
    if header is None:
        return failed(f"no kernel {kernel} with a grid")
    if size == 2 and target == "sm_90a" and "wgmma commit" not in printed:
        return failed("no warpgroup multiplies")
    if size == 2 and target == "sm_100a" and "tcgen05 commit" not in printed:
        return failed("nothing is multiplied in tensor memory")
    try:
        budgets = ["--max-bank-conflicts", "1", "--max-sectors", "1" if size == 4 else "2"]
        done = girih_on("sim", "-c", text, "--seed", "0", "--block", "0,0,0", "--json", *budgets)
    except subprocess.TimeoutExpired:
        return failed(f"took longer than {LIMIT} s")
    if done.returncode != 0:
        return failed((done.stderr or done.stdout).strip())
    slots = re.search(r"^  shared full: mbarrier\[(\d+)\]", printed, re.M)
    if size == 2 and target == "sm_90a" and (slots is None or int(slots[1]) < 3):
        return failed(f"operands have {slots and slots[1]} slots, not three or more")
    (m, n, k), (rows, columns, _) = extents, (int(blocks) for blocks in header.groups())
    tile = (-(-m // rows), -(-n // columns))
    required = size * ((tile[0] + tile[1]) * k + tile[0] * tile[1])
    kernels = json.loads(done.stdout)["schedules"][0]["kernels"]
    counts = next(each for each in kernels if each["kernel"] == kernel)
    moved = counts["global"]["bytes"]
    if size == 2 and target == "sm_90a":
        on_unit, issued = (counts["estimate"]["parts"][part]["seconds"] for part in ("matrix unit", "issue"))
        if issued > 0.2 * on_unit:
            return failed(f"its instructions take {issued:.3g} s to issue, the matrix unit {on_unit:.3g} s")
    if not required <= moved <= MOST_BYTES * required:
        return failed(f"a block of {tile[0]} x {tile[1]} moves {moved} bytes; its tile requires {required}")
    return name, target, 0, time.monotonic() - start, None


def rows():
    """The rows of the page's table: the text, the target and the knob."""
    with open(PAGE, encoding="utf-8") as page:
        lines = page.read().splitlines()
    target = None
    for line in lines:
        if chosen := re.match(r"\| (sm_\w+), as chosen \|", line):
            target = chosen[1]
            yield line, target, None
        elif target and (knob := re.match(r"\| `(\w+=\d+)` \|", line)):
            yield line, target, knob[1]
        else:
            target = None


def row(girih, line, target, knob):
    """A row of the table as it is counted now: a case as `run` returns it."""
    start = time.monotonic()
    command = [girih, "sim", "-c", SHOWN, "--schedules", "1", "--json", "--target", target, *(["--knob", knob] if knob else [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    error = (done.stderr or done.stdout).strip()
    if done.returncode == 0:
        counts = json.loads(done.stdout)["schedules"][0]["kernels"][0]
        shared = counts["shared"]
        numbers = (counts["thread_statements"], counts["barriers"], counts["shared_bytes_per_block"], shared["wavefronts"], shared["least"])
        wanted = f"| {line.split(' | ')[0].removeprefix('| ')} | " + " | ".join(f"{n:,}" for n in numbers) + " |"
        error = None if line == wanted else f"docs/simulator.md has\n{line}\nand it is now\n{wanted}"
    return f"the table of docs/simulator.md, {knob or 'as chosen'},", target, 0, time.monotonic() - start, error


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("girih")
    parser.add_argument("--filter", default="", help="run the cases whose name has this text")
    parser.add_argument("--all", action="store_true", help="every case for every target under every schedule")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    examples = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples")
    chosen = [case for case in cases(examples, args.all) if args.filter in case[0]]
    products = [case for case in PRODUCTS[:: 1 if args.all else 2] if args.filter in case[0]]
    shown = [case for case in rows() if args.filter in SHOWN and (args.all or case[2] not in LONG_ROWS)]
    if not chosen and not products and not shown:
        sys.exit(f"no case has {args.filter!r} in its name")
    failed, longest = 0, (0.0, "")
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        whole = [pool.submit(product, args.girih, *case) for case in products]
        whole += [pool.submit(row, args.girih, *case) for case in shown]
        runs = whole + [pool.submit(run, args.girih, *case) for case in chosen]
        for name, target, seed, seconds, error in (done.result() for done in runs):
            longest = max(longest, (seconds, f"{name} for {target}"))
            if error is not None:
                failed += 1
                print(f"FAILED {name} for {target}, seed {seed}:\n{error}", flush=True)
    names = len({case[0] for case in chosen + products} | ({SHOWN} if shown else set()))
    print(f"{len(runs)} simulated runs of {names} programs: {len(runs) - failed} passed, {failed} failed")
    print(f"the longest took {longest[0]:.1f} s: {longest[1]}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
