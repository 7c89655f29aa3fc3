"""Python for one page of a walk: a line of JSON for each block, `[file, what the page shows]`, and one for each answer."""

import json
import os
import pdb
import sys
from pathlib import Path

import pages

# Modules of the reader's are not to be found here.
del sys.path[0]
# Python's own debugger reads what `pages.said` types.
sys.breakpointhook = lambda: pdb.Pdb(nosigint=True, readrc=False).set_trace(sys._getframe(1))
# Text that libraries print past Python goes to standard error, not between the answers.
answers, names = os.fdopen(os.dup(1), "w"), {"__name__": "__main__"}
os.dup2(2, 1)
for line in iter(sys.stdin.readline, ""):
    path, shown = json.loads(line)
    try:
        code = compile(Path(path).read_text(), path, "exec")
        answer = [True, pages.said(lambda code=code: exec(code, names), shown)]
    except Exception as e:
        answer = [False, f"{type(e).__name__}: {e}"]
    answers.write(json.dumps(answer) + "\n")
    answers.flush()
