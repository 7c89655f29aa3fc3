"""Headers of arrays and tile programs that say more than there is."""

import os
import struct


def npy(header, data=b""):
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def arrays():
    for n in (10**9, 2**40, 2**62, 2**63 - 1, 2**64, 10**30, -1):
        yield f"npy_{n}", npy(f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({n}, {n}), }}")
    yield "npy_rank", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (" + "1," * 20000 + "), }")
    yield "npy_nested", npy("(" * 30000)
    yield "npy_cut", b"\x93NUMPY\x02\x00\xff\xff\xff\xff"


def program(body):
    return f"cuda_tile.module @m {{\n  entry @k() {{\n{body}\n    return\n  }}\n}}\n"


def programs():
    yield "tile_large", program("    %a = iota : tile<16777216xi32>")
    yield "tile_too_large", program("    %a = iota : tile<16777217xi32>")
    yield "tile_overflow", program("    %a = constant <f32: 1.0> : tile<4294967296x4294967296xf32>")
    # All of them live until the last is made.
    many = [f"    %v{i} = iota : tile<16777216xi32>" for i in range(80)]
    many += [f"    %s{i} = xori %v{i}, %v{i} : tile<16777216xi32>" for i in range(80)]
    yield "tile_many", program("\n".join(many))
    yield "tile_nested", program("    %c = constant <i1: true> : tile<i1>\n" + "if %c {\n" * 5000 + "}\n" * 5000)
    yield "tile_types", f"cuda_tile.module @m {{\n  entry @k(%p: {'tile<' * 5000}f32{'>' * 5000}) {{ return }}\n}}\n"


def commands(folder):
    for name, content in arrays():
        path = os.path.join(folder, f"{name}.npy")
        with open(path, "wb") as f:
            f.write(content)
        yield name, ["run", "--device", "eval", "-c", "x + 1", "--arg", f"x={path}"]
    for name, text in programs():
        path = os.path.join(folder, f"{name}.mlir")
        with open(path, "w") as f:
            f.write(text)
        yield name, ["check", path]
        yield name, ["compile", "--ir", "c", path]
        yield name, ["run", "--device", "eval", "--grid", "1", "--json", path]
