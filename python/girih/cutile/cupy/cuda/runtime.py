"""``cupy.cuda.runtime``: programs' queries about the device."""

import os

from girih.cutile import device as _device

memcpyHostToDevice, memcpyDeviceToHost, memcpyDeviceToDevice = 1, 2, 3
is_hip = False


class CUDARuntimeError(RuntimeError):
    def __init__(self, status, message="girih's stand-in for CuPy does not offer this"):
        super().__init__(message)
        self.status = status


def getDeviceCount():
    return 1


def getDevice():
    return 0


def setDevice(device):
    if device != 0:
        raise CUDARuntimeError(101, f"unknown device {device}; girih has only device 0")


def deviceSynchronize():
    pass


def streamSynchronize(_stream):
    pass


def driverGetVersion():
    return _device.VERSION


def runtimeGetVersion():
    return _device.VERSION


def memGetInfo():
    """Free and total bytes of main memory."""
    page = os.sysconf("SC_PAGE_SIZE")
    return os.sysconf("SC_AVPHYS_PAGES") * page, os.sysconf("SC_PHYS_PAGES") * page


def getDeviceProperties(device):
    setDevice(device)
    major, minor = _device.CAPABILITY
    return {
        "name": _device.NAME.encode(),
        "major": major,
        "minor": minor,
        "totalGlobalMem": memGetInfo()[1],
        "multiProcessorCount": _device.processors(),
        "warpSize": 32,
        "maxThreadsPerBlock": 1024,
        "sharedMemPerBlock": _device.SHARED_MEMORY,
        "sharedMemPerBlockOptin": _device.SHARED_MEMORY,
        "l2CacheSize": 1 << 22,
    }


def deviceGetAttribute(attribute, _device_id):
    numbers = {16: _device.processors(), 75: _device.CAPABILITY[0], 76: _device.CAPABILITY[1], 10: 32}
    return numbers.get(attribute, 0)
