"""Calls of a function, each in a process that starts as the first did: what one call leaves behind reaches no other.

In: a function and, for each call, its arguments. Out: its result, or a sentence where the call ended the process or did not end. A
process that has compiled nothing waits and forks for each call, so that a call costs no imports.
"""

from __future__ import annotations

import multiprocessing
import os
import signal

__all__ = ["Isolated"]


class Isolated:
    """A function whose calls know nothing of each other. Make it before the first use of what it is to be protected from."""

    def __init__(self, function, seconds=600):
        self.seconds = seconds
        self.connection, theirs = multiprocessing.Pipe()
        self.process = os.fork()
        if self.process == 0:
            self.connection.close()
            leave(lambda: serve(theirs, function, seconds))
        theirs.close()

    def __call__(self, *arguments):
        """The result and None, or None and why there is none."""
        self.connection.send(arguments)
        return self.connection.recv()

    def close(self):
        self.connection.close()
        os.waitpid(self.process, 0)


def leave(function):
    """Ends a forked process after a call: what its parent registered for its own end does not run."""
    try:
        function()
    finally:
        os._exit(0)


def serve(connection, function, seconds):
    while True:
        try:
            arguments = connection.recv()
        except EOFError:
            return
        connection.send(called(function, arguments, seconds))


def called(function, arguments, seconds):
    read, write = multiprocessing.Pipe(duplex=False)
    process = os.fork()
    if process == 0:
        leave(lambda: write.send(function(*arguments)))
    write.close()
    try:
        if not read.poll(seconds):
            os.kill(process, signal.SIGKILL)
            return None, f"does not end in {seconds} s"
        return read.recv(), None
    except EOFError:
        return None, "ends the process"
    finally:
        read.close()
        os.waitpid(process, 0)
