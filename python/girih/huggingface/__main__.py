"""``python -m girih.huggingface generate DIR --prompt ...``: one sentence on standard error and an exit code where it cannot be done: 1
for a folder, 2 for arguments, 130 for Ctrl-C."""

import argparse
import dataclasses
import errno
import json
import os
import signal
import sys
import tempfile
from pathlib import Path

from . import load
from .folder import Folder, FolderError
from .generate import generate, say


def number(least, kind=float, most=None, open_end=False):
    """A parser of numbers within limits."""

    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        fits = value is not None and value >= least and (most is None or value <= most) and not (open_end and value == least)
        if not fits or value != value:
            limits = f"{'above' if open_end else 'of at least'} {least}" + ("" if most is None else f" and at most {most}")
            raise argparse.ArgumentTypeError(f"expected a number {limits}, found `{text}`")
        return value

    return parse


class Parser(argparse.ArgumentParser):
    def error(self, message):
        print(f"error: {message}", file=sys.stderr)
        sys.exit(2)


def arguments():
    top = Parser(prog="python -m girih.huggingface", allow_abbrev=False)
    commands = top.add_subparsers(dest="command", required=True, parser_class=Parser)
    text = commands.add_parser("generate", allow_abbrev=False)
    text.add_argument("--prompt", required=True)
    text.add_argument("--max-tokens", type=number(1, int), default=128)
    text.add_argument("--temperature", type=number(0, most=100), default=0.0)
    text.add_argument("--top-p", type=number(0, most=1, open_end=True), default=1.0)
    text.add_argument("--seed", type=number(0, int, most=2**63 - 1), default=0)
    text.add_argument("--json", action="store_true")
    text.add_argument("--profile", action="store_true")
    graph = commands.add_parser("export", allow_abbrev=False)
    compared = commands.add_parser("bench", allow_abbrev=False)
    for parser in (text, graph, compared):
        parser.add_argument("folder")
        parser.add_argument("--dtype", choices=sorted(load.DTYPES))
        parser.add_argument("--quantize", choices=load.QUANTISED)
    for parser in (graph, compared):
        parser.add_argument("--layer", type=number(0, int))
        parser.add_argument("--seq-len", type=number(1, int))
        parser.add_argument("--batch", type=number(1, int), default=1)
    compared.add_argument("--threads", type=number(1, int, most=1024))
    compared.add_argument("--rounds", type=number(1, int), default=7)
    compared.add_argument("--json", action="store_true")
    return top


#: Temporary folders of this process.
scratch: list[tempfile.TemporaryDirectory] = []


def write(text):
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as e:
        raise load.Unwritable(e.errno, e.strerror) from None


def run_generate(args):
    done = generate(
        Folder(args.folder), args.prompt, max_tokens=args.max_tokens, temperature=args.temperature, top_p=args.top_p, seed=args.seed,
        dtype=args.dtype, quantize=args.quantize, show=None if args.json else write, profile=args.profile,
    )  # fmt: skip
    write(json.dumps(dataclasses.asdict(done)) + "\n" if args.json else "\n")
    say(done)


def part(args):
    from .export import Part

    return Part(args.layer, args.seq_len, args.batch, args.dtype, args.quantize)


def run_bench(args):
    folder = Folder(args.folder)
    from .bench import bench, text

    found = bench(folder, part(args), args.threads, args.rounds)
    write((json.dumps(found) if args.json else text(found)) + "\n")


def run_export(args):
    """Writes the document as one line, and waits until standard input ends: files that it names are removed then."""
    # Modules may print: standard output is for the document only.
    answer, sys.stdout = os.fdopen(os.dup(1), "w"), sys.stderr
    os.dup2(2, 1)
    folder = Folder(args.folder)
    from .export import document

    made = tempfile.TemporaryDirectory(prefix="girih-")
    scratch.append(made)
    with made:
        with answer:
            answer.write(json.dumps(document(folder, part(args), Path(made.name))) + "\n")
        sys.stdin.read()


def main(argv=None) -> int:
    args = arguments().parse_args(argv)
    try:
        load.needs()
        {"generate": run_generate, "export": run_export, "bench": run_bench}[args.command](args)
    except FolderError as e:
        print(f"error: {e}", file=sys.stderr)
        return 1
    except load.Unwritable as e:
        # Python would write once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if e.errno == errno.EPIPE:
            return 141
        print(f"error: standard output cannot be written: {e.strerror}", file=sys.stderr)
        return 1
    return 0


def interrupted(*_):
    """Ends the process at Ctrl-C. An exception would not do: libraries catch it and go on, or make another one of it."""
    for folder in scratch:
        folder.cleanup()
    os.write(2, b"interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, interrupted)
    sys.exit(main())
