"""How long `girih lsp` takes to answer on a long file: `python bench/lsp.py target/release/girih [lines]`."""

import json
import statistics
import subprocess
import sys
import time

ROUNDS = 20


def kernel(lines):
    """A tile program of `lines` lines: a chain of additions, as unrolled kernels are."""
    head = [
        "cuda_tile.module @long {",
        "  entry @long(%a: tile<ptr<f32>>) {",
        "    %v0 = constant <f32: 1.0> : tile<128xf32>",
    ]
    body = [f"    %v{i} = addf %v{i - 1}, %v{max(0, i - 7)} : tile<128xf32>" for i in range(1, lines - 4)]
    return "\n".join([*head, *body, "  }", "}"]) + "\n"


class Server:
    def __init__(self, command):
        self.process = subprocess.Popen([command, "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.count = 0

    def send(self, method, params, ask=False):
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if ask:
            self.count += 1
            message["id"] = self.count
        text = json.dumps(message).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(text), text))
        self.process.stdin.flush()

    def read(self):
        length = 0
        while (line := self.process.stdout.readline().strip()) != b"":
            name, value = line.split(b":")
            length = int(value) if name.lower() == b"content-length" else length
        return json.loads(self.process.stdout.read(length))

    def until(self, test):
        while not test(message := self.read()):
            pass
        return message

    def ask(self, method, params):
        self.send(method, params, ask=True)
        answer = self.until(lambda m: m.get("id") == self.count)
        assert "error" not in answer, answer
        return answer["result"]

    def diagnostics(self):
        return self.until(lambda m: m.get("method") == "textDocument/publishDiagnostics")


def main():
    command = sys.argv[1] if len(sys.argv) > 1 else "target/release/girih"
    lines = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    text = kernel(lines)
    assert text.count("\n") == lines
    server = Server(command)
    server.ask("initialize", {"capabilities": {}, "processId": None, "rootUri": None})
    server.send("initialized", {})
    uri = "file:///long.mlir"
    document = {"uri": uri}
    middle = {"line": lines // 2, "character": 14}
    number = lines // 2 - 2
    times = {}

    def timed(name, act):
        for _ in range(ROUNDS):
            start = time.perf_counter()
            act()
            times.setdefault(name, []).append(1e3 * (time.perf_counter() - start))

    start = time.perf_counter()
    server.send("textDocument/didOpen", {"textDocument": {**document, "languageId": "mlir", "version": 1, "text": text}})
    opened = server.diagnostics()
    times["open"] = [1e3 * (time.perf_counter() - start)]
    assert opened["params"]["diagnostics"] == [], opened
    version = 1

    def edit():
        nonlocal version
        version += 1
        changed = text.replace(f"%v{number} = addf", f"%v{number} = subf" if version % 2 else f"%v{number} = mulf")
        change = {"textDocument": {**document, "version": version}, "contentChanges": [{"text": changed}]}
        server.send("textDocument/didChange", change)
        server.diagnostics()

    at = {"textDocument": document, "position": middle}
    options = {"tabSize": 2, "insertSpaces": True}
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": lines, "character": 0}}
    timed("change", edit)
    timed("hover", lambda: server.ask("textDocument/hover", at))
    timed("completion", lambda: server.ask("textDocument/completion", at))
    timed("definition", lambda: server.ask("textDocument/definition", {**at, "position": {**middle, "character": 19}}))
    timed("rename", lambda: server.ask("textDocument/rename", {**at, "position": {**middle, "character": 5}, "newName": "%sum"}))
    timed("formatting", lambda: server.ask("textDocument/formatting", {"textDocument": document, "options": options}))
    timed("inlay hints", lambda: server.ask("textDocument/inlayHint", {"textDocument": document, "range": whole}))
    server.ask("shutdown", None)
    server.send("exit", None)
    for name, each in times.items():
        print(f"{name:12} {statistics.median(each):6.1f} ms, at most {max(each):.1f}")
    # The limit for an editor while somebody types; the first look at a file may take longer.
    slow = [name for name, each in times.items() if statistics.median(each) > 30]
    sys.exit(f"slower than 30 ms: {', '.join(slow)}" if slow else 0)


if __name__ == "__main__":
    main()
