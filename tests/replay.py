"""Prints the schedule of programs and models on several targets, replays it, and compares the Kernel IR.

    python tests/replay.py target/release/girih [FILE | DIRECTORY | EXPRESSION]...

Files are tile text, ONNX or graphs of PyTorch as JSON; without any, all examples and some models in one line. Programs that a target
refuses and other files are counted, and named with --verbose.
"""

import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGETS = ["x86-64-v3", "x86-64-v4", "sm_80", "sm_90a", "sm_100a", "sm_120"]
MODELS = [
    "torch.softmax(torch.randn(64, 1000), -1)",
    "torch.randn(256, 512) @ torch.randn(512, 384)",
    "torch.nn.RMSNorm(2048)(torch.randn(1, 32, 2048))",
    "torch.nn.LayerNorm(768)(torch.randn(4, 128, 768))",
    "torch.randn(4, 100000).sum(-1)",
    "torch.randn(5000, 64).sum(0)",
    "torch.cumsum(torch.randn(32, 3000), -1)",
    "torch.sort(torch.randn(16, 700), -1)",
    "torch.nn.Conv2d(16, 32, 3)(torch.randn(1, 16, 32, 32))",
    "torch.nn.MaxPool2d(2)(torch.randn(2, 8, 32, 32))",
    "torch.nn.functional.scaled_dot_product_attention(torch.randn(1,4,128,64),torch.randn(1,4,128,64),torch.randn(1,4,128,64))",
    "torch.nn.functional.scaled_dot_product_attention(torch.randn(8,1,64,dtype=torch.float16),torch.randn(8,1024,64,dtype=torch.float16),torch.randn(8,1024,64,dtype=torch.float16))",
    "torch.randn(1,4096,dtype=torch.float16) @ torch.randn(4096,4096,dtype=torch.float16)",
    "torch.nn.Linear(512, 512)(torch.nn.functional.gelu(torch.nn.Linear(128, 512)(torch.randn(B, 128))))",
]


def run(girih, *args):
    return subprocess.run([girih, "compile", *args], capture_output=True, text=True, timeout=600)


def entries(girih, source):
    """The arguments that name each entry of a file or expression."""
    if "(" in source:
        return [["-c", source]]
    told = run(girih, source, "--ir", "loop", "--target", TARGETS[0])
    several = re.search(r"choose one with --entry: (.*)", told.stderr)
    return [[source, "--entry", name] for name in several.group(1).split(", ")] if several else [[source]]


def replay(girih, args, target):
    """None if the replayed schedule makes the same Kernel IR; else what happened, and whether it is a fault."""
    args = [*args, "--target", target]
    want = run(girih, *args, "--ir", "kernel")
    if want.returncode:
        return False, want.stderr.strip().splitlines()[0]
    schedule = run(girih, *args, "--ir", "schedule")
    if schedule.returncode:
        return True, schedule.stderr
    with tempfile.NamedTemporaryFile("w", suffix=".schedule") as file:
        file.write(schedule.stdout)
        file.flush()
        got = run(girih, *args, "--schedule", file.name, "--ir", "kernel")
    if got.returncode:
        return True, got.stderr
    return None if got.stdout == want.stdout else (True, f"other Kernel IR by\n{schedule.stdout}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("girih")
    parser.add_argument("sources", nargs="*")
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--verbose", action="store_true")
    flags = parser.parse_args()
    sources = flags.sources or [str(ROOT / "examples"), *MODELS]
    found = []
    for source in sources:
        folder = pathlib.Path(source) if "(" not in source else None
        found += sorted(str(p) for p in folder.rglob("*.mlir")) if folder and folder.is_dir() else [source]
    cases = [(args, t) for source in found for args in entries(flags.girih, source) for t in flags.targets.split(",")]
    same, refused, wrong = 0, 0, 0
    with concurrent.futures.ThreadPoolExecutor(flags.jobs) as pool:
        results = pool.map(lambda case: replay(flags.girih, *case), cases)
        for (args, target), result in zip(cases, results):
            match result:
                case None:
                    same += 1
                case (True, why):
                    wrong += 1
                    print(f"{' '.join(args)} on {target}: {why}")
                case (_, why):
                    refused += 1
                    if flags.verbose:
                        print(f"{' '.join(args)} on {target}: refused: {why}")
    print(f"{same} schedules replayed, {wrong} wrong, {refused} not compiled")
    return wrong != 0 or same == 0


if __name__ == "__main__":
    sys.exit(main())
