"""The decorator that the files of mistakes share. A function decorated with `mistake` is called with nothing and
expected to raise."""

import numpy as np

MISTAKES = {}


def mistake(function):
    MISTAKES[function.__name__] = function
    return function


def floats(n=64):
    return np.zeros(n, np.float32)


TABLE = [1, 2, 3]
ARRAY = np.zeros(4)


def plain(x):
    return x + 1
