"""The same backend under the name ``cpu``, by which PyTorch's inductor asks for one that runs on the processor.

    torch._inductor.config.cpu_backend = "triton"

Inductor looks for ``cpu`` among Triton's backends and makes its driver the active one. Triton wants one backend for a target, and one
active driver, so the two names divide these: ``girih`` is active by itself, ``cpu`` where it is chosen.
"""
