"""The process behind ``girih check script.py`` and ``girih lsp``: lines of JSON in, ``{"path": ..., "text": ...}``, lines of
JSON out, ``{"problems": [...], "kernels": [...]}`` each. Without ``text`` the file is read, and its kernels are left out."""

import json
import os
import sys

from girih.scripts import check_file
from girih.scripts.check import look_at


def main():
    # The output of a compile-time `print` in a kernel must not mix with the answers.
    answers, sys.stdout = os.fdopen(os.dup(1), "w"), sys.stderr
    for line in sys.stdin:
        asked = json.loads(line)
        path, text = asked["path"], asked.get("text")
        problems, kernels = (check_file(path), []) if text is None else look_at(text, path)
        answer = {"problems": [p.to_json() for p in problems], "kernels": [k.to_json() for k in kernels]}
        print(json.dumps(answer), file=answers, flush=True)


main()
