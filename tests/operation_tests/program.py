"""Small tile programs with an expectation for each of their outputs.

A `Program` is written line by line; `expect` stores a value to a parameter of its own and states the expected contents.
`run` executes it on the evaluator, compares with the expectations, then natively, and compares with the evaluator.
"""

import os
import subprocess
from dataclasses import dataclass, field

import numpy as np

from . import formats as F

# Elements of the programs that go element by element.
N = 512


@dataclass
class Tile:
    """An SSA value of tile type."""

    name: str
    dtype: str
    shape: tuple

    @property
    def type(self):
        return tile(self.dtype, self.shape)

    def __str__(self):
        return self.name


def tile(dtype, shape):
    return "tile<" + "".join(f"{n}x" for n in shape) + dtype + ">"


@dataclass
class Case:
    """One output and its expected contents."""

    name: str
    param: str
    dtype: str
    want: np.ndarray | None
    # Which elements count (all of them when None), and how far reals may lie off, in units in the last place.
    where: np.ndarray | None = None
    ulps: float = 0
    reals: np.ndarray | None = None
    # Largest distance as a number, for reassociated sums.
    within: float | None = None
    native: np.ndarray | None = None
    initial: np.ndarray | None = None
    inputs: list = field(default_factory=list)


class Program:
    programs = []
    covered = set()
    # Where set, programs being built compute this number of elements at a time, in a loop, where others have one tile. 1
    # stands for scalars.
    piece = None
    # The GPU that `sim` stands for.
    target = "sm_90a"

    def __init__(self, name, grid="1", exit=0, stdout=None, stderr=None, devices=("eval", "cpu"), flags=()):
        self.piece = Program.piece
        self.name = name + {None: "", 1: ".scalar"}.get(self.piece, f".by{self.piece}")
        self.grid, self.exit, self.stdout, self.stderr = grid, exit, stdout, stderr
        self.devices, self.flags = devices, list(flags)
        self.params, self.args, self.files, self.body, self.top, self.cases = [], [], {}, [], [], []
        self.count, self.ops = 0, []
        Program.programs.append(self)

    @property
    def part(self):
        """The shape of the pieces."""
        return () if self.piece == 1 else (self.piece,)

    def cut(self, shape):
        return self.part if self.piece and shape == (N,) else shape

    def uses(self, op, *dtypes):
        """Records that the program tests an operation on element types."""
        for d in dtypes or ("",):
            Program.covered.add((op, d))

    def fresh(self):
        self.count += 1
        return f"%v{self.count}"

    def line(self, text):
        self.body.append("    " + text)

    def value(self, text, dtype, shape=()):
        """The result of `text`, which names its own types."""
        if self.piece:
            text, shape = text.replace(f"tile<{N}x", "tile<" + "".join(f"{n}x" for n in self.part)), self.cut(shape)
        t = Tile(self.fresh(), dtype, tuple(shape))
        self.line(f"{t} = {text}")
        return t

    def constant(self, dtype, number, shape=()):
        shape = self.cut(shape)
        return self.value(f"constant <{dtype}: {number}> : {tile(dtype, shape)}", dtype, shape)

    def scalar(self, dtype, text, name=None):
        name = name or f"s{len(self.params)}"
        self.params.append(f"%{name}: tile<{dtype}>")
        self.args.append(f"{name}={dtype}:{text}")
        return Tile("%" + name, dtype, ())

    def buffer(self, dtype, bits=None, name=None, bytes=None):
        """A pointer parameter that holds `bits`, or `bytes` zero bytes."""
        name = name or f"p{len(self.params)}"
        self.params.append(f"%{name}: tile<ptr<{dtype}>>")
        if bits is None:
            self.args.append(f"{name}=zeros:i8[{bytes}]" if dtype == "f4E2M1FN" else f"{name}=zeros:{dtype}[{bytes}]")
        else:
            self.files[name] = F.storage(dtype, np.ascontiguousarray(bits))
            self.args.append(f"{name}={name}.in.npy" if dtype not in F.ML and dtype != "f8E5M3FNU" else
                             f"{name}={'i8' if dtype == 'f4E2M1FN' else dtype}@{name}.in.npy")
        return Tile("%" + name, f"ptr<{dtype}>", ())

    def spread(self, scalar, shape):
        """A scalar repeated to a shape."""
        if not shape:
            return scalar
        ones = (1,) * len(shape)
        one = self.value(f"reshape {scalar} : {scalar.type} -> {tile(scalar.dtype, ones)}", scalar.dtype, ones)
        return self.value(f"broadcast {one} : {one.type} -> {tile(scalar.dtype, shape)}", scalar.dtype, shape)

    def places(self, base, shape):
        """Pointers to consecutive elements, in row-major order."""
        if self.piece and shape == self.part:
            base = self.value(f"offset {base}, %i : {base.type}, tile<i32> -> {base.type}", base.dtype)
        if not shape:
            return base
        n = int(np.prod(shape))
        index = self.value(f"iota : tile<{n}xi32>", "i32", (n,))
        if shape != (n,):
            index = self.value(f"reshape {index} : {index.type} -> {tile('i32', shape)}", "i32", shape)
        all = self.spread(base, shape)
        return self.value(f"offset {all}, {index} : {all.type}, {index.type} -> {all.type}", all.dtype, shape)

    def load(self, dtype, bits, shape=None):
        """A parameter holding `bits`, loaded."""
        shape = tuple(np.shape(bits)) if shape is None else shape
        base = self.buffer(dtype, np.ravel(bits))
        shape = self.cut(shape)
        at = self.places(base, shape)
        t = Tile(self.fresh(), dtype, shape)
        self.line(f"{t}, {t}t = load_ptr_tko weak {at} : {at.type} -> {t.type}, token")
        self.uses("load_ptr_tko", dtype)
        return t

    def load_any(self, dtype, bits, shape):
        """The same for every type: 4-bit elements come packed."""
        if dtype != "f4E2M1FN":
            return self.load(dtype, bits, shape)
        flat = np.ravel(bits)
        packed = self.load("i8", (flat[0::2] | flat[1::2] << 4).astype(np.uint8))
        x = self.value(f"unpack {packed} : {packed.type} -> {tile(dtype, (flat.size,))}", dtype, (flat.size,))
        return self.value(f"reshape {x} : {x.type} -> {tile(dtype, shape)}", dtype, shape)

    def expect(self, name, value, want, **how):
        """Stores `value` to a parameter of its own."""
        n = N if self.piece else int(np.prod(value.shape))
        if value.dtype == "f4E2M1FN":
            flat = self.value(f"reshape {value} : {value.type} -> {tile(value.dtype, (n,))}", value.dtype, (n,))
            value = self.value(f"pack {flat} : {flat.type} -> {tile('i8', (n // 2,))}", "i8", (n // 2,))
            want = np.ravel(want)
            want, n = want[0::2] | want[1::2] << 4, n // 2
        base = self.buffer(value.dtype, bytes=n)
        at = self.places(base, value.shape)
        self.line(f"{self.fresh()} = store_ptr_tko weak {at}, {value} : {at.type}, {value.type} -> token")
        self.uses("store_ptr_tko", value.dtype)
        self.check(name, base, value.dtype, want, **how)

    def check(self, name, base, dtype, want, **how):
        """States the expected contents of a buffer parameter at the end."""
        param = base.name[1:]
        want = None if want is None else np.ravel(want).astype(F.carrier(dtype))
        self.cases.append(Case(name, param, dtype, want, **how))

    def apply(self, op, dtypes, text, result, shape, want, variant="", **how):
        """One operation whose result is stored: `text` follows the operation's name."""
        value = self.value(f"{op} {text}", result, shape)
        self.uses(op, *([dtypes] if isinstance(dtypes, str) else dtypes))
        label = dtypes if isinstance(dtypes, str) else " ".join(dtypes)
        self.expect(f"{op} {variant} {label}".replace("  ", " "), value, want, **how)
        return value

    def text(self):
        body = self.body
        if self.piece:
            bounds = [("lower", 0), ("upper", N), ("step", self.piece)]
            bounds = [f"    %{k} = constant <i32: {v}> : tile<i32>" for k, v in bounds]
            head = "    for %i in (%lower to %upper, step %step) : tile<i32> {"
            body = [*bounds, head, *("  " + line for line in self.body), "    }"]
        entry = [f"  entry @k({', '.join(self.params)}) {{", *body, "    return", "  }"]
        return "\n".join(["cuda_tile.module @m {", *("  " + t for t in self.top), *entry, "}", ""])

    def run(self, girih, folder, seed=0, schedules=1):
        """[(case, complaint or None)] of every case, and of the program itself; on the simulator under schedules from a seed on."""
        (folder / "k.mlir").write_text(self.text())
        for name, array in self.files.items():
            np.save(folder / f"{name}.in.npy", array)
        found, problems = {}, {}
        for device in self.devices:
            command = [girih, "run", "k.mlir", "--device", device, "--grid", self.grid, "--no-cache", *self.flags]
            if device == "sim":
                command += ["--target", self.target, "--seed", str(seed), "--schedules", str(schedules)]
            for arg in self.args:
                command += ["--arg", arg]
            for case in self.cases:
                command += ["--save", f"{case.param}={case.param}.{device}.npy"]
            for case in self.cases:
                (folder / f"{case.param}.{device}.npy").unlink(missing_ok=True)
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=os.environ | {"GIRIH_THREADS": "1"})
            if done.returncode != self.exit:
                said = done.stderr[max(done.stderr.find("error"), 0):].strip()
                return [(self.name, f"exit {done.returncode} on {device}, {len(self.cases)} cases: {said[:600]}")]
            if self.stdout is not None and done.stdout != self.stdout:
                problems[device] = f"printed {done.stdout!r} on {device}, not {self.stdout!r}"
            if self.stderr is not None and self.stderr not in done.stderr:
                problems[device] = f"said {done.stderr!r} on {device}, without {self.stderr!r}"
            if self.exit == 0:
                for case in self.cases:
                    found[case.param, device] = read(folder / f"{case.param}.{device}.npy", case.dtype)
        if not self.cases or self.exit != 0:
            return [(self.name, "; ".join(problems.values()) or None)]
        results = [(f"{self.name}/{c.name}", self.judge(c, found)) for c in self.cases]
        return results + [(self.name, p) for p in problems.values()]

    def judge(self, case, found):
        by_device = [found[case.param, d] for d in self.devices]
        for device, got in zip(self.devices, by_device):
            want = case.native if device == "cpu" and case.native is not None else case.want
            if want is not None and got.shape != want.shape:
                return f"{device}: {got.size} elements, not {want.size}"
            if case.reals is not None:
                error = F.ulps(case.dtype, got, case.reals)
                bad, show = error > case.ulps, lambda i: f"{case.reals[i]} ({error[i]:.3} ulps)"
            elif case.within is not None:
                error = np.abs(F.values(case.dtype, got) - F.values(case.dtype, want))
                bad, show = ~(error <= case.within), lambda i: f"{want[i]:#x} (off by {error[i]:.3})"
            elif want is not None:
                bad, show = ~F.same(case.dtype, got, want), lambda i: f"{want[i]:#x}"
            else:
                continue
            if case.where is not None:
                bad &= case.where
            if bad.any():
                i = int(np.flatnonzero(bad)[0])
                text = f"{device}: {int(bad.sum())} of {bad.size} differ; element {i} is {got[i]:#x}, not {show(i)}"
                if case.inputs:
                    text += " for " + ", ".join(f"{x.ravel()[i]:#x}" for x in case.inputs)
                return text
        if len(by_device) == 2 and case.native is None and case.within is None:
            bad = ~F.same(case.dtype, *by_device)
            if bad.any():
                i = int(np.flatnonzero(bad)[0])
                text = f"{self.devices[1]} differs from eval in {int(bad.sum())} of {bad.size}; element {i} is {by_device[1][i]:#x}, not {by_device[0][i]:#x}"
                if case.inputs:
                    text += " for " + ", ".join(f"{x.ravel()[i]:#x}" for x in case.inputs)
                return text
        return None


def read(path, dtype):
    """A saved buffer as bit patterns."""
    array = np.load(path)
    if array.dtype == np.bool_:
        array = array.astype(np.uint8)
    bits = np.ravel(array).view(F.carrier(dtype))
    if dtype == "f4E2M1FN":
        bits = np.stack([bits & 15, bits >> 4], axis=1).ravel()
    return bits
