"""Files that appear whole or not at all."""

import os
import threading
from pathlib import Path


def write_whole(path, text: str) -> None:
    """Writes a file, which appears whole or not at all; anything but a regular file (a pipe, a terminal) is written directly."""
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    beside = path.with_name(f"{path.name}.tmp.{os.getpid()}.{threading.get_ident()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
