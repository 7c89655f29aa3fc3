"""What ``girih check script.py`` and ``girih lsp`` ask: lines of JSON in, ``{"path": ..., "text": ...}``, lines of JSON out,
a list of problems each. Without ``text`` the file is read."""

import json
import os
import sys

from girih.scripts import check_file, check_text


def main():
    # What a compile-time `print` of a kernel says is not an answer.
    answers, sys.stdout = os.fdopen(os.dup(1), "w"), sys.stderr
    for line in sys.stdin:
        asked = json.loads(line)
        path, text = asked["path"], asked.get("text")
        problems = check_file(path) if text is None else check_text(text, path)
        print(json.dumps([problem.to_json() for problem in problems]), file=answers, flush=True)


main()
