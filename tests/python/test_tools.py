"""`girih.assemble`, `girih.disassemble`, `girih.check`."""

import pytest

import girih

TEXT = """cuda_tile.module @m {
  entry @k(%p: tile<ptr<f32>>) {
    %a = constant <f32: 1.0> : tile<f32>
    return
  }
}
"""


def test_there_and_back():
    for version in ("13.1", "13.2", "13.3", "13.4"):
        bytecode = girih.assemble(TEXT, version)
        assert bytecode[:8] == b"\x7fTileIR\0" and bytecode[8:10] == bytes(map(int, version.split(".")))
        text = girih.disassemble(bytecode)
        assert "entry @k" in text
        assert girih.assemble(text, version) == bytecode


def test_programs_come_as_text_or_bytes():
    assert girih.disassemble(TEXT) == girih.disassemble(TEXT.encode()) == girih.disassemble(bytearray(TEXT.encode()))
    with pytest.raises(TypeError, match="str, bytes or bytearray, not list"):
        girih.disassemble([1])


def test_locations_are_shown_when_asked_for():
    assert "loc(" not in girih.disassemble(TEXT)
    assert "loc" in girih.disassemble(TEXT, debug=True)


def test_a_wrong_text():
    with pytest.raises(girih.ProgramError) as raised:
        girih.check(TEXT.replace("tile<f32>\n", "tile<f16>\n"), filename="k.mlir")
    error = raised.value
    assert isinstance(error, ValueError)
    assert (error.filename, error.line) == ("k.mlir", 3)
    assert error.code.startswith("E0") and len(error.diagnostics) >= 1
    assert str(error).startswith(f"k.mlir:3:{error.column}: error[{error.code}]: ")


def test_a_wrong_file_of_bytes():
    whole = girih.assemble(TEXT, "13.3")
    with pytest.raises(girih.ProgramError) as raised:
        girih.check(whole[:-4])
    error = raised.value
    assert error.line is None and 0 <= error.offset <= len(whole)
    assert f"byte {error.offset}" in str(error)


def test_a_version_that_is_none():
    with pytest.raises(ValueError, match="unknown bytecode version `12.0`; .* are 13.1, 13.2, 13.3, 13.4"):
        girih.assemble(TEXT, "12.0")


def test_a_valid_program_has_no_complaints():
    assert girih.check(TEXT) == []
