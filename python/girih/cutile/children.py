"""The Python processes that a program starts: redirecting them, and noticing them where they are not.

`hand_down` sets a variable such as GIRIH_CUTILE=1 and puts the folder `SITE` on PYTHONPATH, whose ``sitecustomize`` puts Girih in
place in every Python that starts. `girih.cutile` and `girih.triton` share this; each has its own variable.
"""

import os
import sys

# On the path of a Python that starts, it puts Girih in place there.
SITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "site")


def truth(variable):
    """Returns True if a variable of the environment asks for something."""
    value = os.environ.get(variable, "")
    if value.lower() in ("1", "true", "yes", "on"):
        return True
    if value.lower() in ("", "0", "false", "no", "off"):
        return False
    raise ValueError(f"girih: {variable} is `{value}`; it must be 1 or 0")


def hand_down(variable, device=None, check=None, threads=None):
    """Says to the Python processes that this one starts what was said here."""
    given = {variable: True, "GIRIH_DEVICE": device, "GIRIH_CHECK": check, "GIRIH_THREADS": threads}
    for name, value in given.items():
        if value is not None:
            os.environ[name] = str(int(value) if isinstance(value, bool) else value)
    path = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    if SITE not in path:
        os.environ["PYTHONPATH"] = os.pathsep.join([SITE, *path])


class Watch:
    """Notices other Pythons that a test starts, and says of a failing test that they ran without Girih."""

    def __init__(self, variable):
        self.variable = variable
        self.started = []

    def begin(self):
        """Watches from here on: for the whole life of the process."""
        sys.addaudithook(self._notice)
        # `multiprocessing` starts its processes past the audited calls.
        import multiprocessing.util as util

        start = util.spawnv_passfds

        def spawnv_passfds(path, args, passfds):
            self.started.append(os.fsdecode(path))
            return start(path, args, passfds)

        util.spawnv_passfds = spawnv_passfds

    def _notice(self, event, args):
        if event != "subprocess.Popen":
            return
        executable, arguments = args[0], args[1]
        try:
            first = executable or (arguments.split()[0] if isinstance(arguments, str) else arguments[0])
            name = os.path.basename(os.fsdecode(first))
        except (IndexError, TypeError):
            return
        if name.startswith(("python", "torchrun", "pytest")) or first == sys.executable:
            self.started.append(name)

    def explain(self, report):
        """Adds to the report of a failing test what may be its cause."""
        if report.failed and self.started and not truth(self.variable):
            one = "another Python, which" if len(self.started) == 1 else f"{len(self.started)} other Pythons, which"
            text = f"the test started {one} ran without Girih: --girih-children, or {self.variable}=1, redirects such processes"
            report.sections.append(("girih", text))
