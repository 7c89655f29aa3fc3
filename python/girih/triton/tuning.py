"""Measurements for ``triton.autotune``: configurations that launch the same kernel are measured once.

Numbers of warps and stages change nothing here, and configurations for a GPU are often one kernel.
"""

#: The launches that are being noted, or None.
noted = None


def note(kernel, grid, args):
    """Adds a launch to those that are being noted."""
    noted.append((kernel.name, kernel.text, grid, tuple(map(_identity, args))))


def _identity(value):
    """The memory of an array, or a number, which tell arguments apart. Anything else equals nothing."""
    array = getattr(value, "base", value)  # of a tensor under another element type
    if hasattr(array, "data_ptr"):
        return array.data_ptr(), tuple(array.shape), tuple(array.stride())
    if hasattr(array, "ctypes"):
        return array.ctypes.data, array.shape, array.strides
    return value if isinstance(value, (int, float, bool, str, type(None))) else object()


class Benchmarker:
    """Triton's `do_bench` for one tuned kernel. Times of launches that were measured are given again."""

    def __init__(self):
        self.known = {}

    def __call__(self, call, quantiles=None, **options):
        from triton.testing import do_bench

        launches = self._launches(call)
        key = (launches, tuple(quantiles or ()), tuple(sorted(options.items())))
        if not launches:
            return do_bench(call, quantiles=quantiles, **options)
        if key not in self.known:
            self.known[key] = do_bench(call, quantiles=quantiles, **options)
        times = self.known[key]
        return list(times) if isinstance(times, list) else times

    @staticmethod
    def _launches(call):
        """The launches of a call, which is made once for it."""
        global noted
        before, noted = noted, []
        try:
            call()
            return tuple(noted)
        finally:
            noted = before
