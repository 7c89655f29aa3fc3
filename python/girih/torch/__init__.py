"""Models of PyTorch on Girih.

    import girih.torch
    fast = torch.compile(model, backend="girih")
    fast(x)                                         # what Girih does not know runs in PyTorch, with one warning

    print(girih.torch.report())                     # what ran natively, what did not, why, and at which line

    whole = girih.torch.export(model, (x,))         # all of it, or an error that lists what is not known
    print(whole.ir("tensor"))
    whole(x)
"""

from __future__ import annotations

from pathlib import Path

from ._backend import girih as backend
from ._export import Model, export
from ._report import Report, report

__all__ = ["Model", "Report", "backend", "export", "report"]


def _register():
    import pkgutil

    from torch._dynamo import trace_rules
    from torch._dynamo.backends import registry

    # Dynamo calls this package while it compiles, and holds locks then: it compiles nothing of the package itself. Modules of quantised
    # layers are part of people's models.
    package = Path(__file__).parent.parent
    trace_rules.SKIP_DIRS.append(str(package / "__init__.py"))
    for part in pkgutil.iter_modules([str(package)]):
        if part.name != "huggingface":
            trace_rules.add(f"girih.{part.name}")

    # Where PyTorch found the name among entry points it registers the backend itself, when somebody asks for it: perhaps
    # that is why this module is being imported.
    if "girih" not in registry._BACKENDS:
        registry.register_backend(backend, name="girih")


_register()
