"""Kernels of a script, checked without running it.

In: the path of a Python file, or its text. Out: the errors of each kernel that is decorated with ``girih.jit``.

    definitions.py   makes the functions, and the names that are surely constants
    arguments.py     guesses a kernel's arguments from the launches, the defaults and the body
    check.py         traces each kernel for these arguments

A kernel is compiled for the types of its arguments, which only a run knows. So an error is reported only if all guesses
of arguments lead to an error; a kernel that compiles for one guess is right.
"""

from .check import Problem, check_file, check_text

__all__ = ["Problem", "check_file", "check_text"]
