"""Streams and events: work is done in the order it is given, by the thread that gives it."""

import threading
import time

_current = threading.local()


class Stream:
    """A stream; which one makes no difference."""

    def __init__(self, null=False, non_blocking=False, ptds=False, priority=0):
        # cuTile wants a handle; 0 is the default stream.
        self.ptr = 0
        self.null_stream = null
        self.priority = priority

    def __enter__(self):
        _stack().append(self)
        return self

    def __exit__(self, *_raised):
        _stack().pop()

    def __eq__(self, other):
        return isinstance(other, Stream) and (self is other or self.null_stream and other.null_stream)

    def __hash__(self):
        return hash(self.ptr)

    def __repr__(self):
        return f"<Stream {self.ptr}>"

    def use(self):
        _stack()[-1] = self
        return self

    def synchronize(self):
        pass

    @property
    def done(self):
        return True

    def record(self, event=None):
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event):
        pass

    def add_callback(self, callback, arg):
        callback(self, 0, arg)

    def launch_host_func(self, callback, arg):
        callback(arg)


class ExternalStream(Stream):
    def __init__(self, ptr, device_id=-1):
        super().__init__()
        self.ptr = ptr


Stream.null = Stream(null=True)
Stream.ptds = Stream.null


def _stack():
    if not hasattr(_current, "streams"):
        _current.streams = [Stream.null]
    return _current.streams


def get_current_stream(device_id=-1):
    return _stack()[-1]


class Event:
    """The moment at which it was recorded."""

    def __init__(self, block=False, disable_timing=False, interprocess=False):
        self.ptr = 0
        self.time = None

    def record(self, stream=None):
        self.time = time.perf_counter()

    def synchronize(self):
        pass

    @property
    def done(self):
        return True


def get_elapsed_time(start_event, end_event):
    """Milliseconds between two events."""
    if start_event.time is None or end_event.time is None:
        raise ValueError("an event was not recorded")
    return (end_event.time - start_event.time) * 1e3
