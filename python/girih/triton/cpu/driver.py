"""The driver of the target ``cpu``."""

from triton.backends.compiler import GPUTarget

from girih.triton import driver


class CpuDriver(driver.GirihDriver):
    """The processor, where ``triton.runtime.driver.set_active`` chooses it."""

    @staticmethod
    def is_active():
        return False

    def get_current_target(self):
        return GPUTarget("cpu", "cpu", 1)
