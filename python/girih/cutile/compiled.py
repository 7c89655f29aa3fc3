"""`torch.compile` under the pretence of a device: functions run as they are written.

PyTorch's compiler traces below the interface where `device="cuda"` means the host's memory, and asks the driver of a GPU about its
state. Results are the same without it; a compiled module keeps its form, `_orig_mod` included.
"""

import functools

from girih.cutile.hooks import when_imported


def adopt(torch):
    """Makes compiled functions the functions themselves."""
    when_imported("torch._dynamo.eval_frame", lambda module: _adopt(torch, module.OptimizeContext))


def _adopt(torch, context):
    real = context.__call__

    @functools.wraps(real)
    def call(self, function):
        # A module's compiled form asks again for its `forward`.
        if isinstance(function, (torch.nn.Module, type)) or not callable(function):
            return real(self, function)

        @functools.wraps(function)
        def run(*args, **kwargs):
            return function(*args, **kwargs)

        run._torchdynamo_orig_callable = function
        return run

    context.__call__ = call
