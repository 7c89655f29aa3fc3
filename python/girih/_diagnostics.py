"""The diagnostics of a tile program."""

from typing import NamedTuple, Optional

from girih.frontend.errors import GirihError


class Diagnostic(NamedTuple):
    """One message. A line and a column (from 1) point into text, an offset into the bytes of the program."""

    severity: str
    code: str
    message: str
    filename: str
    line: Optional[int]
    column: Optional[int]
    offset: Optional[int]
    help: Optional[str]

    def __str__(self):
        place = self.filename
        if self.line is not None:
            place += f":{self.line}:{self.column}"
        elif self.offset is not None:
            place += f": byte {self.offset}"
        text = f"{place}: {self.severity}[{self.code}]: {self.message}"
        return f"{text}\n  help: {self.help}" if self.help else text


class ProgramError(GirihError, ValueError):
    """A program was refused. ``diagnostics`` has every message; the other attributes are those of the first error."""

    def __init__(self, diagnostics):
        self.diagnostics = list(diagnostics)
        super().__init__("\n".join(str(d) for d in self.diagnostics))
        first = next((d for d in self.diagnostics if d.severity == "error"), None)
        self.code = first.code if first else None
        self.filename = first.filename if first else None
        self.line = first.line if first else None
        self.column = first.column if first else None
        self.offset = first.offset if first else None
