"""Runs a command and says how much memory it took at most.

A process that is started begins with the peak of the one that starts it, so that one is small: another Python, without NumPy.
"""

import json
import subprocess
import sys

STARTER = """
import json, os, subprocess, sys, threading
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
said = []
reader = threading.Thread(target=lambda: said.append(child.stderr.read()))
reader.start()
out = child.stdout.read()
reader.join()
_, status, usage = os.wait4(child.pid, 0)
text = [part.decode(errors="replace") for part in (out, said[0])]
print(json.dumps([os.waitstatus_to_exitcode(status), *text, usage.ru_maxrss * 1024]))
"""


def run(command):
    """The exit code, standard output, standard error, and the most bytes that were resident."""
    done = subprocess.run([sys.executable, "-S", "-E", "-c", STARTER, *map(str, command)], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)
