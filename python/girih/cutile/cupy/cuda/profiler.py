"""``cupy.cuda.profiler``: nothing is profiled."""


def start():
    pass


def stop():
    pass


class profile:
    def __enter__(self):
        return self

    def __exit__(self, *_raised):
        return None
