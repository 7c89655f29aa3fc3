"""Writes the documentation as a site, and follows each of its links.

    docs/site.py OUT [--girih PROGRAM]

`SUMMARY.md` says which pages there are and in which order; mdBook (https://rust-lang.github.io/mdBook) makes them HTML with a
search. The README is the first page. A link to a file that is not a page leads to the project's repository. With a program, pages
of `girih explain` are made of the examples below and linked from a page of their own.

It fails for a page that `SUMMARY.md` does not name, a link to a file, a page or a heading that is not there, and a page that
mdBook refuses.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import urllib.parse
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
REPOSITORY = "https://github.com/girih/girih/blob/main"
# Pages that stand at the top of the repository.
TOP = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
EXPLAINED = {"softmax": ["examples/softmax.mlir"], "gemm": ["examples/gemm.mlir"],
             "rms_norm": ["-c", "torch.nn.RMSNorm(2048)(torch.randn(1, 32, 2048))"]}  # fmt: skip
# A link, or code, in which nothing is one.
LINK = re.compile(r"(?P<code>^```.*?^```|`[^`\n]*`)|(?P<before>\]\()(?P<to>[^)\s]+)(?P<after>\))", re.M | re.S)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--girih", type=Path)
    options = parser.parse_args()
    out = options.out.resolve()
    source = out.with_name(f"{out.name}-source")
    for folder in (out, source):
        shutil.rmtree(folder, ignore_errors=True)
    problems = gather(source / "src", options.girih is not None)
    (source / "book.toml").write_text(BOOK)
    built = subprocess.run(["mdbook", "build", "--dest-dir", out, source], capture_output=True, text=True)
    if built.returncode or "ERROR" in built.stderr or "WARN" in built.stderr:
        sys.exit(built.stderr)
    if options.girih:
        explain(options.girih.resolve(), out / "explained")
    # Without Rust's target for WebAssembly it says that it leaves the playground out.
    made = subprocess.run([sys.executable, ROOT / "crates/girih-web/site.py", out / "playground"])
    if made.returncode not in (0, 3):
        sys.exit("the playground is not built")
    if made.returncode == 0:
        page = out / "playground.html"
        page.write_text(page.read_text().replace("<h2 id=\"limits\"", OPEN + "<h2 id=\"limits\"", 1))
    problems += follow(out)
    if problems:
        sys.exit("\n".join(problems))
    pages = sum(1 for _ in out.rglob("*.html"))
    print(f"{pages} pages in {out}, all links lead somewhere")


#: On the page about the playground, where there is one.
OPEN = '<p><a href="playground/index.html"><strong>Open the playground</strong></a></p>\n'

BOOK = """[book]
title = "Girih"
description = "A tile compiler that shows its work"
language = "en"

[output.html]
default-theme = "light"
preferred-dark-theme = "navy"
git-repository-url = "https://github.com/girih/girih"

# Runnable examples would be sent to another host.
[output.html.playground]
runnable = false

[output.html.search]
limit-results = 30
"""


def gather(to, explained):
    """Copies the pages, with links as they are on the site; says which the summary lacks."""
    summary = (DOCS / "SUMMARY.md").read_text().replace("README.md", "index.md")
    if explained:
        pages = "".join(f"* [{name}](explained/{name}.html)\n" for name in EXPLAINED)
        write(to / "examples.md", f"# Compilations as pages\n\nWhat [the explorer](explain.md) writes of these examples:\n\n{pages}")
        summary = summary.replace("- [The explorer](explain.md)\n", "- [The explorer](explain.md)\n  - [Examples](examples.md)\n")
    write(to / "SUMMARY.md", summary)
    named = {link["to"] for link in LINK.finditer(summary)}
    problems = []
    places = {name: ROOT / name for name in TOP} | {str(p.relative_to(DOCS)): p for p in DOCS.rglob("*.md")}
    places = {name.replace("README.md", "index.md"): path for name, path in places.items()}
    for name, path in places.items():
        if name == "SUMMARY.md":
            continue
        if name not in named:
            problems.append(f"{path.relative_to(ROOT)} is not in docs/SUMMARY.md")

        def link(m, path=path, name=name):
            return m["code"] or m["before"] + moved(m["to"], path, name, places, problems) + m["after"]

        write(to / name, LINK.sub(link, path.read_text()))
    for picture in DOCS.rglob("*.png"):
        place = to / picture.relative_to(DOCS)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(picture, place)
    return problems


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def moved(link, path, name, places, problems):
    """A link of a page as it is on the site."""
    if re.match(r"[a-z]+:|#", link):
        return link
    file, _, heading = link.partition("#")
    target = Path(os.path.normpath(path.parent / file))
    if not target.exists():
        problems.append(f"{path.relative_to(ROOT)}: {link} leads nowhere")
        return link
    for other, place in places.items():
        if place == target:
            relative = os.path.relpath(other, os.path.dirname(name) or ".")
            return relative + (f"#{heading}" if heading else "")
    if DOCS in target.parents and target.is_file() and target.suffix == ".png":
        return os.path.relpath(target.relative_to(DOCS), os.path.dirname(name) or ".")
    return f"{REPOSITORY}/{target.relative_to(ROOT)}"


def explain(girih, to):
    to.mkdir(parents=True)
    for name, arguments in EXPLAINED.items():
        subprocess.run([girih, "explain", *arguments, "--html", to / f"{name}.html"], cwd=ROOT, check=True)


class Page(HTMLParser):
    """The links of a page and what can be linked to on it."""

    def __init__(self, text):
        super().__init__()
        self.links, self.places = [], {""}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.places |= {given[k] for k in ("id", "name") if given.get(k)}
        if link := given.get("href" if tag in ("a", "link") else "src"):
            self.links.append(link)


def follow(out):
    """Links of the site that lead nowhere."""
    pages = {path: Page(path.read_text()) for path in out.rglob("*.html") if "explained" not in path.parts}
    problems = []
    for path, page in pages.items():
        # These hold all pages once more, or are shown where an address is wrong, from another folder.
        if path.name in ("print.html", "404.html", "toc.html"):
            continue
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc or link.startswith("//"):
                continue
            target = Path(os.path.normpath(path.parent / urllib.parse.unquote(parts.path))) if parts.path else path
            if not target.exists():
                problems.append(f"{path.relative_to(out)}: {link} leads nowhere")
            elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].places:
                problems.append(f"{path.relative_to(out)}: {link}: the page has no such heading")
    return problems


if __name__ == "__main__":
    main()
