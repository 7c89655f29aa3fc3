"""Follows schedules that were changed at random: each is refused with a reason, or computes what the program says.

    python tests/schedule_mutants.py target/release/girih [--count N] [--seed N] [--target T]...

The printed schedule of an example loses lines, has lines moved, doubled or taken from another target, and numbers and words changed. On
the CPU the results are compared with the evaluator's; for GPUs the simulator also looks for races.
"""

import argparse
import concurrent.futures
import pathlib
import random
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGETS = ["cpu", "sm_80", "sm_90a", "sm_100a"]
PROGRAMS = {
    "gemm": ["A=randn:f16[140x96]", "B=randn:f16[96x150]", "C=zeros:f32[140x150]", "M=i32:140", "N=i32:150", "K=i32:96", "grid=2,2"],
    "gemm_f32": None,
    "softmax": None,
    "layer_norm": None,
    "transpose": None,
    "vector_add": None,
    "attention_f16": None,
}
MODELS = [
    "torch.softmax(torch.randn(6, 100), -1)",
    "torch.randn(40, 70) @ torch.randn(70, 48)",
    "torch.randn(33, 64, dtype=torch.float16) @ torch.randn(64, 48, dtype=torch.float16)",
    "torch.randn(130, 128, dtype=torch.float16) @ torch.randn(128, 136, dtype=torch.float16)",
    "torch.nn.RMSNorm(96)(torch.randn(5, 96))",
    "torch.randn(3, 5000).sum(-1)",
    "torch.randn(50, 64).sum(0)",
    "torch.randn(64, 256, dtype=torch.float16).sum(0)",
    "torch.nn.functional.scaled_dot_product_attention(torch.randn(1,2,64,16),torch.randn(1,2,64,16),torch.randn(1,2,64,16))",
    "torch.nn.functional.scaled_dot_product_attention(torch.randn(2,1,16,dtype=torch.float16),torch.randn(2,130,16,dtype=torch.float16),torch.randn(2,130,16,dtype=torch.float16))",
    "torch.nn.Linear(70, 48)(torch.relu(torch.nn.Linear(96, 70)(torch.randn(20, 96))))",
    "torch.randn(40, 9) @ torch.randn(31, 9).T",
    "torch.randn(20, 6, 30).sum((0, 2))",
    "torch.nn.MaxPool2d(3, 1, 1)(torch.randn(1, 3, 20, 21))",
]
NUMBERS = ["1", "2", "3", "4", "5", "7", "8", "16", "24", "32", "48", "64", "128", "256", "1000"]
WORDS = {
    "a": ["b"], "b": ["a"], "rows": ["windows", "panels 8", "shared"], "shared": ["rows", "panels 16", "shared f16"],
    "thread": ["block.x", "thread 32", "lanes"], "lanes": ["thread", "thread 32"], "block.x": ["block.y", "thread"], "registers": ["tiles"], "guard": [""],
    "threads": ["warps"], "warps": ["threads", "groups"], "groups": ["warps"], "tcgen05": ["warpgroup"], "warpgroup": ["tcgen05"], "roles": [""], "overlap": ["roles"], "tma": ["async"], "async": ["tma"],
}  # fmt: skip
#: Lines that may stand anywhere; `@` is replaced by a loop or a buffer that the schedule names.
LINES = ["unroll @", "vector @ by 8", "vector @ by 4 x 2", "peel @", "unswitch @", "serial @", "privatise @", "hoist @", "sink @",
         "split @ by 3 -> u, w", "split @ by 16 guard -> u, w", "bind @ to thread", "bind @ to block.y", "bind @ to thread 64",
         "tile @ by 8 x 16 x 8", "tile @ by 8 x 16", "stage_read @ by a rows", "stage_read @ by b panels 16", "stage_read @ by a shared",
         "tensorize @ as registers 4 x 16 by 8", "tensorize @ as threads 2 x 2", "tensorize @ as warps 2 x 1", "tensorize @ as rows 2", "tensorize @ as groups 1 x 1", "tensorize @ as warpgroup", "tensorize @ as tcgen05", "pipeline @ by 2",
         "stage_write @", "strip @ by 16 x 2", "strip @ by 8 x 4 x 3", "stage_write @ by shared", "stage_write @ by tma", "retype @ to f16", "approximate @", "normalize @", "pad @ by 4", "swizzle @ by 64", "fill @ by async", "fill @ by tma", "trim @", "group @ by 4",
         "cluster @ by 2", "persist @ by 4", "box @ by 64", "distribute @", "fission @", "interleave @", "unbatch @", "fuse @, @ -> u", "digits @ by 4 x 2 -> u, w, z", "jam @ by 4", "scan @ by 32 x 4", "turn @, @ by 16", "rfactor @ by 16 -> u, w", "own @ by 64", "stage_row @", "own @ by 32 rolled", "reverse @", "prefetch @ by 2", "prefetch @, @", "prefetch_panel @", "bind to thread 64", "pair @", "rfactor @ by 8 x 1 -> u, w", "rfactor @ by 16 x 4 -> u, w, z", "bind @ to lanes", "bind @, @ to cluster 4", "count @ by 4", "count @ by shared", "recompute @", "bound @", "promote @ by 32", "promote @ by 8 x 4", "windows @ by 1", "windows @ by 2",
         "policy spread_threads", "policy keep_tiles", "policy wide_access", "policy vectorise"]  # fmt: skip
#: Lines of the section `model`; `%` is replaced by one of its kernels, `@` by a loop or an array.
OF_MODELS = ["merge %.@", "swap %.@", "swap %.@ by batch", "pack %.@", "pack %.@ by pairs", "split_k %.@ by 7", "split_k %.@ by 16",
             "split_k %.@ by 1"]  # fmt: skip
ARRAYS = ["weight", "weight1", "x", "x1", "x2", "k", "k_1", "part", "key"]


def girih(binary, *args):
    try:
        return subprocess.run([binary, *args], capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return None


def changed(text, others, rng):
    lines = [re.sub(r"\s*#.*", "", line) for line in text.splitlines()]
    for _ in range(rng.choice([1, 1, 2])):
        steps = [at for at, line in enumerate(lines) if line.startswith("  ")]
        if not steps:
            break
        at = rng.choice(steps)
        names = sorted(set(re.findall(r"\b[a-z]\w*\b", " ".join(lines[s].strip().partition(" ")[2] for s in steps))))
        match rng.randrange(8):
            case 0 | 1:
                del lines[at]
            case 2:
                lines.insert(rng.choice(steps), lines.pop(at))
            case 3:
                lines.insert(rng.choice(steps), lines[at])
            case 4:
                lines[at] = re.sub(r"(?<![\w.])\d+\b", lambda _: rng.choice(NUMBERS), lines[at])
            case 5:
                words = lines[at].split(" ")
                known = [n for n, word in enumerate(words) if word in WORDS]
                if known:
                    n = rng.choice(known)
                    words[n] = rng.choice(WORDS[words[n]])
                    lines[at] = " ".join(words)
            case 6 if "model" in lines and rng.random() < 0.3:
                kernel = rng.choice(re.findall(r"(?m)^kernel (\w+)$", "\n".join(lines)) or ["k"])
                line = rng.choice(OF_MODELS).replace("%", kernel).replace("@", rng.choice(ARRAYS))
                lines.insert(lines.index("model") + rng.choice([1, 1, 2]), "  " + line)
            case 6:
                lines.insert(at, "  " + rng.choice(LINES).replace("@", rng.choice(names) if names else "i"))
            case _:
                other = rng.choice(others).splitlines()
                taken = [line for line in other if line.startswith("  ")]
                if taken:
                    lines.insert(at, re.sub(r"\s*#.*", "", rng.choice(taken)))
    return "\n".join(lines) + "\n"


def judge(binary, source, target, text):
    """`followed`, `refused`, `slow` (the simulator does in one thread what many did), or the fault."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(text)
        file.flush()
        device = ["--device", "cpu"] if target == "cpu" else ["--device", "sim", "--target", target]
        done = girih(binary, "run", *source, *device, "--schedule", file.name, "--compare", "eval")
    if done is None:
        return "slow"
    said = done.stdout + done.stderr
    if done.returncode == 0:
        return "followed"
    if done.returncode == 1 and re.search(r"error\[E03(04|05|06)\]", said):
        return "refused"
    return f"exit {done.returncode}: {said[-1500:]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("girih")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", action="append")
    parser.add_argument("--jobs", type=int, default=2)
    flags = parser.parse_args()
    targets = flags.target or TARGETS
    sources = [["-c", model] for model in MODELS]
    for name, args in PROGRAMS.items():
        given = [word for arg in args or [] for word in (["--grid", arg[5:]] if arg.startswith("grid=") else ["--arg", arg])]
        sources.append([str(ROOT / "examples" / f"{name}.mlir"), *given])
    printed = {}
    for target in targets:
        for at, source in enumerate(sources):
            plain = source[:2] if source[0] == "-c" else source[:1]
            done = girih(flags.girih, "compile", *plain, "--target", target, "--ir", "schedule")
            if done.returncode:
                sys.exit(done.stderr)
            printed[target, at] = done.stdout

    def one(number):
        rng = random.Random(f"{flags.seed}.{number}")
        target, at = rng.choice(targets), rng.randrange(len(sources))
        text = changed(printed[target, at], list(printed.values()), rng)
        return number, sources[at], target, text, judge(flags.girih, sources[at], target, text)

    count = {"followed": 0, "refused": 0, "slow": 0}
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(flags.jobs) as pool:
        for number, source, target, text, found in pool.map(one, range(flags.count)):
            if found in count:
                count[found] += 1
                continue
            wrong += 1
            print(f"--- {number}: {' '.join(source)} on {target}\n{text}{found}\n", flush=True)
    print(f"{flags.count} schedules: {count['followed']} followed, {count['refused']} refused, {count['slow']} slow, {wrong} wrong")
    return 1 if wrong or not count["followed"] or not count["refused"] else 0


if __name__ == "__main__":
    sys.exit(main())
