"""A student of compilers: one kernel in an afternoon, its page in a browser, and a schedule by hand.

    .venv/bin/python tests/walks/student.py [--keep DIR]
"""

import shutil

from walk import Walk, Wrong

LEFT = {"girih explain kernel.mlir --serve": "it serves until it is stopped", "girih explain model.onnx": "the model is the reader's"}

with Walk("student", leave=LEFT, checkout=["pip install ."]) as walk:
    walk.run("pip install .")
    walk.follow("docs/afternoon.md")
    walk.follow("docs/explain.md")
    walk.follow("docs/product.md")
    walk.follow("docs/schedule.md")
    browser = shutil.which("chromium")
    for page in ("gemm.html", "softmax.html") if browser else ():
        shown = walk.run(f"{browser} --headless --no-sandbox --disable-gpu --virtual-time-budget=5000 --dump-dom {page}")
        if "class=\"line" not in shown:
            raise Wrong(f"{page} shows no lines in a browser:\n{shown[:2000]}")
    if not browser:
        print("student: no Chromium (apt install chromium): the pages were not opened")
