"""Random kernels of control flow, as text: `if`, `for`, `while`, `break`, `continue` and `return` inside each other.

A seed gives one module: a helper that returns from inside its loops, and the kernel that calls it. All variables have a
value from the start and loops are short, so each kernel is valid, ends, and is what Python itself does with it.
"""

import random

NAMES = ("a", "b", "c")


class Writer:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.loops = self.calls = 0
        self.returns = 1  # how many values the function returns; 0 for the kernel
        self.helper = False

    def chance(self, share):
        return self.random.random() < share

    def pick(self, *choices):
        return self.random.choice(choices)

    def line(self, depth, text):
        self.lines.append("    " * depth + text)

    # ---- expressions: integers of ten bits

    def value(self, depth=2):
        kind = self.random.randrange(8 if depth else 2)
        if kind == 0:
            return str(self.random.randrange(9))
        if kind <= 2:
            return self.pick(*NAMES, "n", *(f"i{k}" for k in range(self.loops)))
        if kind == 3:
            return f"tl.load(x + (({self.value(depth - 1)}) & 63))"
        if kind == 4:
            return f"({self.value(depth - 1)} if {self.truth(depth - 1)} else {self.value(depth - 1)})"
        if kind == 5 and self.helper and self.calls < 3:
            self.calls += 1
            return f"helper(x, ({self.value(0)}) & 7)"
        return f"(({self.value(depth - 1)} {self.pick('+', '-', '*', '^', '|')} {self.value(depth - 1)}) & 1023)"

    def truth(self, depth=2):
        kind = self.random.randrange(7 if depth else 3)
        a, b = self.value(depth and depth - 1), self.value(0)
        if kind <= 2:
            return f"{a} {self.pick('<', '<=', '>', '==', '!=')} {b}"
        if kind == 3:
            return f"({self.truth(depth - 1)} {self.pick('and', 'or')} {self.truth(depth - 1)})"
        if kind == 4:
            return f"not ({self.truth(depth - 1)})"
        if kind == 5:
            return f"{self.random.randrange(4)} <= {a} < {b}"
        return f"({a}) & 3 == {self.random.randrange(4)}"

    # ---- statements

    def body(self, depth, budget):
        before = len(self.lines)
        for _ in range(self.random.randrange(1, 3)):
            if self.statement(depth, budget):
                break
        if len(self.lines) == before:
            self.line(depth, "pass")

    def statement(self, depth, budget):
        """Writes one; true where nothing can follow."""
        kind = self.random.randrange(14)
        if kind <= 4 or budget == 0:
            if self.loops and self.chance(0.35):
                return self.leave(depth)
            self.assign(depth)
        elif kind <= 6:
            self.line(depth, f"tl.store(x + ({self.value()} & 63), {self.value()})")
        elif kind <= 9:
            self.line(depth, f"if {self.truth()}:")
            self.body(depth + 1, budget - 1)
            if self.chance(0.3):
                self.line(depth, f"elif {self.truth()}:")
                self.body(depth + 1, budget - 1)
            if self.chance(0.5):
                self.line(depth, "else:")
                self.body(depth + 1, budget - 1)
        else:
            self.loop(depth, budget)
        return False

    def assign(self, depth):
        if self.chance(0.2):
            self.line(depth, f"a, b = {self.value()}, {self.value()}")
        elif self.chance(0.3):
            self.line(depth, f"{self.pick(*NAMES)} = ({self.truth()} and {self.value()} or {self.value()}) & 1023")
        else:
            self.line(depth, f"{self.pick(*NAMES)} = {self.value()}")

    def leave(self, depth):
        word = self.pick("break", "continue", "return")
        if word == "return" and self.returns:
            word = f"return {self.value()}"
        self.line(depth, word)
        return True

    def loop(self, depth, budget):
        name = f"i{self.loops}"
        if self.chance(0.35):
            self.line(depth, f"{name} = 0")
            self.line(depth, f"while {self.truth(1)} and {name} < 4:" if self.chance(0.7) else "while True:")
            self.line(depth + 1, f"{name} += 1")
            self.line(depth + 1, f"if {name} > 4:")
            self.line(depth + 2, "break")
        else:
            low, high = self.pick(("", "3"), ("", "n & 3"), ("1, ", "(a & 3) + 2"), ("", f"{self.value(1)} & 3"))
            step = ", 2" if low and self.chance(0.5) else ""
            self.line(depth, f"for {name} in range({low}{high}{step}):")
        self.loops += 1
        self.body(depth + 1, budget - 1)
        self.loops -= 1

    def function(self, head, returns, budget):
        self.returns, self.loops = returns, 0
        self.lines += ["", "", "@girih.jit", head]
        self.line(1, "a, b, c = n, 1, 2")
        for _ in range(self.random.randrange(2, 4)):
            self.loop(1, budget) if self.chance(0.6) else self.statement(1, budget)
        if returns:
            self.line(1, f"return {self.value(1)}")
        else:
            self.line(1, "tl.store(x + 61, a)")
            self.line(1, "tl.store(x + 62, b)")
            self.line(1, "tl.store(x + 63, c)")


def program(seed):
    """The text of a module with the kernel `kernel(x, n)`."""
    writer = Writer(seed)
    writer.lines = ["import girih", "import girih.language as tl"]
    writer.function("def helper(x, n):", 1, 2)
    writer.helper = True
    writer.function("def kernel(x, n):", 0, 2)
    return "\n".join(writer.lines) + "\n"
