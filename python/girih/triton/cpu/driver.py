"""The driver of the target ``cpu``."""

import os

from triton.backends.compiler import GPUTarget

from girih.triton import driver


class CpuDriver(driver.GirihDriver):
    """The processor, where ``triton.runtime.driver.set_active`` or ``TRITON_DEFAULT_BACKEND=cpu`` chooses it."""

    @staticmethod
    def is_active():
        return os.environ.get("TRITON_DEFAULT_BACKEND") == "cpu"

    def get_current_target(self):
        return GPUTarget("cpu", "cpu", 1)
