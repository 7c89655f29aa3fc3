"""`girih check script.py`: kernels of a script that is not run."""

import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

import girih
from girih.scripts import check_file, check_text
from girih.scripts.check import look_at

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
HEAD = "import girih\nimport girih.language as tl\n"


def found(text, path="/nowhere/script.py"):
    return [(p.severity, p.line - 2, p.message) for p in check_text(HEAD + textwrap.dedent(text).lstrip("\n"), path)]


def test_the_script_is_not_run(tmp_path):
    mark = tmp_path / "ran"
    text = f"""
    open({str(mark)!r}, "w")
    import torch
    N = open({str(mark)!r}, "w")
    @girih.jit
    def kernel(x, y=open({str(mark)!r}, "w"), N: tl.constexpr = 64):
        tl.store(x + tl.arange(0, N), 1.0)
    class A:
        open({str(mark)!r}, "w")
    with open({str(mark)!r}, "w") as f:
        pass
    kernel[1](open({str(mark)!r}, "w"))
    """
    # Another test may have imported it.
    before = set(sys.modules)
    assert found(text) == []
    assert not mark.exists() and "torch" not in set(sys.modules) - before


def test_what_is_right_has_no_problems():
    """No example, and no kernel of the tests that runs, is refused."""
    wrong = {}
    for path in [*ROOT.glob("examples/python/*.py"), *HERE.glob("test_jit*.py"), *ROOT.glob("bench/*.py")]:
        problems = [p for p in check_file(str(path)) if p.severity == "error"]
        # Tests of mistakes have them on purpose: each says the message that it expects.
        text = path.read_text()
        wrong |= {f"{path.name}:{p.line}": p.message for p in problems if not expected(text, p.message)}
    assert wrong == {}


def expected(text, message):
    patterns = re.findall(r'match=r?f?"(.*?)"(?:\)|,)', text) + re.findall(r'"([^"\n]{12,})" in str\(', text)
    return any(re.search(pattern, message) for pattern in patterns if "{" not in pattern)


def test_mistakes_that_need_no_launch_are_found():
    """The checker finds the mistakes with known messages that lie in the kernel itself, with the same message and
    line."""
    messages = (HERE / "mistakes/messages.txt").read_text()
    told = re.findall(r"^(?:CompilationError|UnsupportedError): kernels\.py:LINE:(\d+): (.*)$", messages, re.M)
    problems = [p for path in sorted((HERE / "mistakes").glob("*.py")) for p in check_file(str(path))]
    seen = {(str(p.column), re.sub(r"at line \d+", "at line LINE", p.message)) for p in problems}
    missing = [m for m in told if m not in seen]
    # Missing are mistakes in which a launch gives facts that no script states: arrays of a type, constants of a value.
    assert len(missing) <= len(told) // 5, missing


def test_arguments_are_guessed_from_the_body_and_from_launches():
    text = """
    SIZE = 32
    @girih.autotune(configs=[girih.Config({"BLOCK": b}) for b in (16, 64)], key=["n"])
    @girih.jit
    def gather(x, at, out, n, scale, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        where = helper(at, i, i < n)
        tl.store(out + i, tl.load(x + where, i < n) * scale, i < n)
    @girih.jit
    def helper(p, i, mask):
        return tl.load(p + i, mask)
    @girih.jit
    def by_launch(x, KIND: tl.constexpr, N: tl.constexpr):
        tl.static_assert(KIND == "fast")
        tl.static_assert(N == 32)
        tl.store(x, 1.0)
    by_launch[1](array, KIND="fast", N=SIZE)
    """
    assert found(text) == []


def test_errors_have_their_places():
    text = """
    @girih.jit
    def helper(v):
        return tl.exq(v)
    @girih.jit
    def kernel(x, N: tl.constexpr):
        tl.store(x + tl.arange(0, N), helper(tl.load(x + tl.arange(0, N))))
    """
    (problem,) = check_text(HEAD + textwrap.dedent(text).lstrip("\n"), "/nowhere/script.py")
    assert (problem.line, problem.column, problem.end_column) == (5, 12, 18)
    assert "no attribute `exq`" in problem.message and problem.help == "did you mean `exp`?"
    assert problem.calls == (("/nowhere/script.py", 8, 35, "helper"),)


def test_several_kernels_several_errors():
    text = """
    @girih.jit
    def first(x):
        tl.store(x, nothing)
    def function(n):
        @girih.jit
        def second(x):
            try:
                tl.store(x, n)
            finally:
                pass
    """
    assert [(s, line) for s, line, _ in found(text)] == [("error", 3), ("error", 7)]


def test_what_only_a_run_knows_is_a_note():
    text = """
    import elsewhere
    from torch import helper
    @girih.jit
    def one(x):
        tl.store(x, helper(1))
    @girih.jit
    def two(x, F: tl.constexpr):
        tl.store(x, F(tl.load(x)))
    @girih.jit
    def three(x):
        tl.store(x, elsewhere.SIZE)
    """
    assert [(s, line) for s, line, _ in found(text)] == [("note", 4), ("note", 7), ("note", 10)]
    assert "knows `helper`" in found(text)[0][2] and "constant `F`" in found(text)[1][2]


def test_numbers_of_numpy_are_known():
    text = """
    import numpy as np
    EPS = np.float32(1e-5)
    SCALE = float(np.sqrt(np.float64(2.0))) / np.finfo(np.float32).max
    @girih.jit
    def right(x, n):
        i = tl.arange(0, 64)
        tl.store(x + i, tl.load(x + i) * SCALE + EPS + np.pi, mask=i < n)
    @girih.jit
    def wrong(x):
        tl.store(x + np.arange(0, 64), EPS)
    """
    assert found(text) == [("error", 10, "`arange` is a function of numpy, which kernels cannot call")]


def test_files_beside_the_script_are_read_and_not_run(tmp_path):
    (tmp_path / "parts.py").write_text(HEAD + "raise SystemExit\n@girih.jit\ndef half(v):\n    return tl.exq(v)\nN = 16\nM = [].pop()\n")
    script = tmp_path / "script.py"
    script.write_text(HEAD + "from parts import half, N, M\n@girih.jit\ndef kernel(x):\n    tl.store(x + tl.arange(0, N), half(1.0))\n"
                      "@girih.jit\ndef other(x):\n    tl.store(x, M)\n")  # fmt: skip
    error, note = sorted(check_file(str(script)), key=lambda p: p.severity)
    assert error.file == str(tmp_path / "parts.py") and error.line == 6
    assert note.severity == "note" and "`M`" in note.message


@pytest.mark.parametrize(
    "text",
    ["def f(:\n", "x = (\n", "\0", "@girih.jit\n", "import girih\n@girih.jit\ndef f(x): return\n" + "(" * 500, "a" * 100000,
     "import girih\n@girih.jit\nclass A: pass\n", "import girih\n@girih.jit\ndef f(*x): pass\n", "from . import *\nfrom .. import a\n",
     "import girih\nfrom girih import *\n@jit\ndef f(x):\n    f(x)\n", "import girih\n@girih.jit\ndef f(x): f[x]\n"],
)  # fmt: skip
def test_bad_input_is_told(text):
    for problem in check_text(text, "/nowhere/script.py"):
        assert problem.message and problem.line >= 1


def test_every_script_ends(tmp_path):
    """Scripts cut short at every line, and with words replaced, give problems and no exception."""
    text = (ROOT / "examples/python/layer_norm.py").read_text()
    lines = text.splitlines(True)
    for n in range(0, len(lines), 3):
        check_text("".join(lines[:n]), str(ROOT / "examples/python/layer_norm.py"))
    for word, other in [("constexpr", "load"), ("tl.load", "tl.store"), ("girih.jit", "girih.autotune"), ("def ", "class ")]:
        check_text(text.replace(word, other), str(ROOT / "examples/python/layer_norm.py"))


def command(*args, text=None):
    beside = pathlib.Path(sys.executable).with_name("girih")
    program = beside if beside.exists() else girih._library.find("girih")
    env = {**os.environ, "GIRIH_PYTHON": sys.executable}
    return subprocess.run([program, *args], capture_output=True, text=True, env=env, input=text)


def test_the_command(write):
    script = write("kernels.py", HEAD + "@girih.jit\ndef kernel(x):\n    tl.store(x, tl.exq(1.0))\n")
    told = command("check", script)
    assert told.returncode == 1 and told.stdout == ""
    assert "error[E0119]: the module `girih.language` has no attribute `exq`" in told.stderr
    assert "kernels.py:5:17" in told.stderr and "did you mean `exp`?" in told.stderr
    parsed = [json.loads(line) for line in command("check", "--json", script).stdout.splitlines()]
    assert [(d["code"], d["line"], d["column"]) for d in parsed] == [("E0119", 5, 17)]
    syntax = write("syntax.py", "def f(:\n")
    assert "E0101" in command("check", syntax).stderr
    note = write("note.py", HEAD + "import elsewhere\n@girih.jit\ndef kernel(x):\n    tl.store(x, elsewhere.N)\n")
    told = command("check", note, ROOT / "examples/python/softmax.py")
    assert told.returncode == 0 and "note[W0909]" in told.stderr
    assert command("check", write("empty.py", "")).returncode == 0
    assert "cannot be read" in command("check", "nothing.py").stderr


class Editor:
    """`girih lsp`, with one script open."""

    def __init__(self, uri, text):
        beside = pathlib.Path(sys.executable).with_name("girih")
        program = beside if beside.exists() else girih._library.find("girih")
        env = {**os.environ, "GIRIH_PYTHON": sys.executable}
        self.server = subprocess.Popen([program, "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        self.uri, self.lines, self.next, self.diagnostics = uri, text.splitlines(), 0, None
        self.ask("initialize", capabilities={})
        self.tell("initialized")
        self.tell("textDocument/didOpen", textDocument={"uri": uri, "languageId": "python", "version": 1, "text": text})

    def write(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.server.stdin.flush()

    def read(self):
        length = int(re.fullmatch(rb"Content-Length: (\d+)\r\n", self.server.stdout.readline())[1])
        assert self.server.stdout.readline() == b"\r\n"
        message = json.loads(self.server.stdout.read(length))
        if message.get("method") == "textDocument/publishDiagnostics":
            self.diagnostics = message["params"]["diagnostics"]
        return message

    def tell(self, method, **params):
        self.write({"method": method, "params": params})

    def ask(self, method, **params):
        self.next += 1
        self.write({"id": self.next, "method": method, "params": params})
        while (message := self.read()).get("id") != self.next:
            pass
        return message["result"]

    def about(self, method, place=None):
        """The answer about the whole text, or about the place where a piece of it begins."""
        params = {"textDocument": {"uri": self.uri}, "context": {"diagnostics": []}}
        if place is not None:
            line = next(n for n, text in enumerate(self.lines) if place in text)
            params["position"] = {"line": line, "character": self.lines[line].index(place)}
        else:
            params["range"] = {"start": {"line": 0, "character": 0}, "end": {"line": len(self.lines), "character": 0}}
        return self.ask(f"textDocument/{method}", **params)

    def end(self):
        while self.diagnostics is None:
            self.read()
        self.ask("shutdown")
        self.tell("exit")
        self.server.stdin.close()
        assert self.server.wait() == 0


def test_an_editor_is_told_too(write):
    text = HEAD + "@girih.jit\ndef kernel(x):\n    tl.store(x, tl.exq(1.0))\n"
    editor = Editor(write("a folder/kernels.py", HEAD).as_uri(), text)
    assert editor.about("completion", "import") is None
    [action] = editor.about("codeAction")
    assert action["title"] == "Replace `exq` by `exp`" and action["isPreferred"]
    [edit] = action["edit"]["changes"][editor.uri]
    assert edit["newText"] == "exp" and edit["range"]["start"] == {"line": 4, "character": 19}
    editor.end()
    [found] = editor.diagnostics
    assert found["code"] == "E0119" and found["range"]["start"]["line"] == 4 and "exq" in found["message"]


def test_an_editor_shows_types(write):
    text = HEAD + (
        "@girih.jit\ndef kernel(x, out, n, BLOCK: tl.constexpr, D: tl.constexpr = 3):\n    i = tl.arange(0, BLOCK)\n"
        "    é = tl.load(x + i, i < n)\n    zero = 0.0\n    tl.store(out + i, é * D + zero)\nkernel[(1,)](0, 0, 3, BLOCK=32)\n"
    )
    editor = Editor(write("types.py", HEAD).as_uri(), text)
    shown = {}
    for hint in editor.about("inlayHint"):
        line, column = hint["position"]["line"], hint["position"]["character"]
        shown.setdefault(line, []).append((editor.lines[line][:column].split()[-1], hint["label"]))
    assert shown == {
        3: [("kernel(x", ": pointer<float32>"), ("out", ": pointer<float32>"), ("n", ": int32"), ("tl.constexpr", " = 32")],
        4: [("i", ": int32[32]")],
        5: [("é", ": float32[32]")],
    }
    hover = lambda place: (editor.about("hover", place) or {"contents": {"value": None}})["contents"]["value"]  # noqa: E731
    assert "é: float32[32]" in hover("é * D") and "D = 3" in hover("D + zero")
    assert hover("load(x").startswith("```python\nload(pointer, mask=None") and "The value at an address" in hover("load(x")
    assert hover("girih.language") is None
    assert [s["name"] for s in editor.about("documentSymbol")] == ["kernel"]
    data = editor.about("semanticTokens/full")["data"]
    line = column = 0
    words = []
    for along, over, length, kind, modifiers in zip(*[iter(data)] * 5):
        line, column = line + along, over + (column if along == 0 else 0)
        words.append((editor.lines[line][column : column + length], kind, modifiers))
    assert words[:5] == [("x", 1, 4), ("out", 1, 4), ("n", 1, 4), ("BLOCK", 1, 5), ("D", 1, 5)]
    assert ("arange", 0, 2) in words and ("é", 2, 4) in words and ("BLOCK", 2, 1) in words
    editor.end()
    assert editor.diagnostics == []


def test_a_kernel_that_uses_pytorch_is_told(write):
    pytest.importorskip("torch.nn")
    kernel = "@girih.jit\ndef kernel(x):\n    tl.store(x + {}, 1.0)\n"
    for imports, used in [("import torch", "torch.arange(0, 64)"), ("import torch.nn.functional as F", "F.relu(1)")]:
        (problem,) = check_text(HEAD + imports + "\n" + kernel.format(used), "kernels.py")
        assert problem.code == "E0121" and "is a function of torch, which kernels cannot call" in problem.message
    # Scripts that only import it are checked without.
    code = f"import sys; from girih.scripts import check_text; check_text({HEAD + 'import torch' + chr(10) + kernel.format(0)!r}, 'k.py')"
    done = subprocess.run([sys.executable, "-c", code + "; print('torch' in sys.modules)"], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done


def test_the_names_of_a_kernel_have_types():
    text = HEAD + (
        "@girih.jit\ndef half(v, by: tl.constexpr):\n    return v / by\n\n@girih.jit\n"
        "def kernel(x, n, BLOCK: tl.constexpr, C: tl.constexpr):\n    i = tl.arange(0, BLOCK)\n"
        "    v = half(tl.load(x + i, i < n), 2)\n    total = 0.0\n    for k in range(n):\n        total += tl.sum(v[:, None], 0) * C\n"
        "    tl.store(x + i, v)\nkernel[(1,)](None, 3, BLOCK=128)\n"
    )
    problems, kernels = look_at(text, "kernels.py")
    assert problems == [] and [k.name for k in kernels] == ["half", "kernel"]
    assert [k.guessed for k in kernels] == [[], ["C"]]
    lines = text.splitlines()
    seen = {}
    for name in kernels[1].names:
        # A place is the name's own.
        assert lines[name.line - 1][name.column - 1 : name.end_column - 1] == name.name
        if name.role != "read":
            seen[name.name] = (name.kind, name.types)
    assert seen == {
        "v": ("tile", ["float32[128]"]), "by": ("constant", ["2"]), "x": ("address", ["pointer<float32>"]),
        "n": ("tile", ["int32"]), "BLOCK": ("constant", ["128"]), "C": ("constant", ["64"]), "i": ("tile", ["int32[128]"]),
        "total": ("tile", ["float32[1]"]), "k": ("tile", ["int32"]),
    }  # fmt: skip
    load = next(n for n in kernels[1].names if n.name == "load")
    assert load.kind == "function" and load.types[0].startswith("load(pointer, mask=None") and "Example:" in load.doc
