"""Counts phrases that make the project's sentences hard to read, and fails when there are more than tests/english.json allows.

    python tests/english.py              fails for a phrase that stands more often than it may
    python tests/english.py --list       shows each place, as FILE:LINE: PHRASE: sentence
    python tests/english.py --lower      writes the counts of now as the new limits, where they are lower

Read are comments of Rust and Python, docstrings, messages (strings of more than three words) and Markdown outside code. A sentence has a
subject, a verb and an object; each phrase below has a remedy.
"""

import argparse
import io
import json
import re
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMITS = ROOT / "tests/english.json"

# A phrase, and what to write instead.
PHRASES = {
    "a sentence begins with What": (r"(?:^|[.:] )What(?:ever)? (?!is|are|was|does|do|can|happens\b)", "name the thing: `The values that ...`"),
    "a sentence begins with Whether": (r"(?:^|[.:] )Whether ", "`Returns true if ...`, or name the condition"),
    "a sentence begins with Those": (r"(?:^|[.:] )Those ", "name what `those` stands for"),
    "a sentence begins with Of": (r"(?:^|[.:] )Of (?!course)", "put the subject first"),
    "of which": (r"\bof which\b", "`whose`, or two sentences"),
    "so many": (r"\bso many\b", "give the number its name"),
    "as many as": (r"\bas many(?: \w+)? as\b", "`the same number as`"),
    "is no": (r"(?<!there )\b(?:is|are) no (?!longer|more|less)\w+", "`is not a ...`"),
    "what ... is": (r"\b[Ww]hat (?:\w+ ){0,3}(?:is|are)(?: \w+)* (?:is|are|gets|comes)\b", "name the thing"),
}
# Folders of builds and of tools, the pages that are made from the source, and this file, which quotes the phrases.
GENERATED = ("docs/operations.md", "docs/models/decompositions.md", "docs/rules.md", "docs/models/functions.md", "docs/diagnostics.md", "docs/python/language.md")
SKIPPED = ("target/", ".venv", ".git/", "dist/", "build/", "tests/english.py", *GENERATED)


def rust(text):
    """The comments of Rust, joined into paragraphs with their first line, and its longer strings."""
    block, at = [], 0
    for number, line in enumerate(text.split("\n"), 1):
        comment = re.match(r"\s*//[/!]? ?(.*)", line)
        if comment:
            block, at = (block, at) if block else ([], number)
            block.append(comment[1])
            continue
        if block:
            yield at, block
            block = []
        behind = re.search(r"\s// (.*)", line)
        if behind:
            yield number, [behind[1]]
        for string in re.findall(r'"((?:[^"\\]|\\.)*)"', line):
            if len(string.split()) > 3:
                yield number, [string]
    if block:
        yield at, block


def python(text):
    """The comments and longer strings of Python."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return
    block, at, last = [], 0, -1
    for token in tokens:
        if token.type == tokenize.COMMENT:
            if block and token.start[0] != last + 1:
                yield at, block
                block = []
            block, at = (block, at) if block else ([], token.start[0])
            block.append(token.string.lstrip("# "))
            last = token.start[0]
        elif token.type == tokenize.STRING or tokenize.tok_name[token.type] == "FSTRING_MIDDLE":
            words = token.string.strip("rbfu\"'")
            if len(words.split()) > 3:
                yield token.start[0], words.split("\n")
    if block:
        yield at, block


def markdown(text):
    """The lines of Markdown outside code."""
    code, block, at = False, [], 0
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            code = not code
        if code or not line.strip() or line.lstrip().startswith(("```", "|", "#")):
            if block:
                yield at, block
            block = []
            if not code and line.startswith(("|", "#")):
                yield number, [line.strip("#| ")]
            continue
        if line.lstrip().startswith(("* ", "- ")) and block:
            yield at, block
            block = []
        block, at = (block, at) if block else ([], number)
        block.append(line.strip().removeprefix("* ").removeprefix("- "))
    if block:
        yield at, block


READERS = {".rs": rust, ".py": python, ".md": markdown}


def paragraphs(at, lines):
    """The paragraphs of a block that begins at a line, each with the line it begins at: a blank line ends one."""
    block, first = [], at
    for number, line in enumerate([*lines, ""], at):
        if line.strip():
            block, first = (block, first) if block else ([], number)
            block.append(line.strip())
        elif block:
            yield first, block
            block = []


def found():
    """Every place of a phrase: its file, line, name and the words around it."""
    for path in sorted(ROOT.rglob("*")):
        name = str(path.relative_to(ROOT))
        reader = READERS.get(path.suffix)
        if reader is None or name.startswith(SKIPPED):
            continue
        for at, lines in reader(path.read_text(errors="replace")):
            for first, paragraph in paragraphs(at, lines):
                words = " ".join(paragraph)
                # Names in code are nobody's English.
                plain = re.sub(r"`[^`]*`", lambda m: "x" * len(m[0]), words)
                for phrase, (pattern, _) in PHRASES.items():
                    for match in re.finditer(pattern, plain):
                        yield name, first + line_of(paragraph, match.end() - 1), phrase, words[max(0, match.start() - 20) : match.end() + 50].strip()


def line_of(paragraph, offset):
    """The line of a paragraph in which a character of its joined text stands, counted from 0."""
    for number, line in enumerate(paragraph):
        offset -= len(line) + 1
        if offset < 0:
            return number
    return len(paragraph) - 1


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--list", action="store_true", help="show each place")
    options.add_argument("--lower", action="store_true", help="write lower limits")
    options.add_argument("under", nargs="*", help="folders or files to list; all by default")
    given = options.parse_args()
    counts = dict.fromkeys(PHRASES, 0)
    for name, line, phrase, words in found():
        counts[phrase] += 1
        if given.list and (not given.under or name.startswith(tuple(given.under))):
            print(f"{name}:{line}: {phrase}: {words}")
    limits = json.loads(LIMITS.read_text()) if LIMITS.exists() else {}
    if given.lower:
        lowest = {p: min(n, limits.get(p, n)) for p, n in counts.items()}
        LIMITS.write_text(json.dumps(lowest, indent=1) + "\n")
        limits = lowest
    over = {p: n for p, n in counts.items() if n > limits.get(p, 0)}
    for phrase, n in over.items():
        print(f"{phrase}: {n} times, at most {limits.get(phrase, 0)}: write {PHRASES[phrase][1]}", file=sys.stderr)
    if over:
        print("python tests/english.py --list shows each place", file=sys.stderr)
        return 1
    if not given.list:
        print(f"English: {sum(counts.values())} phrases that the project avoids, at most {sum(limits.values())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
