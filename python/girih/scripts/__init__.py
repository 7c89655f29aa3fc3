"""Kernels of a script, checked without running it.

In: the path of a Python file, or its text. Out: what is wrong with each kernel that is decorated with ``girih.jit``.

    definitions.py   makes the functions, and of the rest what is surely a constant
    arguments.py     guesses what a kernel is launched with, from the launches, the defaults and the body
    check.py         traces each kernel for these arguments

A kernel is compiled for the types of its arguments, which only a run knows. So an error is reported if it comes for all
arguments that were tried; a kernel that compiles for some is right.
"""

from .check import Problem, check_file, check_text

__all__ = ["Problem", "check_file", "check_text"]
