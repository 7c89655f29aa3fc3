"""Pages of the documentation: their blocks, and whether what happens is what they show."""

import contextlib
import doctest
import io
import re
import sys


def blocks(text):
    """The blocks of a page, as (language, code, what a block of text behind it shows)."""
    found = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S)
    return [(of, code, next[1] if next[0] == "text" else "") for (of, code), next in zip(found, [*found[1:], ("", "")])]


def commands(console):
    """The commands of a block, each with what the page shows behind it."""
    return re.findall(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", console, re.M)


def agrees(shown, said):
    """True if a program said what a page shows: `...` is any text, spaces count as one, all numbers of bytes are alike. Where the
    debugger stands, at the breakpoint or behind it, depends on Python's version."""
    plain = [re.sub(r"(\d[\d.]*|\.\.\.) +(B|KiB|MiB)\b", "# B", re.sub(r"^> .*\n-> .*\n", "", t, flags=re.M)) for t in (shown, said)]
    return doctest.OutputChecker().check_output(*plain, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)


def said(action, shown):
    """The text that an action prints, the message of its exception included if the page shows any text. A debugger is typed the commands that
    the page shows."""
    out, typed = io.StringIO(), re.findall(r"^\(Pdb\) (.*)$", shown, re.M)

    class Typed:
        def readline(self):
            line = typed.pop(0) + "\n" if typed else ""
            out.write(line)
            return line

    stdin, sys.stdin = sys.stdin, Typed()
    try:
        with contextlib.redirect_stdout(out):
            action()
    except Exception as e:
        if not shown:
            raise
        out.write(f"{e}\n")
    finally:
        sys.stdin = stdin
    return re.sub(r"/\S*/(?=kernels\.py)", "", out.getvalue())
