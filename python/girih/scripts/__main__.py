"""The process behind ``girih check script.py`` and ``girih lsp``: lines of JSON in, ``{"path": ..., "text": ...}``, lines of
JSON out, a list of problems each. Without ``text`` the file is read."""

import json
import os
import sys

from girih.scripts import check_file, check_text


def main():
    # The output of a compile-time `print` in a kernel must not mix with the answers.
    answers, sys.stdout = os.fdopen(os.dup(1), "w"), sys.stderr
    for line in sys.stdin:
        asked = json.loads(line)
        path, text = asked["path"], asked.get("text")
        problems = check_file(path) if text is None else check_text(text, path)
        print(json.dumps([problem.to_json() for problem in problems]), file=answers, flush=True)


main()
