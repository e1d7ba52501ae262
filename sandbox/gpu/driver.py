"""CUDA's driver API through `cuda.bindings`, as far as replaying needs it. Worker only.

Every call that fails raises CudaError with the driver's own name for what happened.
"""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass
from typing import Any

from cuda.bindings import driver as cuda

#: Errors after which the context is dead, and what a kernel must have done (names as in `DeviceFault.kind`).
FAULTS = {
    "CUDA_ERROR_ILLEGAL_ADDRESS": ("out of bounds", "an access to memory that belongs to no array"),
    "CUDA_ERROR_INVALID_ADDRESS_SPACE": ("out of bounds", "an address of another kind of memory was used"),
    "CUDA_ERROR_MISALIGNED_ADDRESS": ("misaligned", "an address was no multiple of the size accessed"),
    "CUDA_ERROR_HARDWARE_STACK_ERROR": ("stack overflow", "the call stack was corrupted or too deep"),
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": ("trap", "an illegal instruction was executed"),
    "CUDA_ERROR_INVALID_PC": ("bad call", "a jump to where no instruction is"),
    "CUDA_ERROR_LAUNCH_FAILED": ("trap", "the kernel failed: a trap, or an access nobody can name"),
    "CUDA_ERROR_ASSERT": ("assert", "an assertion in the kernel failed"),
}
#: The device would not take the launch.
REFUSALS = {
    "CUDA_ERROR_INVALID_VALUE",
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
    "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
    "CUDA_ERROR_INVALID_CLUSTER_SIZE",
    "CUDA_ERROR_NOT_SUPPORTED",
}
_READY, _NOT_READY = 0, 600
_PARAMETERS, _SIZE, _END = 1, 2, 0  # CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE, _END
_SPINS = 2000
_PAUSE = 0.0005


class CudaError(Exception):
    def __init__(self, name: str, doing: str) -> None:
        super().__init__(f"{name} from {doing}")
        self.name = name


class Late(Exception):
    """What was enqueued did not end in time. Nothing can be done with this process any more."""


def call(name: str, *arguments: Any) -> Any:
    """Calls the driver; what it returns besides its code: nothing, one value, or several."""
    code, *values = getattr(cuda, name)(*arguments)
    if int(code) != _READY:
        raise CudaError(_name(code), name)
    return values[0] if len(values) == 1 else tuple(values) if values else None


def _name(code: Any) -> str:
    return str(getattr(code, "name", code))


@dataclass(frozen=True)
class Kernel:
    handle: Any
    name: str


@dataclass(frozen=True)
class Launching:
    """One launch, ready to be enqueued; holds what the driver points to meanwhile."""

    kernel: Kernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    cooperative: bool
    parameters: bytes


class Context:
    """The one device this process may see, with one stream that everything runs on."""

    def __init__(self) -> None:
        call("cuInit", 0)
        self.device = call("cuDeviceGet", 0)
        self._primary = call("cuDevicePrimaryCtxRetain", self.device)
        call("cuCtxSetCurrent", self._primary)
        self.stream = call("cuStreamCreate", cuda.CUstream_flags.CU_STREAM_NON_BLOCKING.value)
        self._persists = self._set_nothing_aside()

    def attribute(self, name: str) -> int:
        kind = getattr(cuda.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(call("cuDeviceGetAttribute", kind, self.device))

    def free_bytes(self) -> int:
        free, _ = call("cuMemGetInfo")
        return int(free)

    def wait(self, deadline: float) -> None:
        """Until all that was enqueued is done. Raises Late, and CudaError for what a kernel did."""
        for spin in range(1 << 62):
            code = int(cuda.cuStreamQuery(self.stream)[0])
            if code == _READY:
                return
            if code != _NOT_READY:
                raise CudaError(cuda.CUresult(code).name, "cuStreamQuery")
            if time.monotonic() > deadline:
                raise Late
            if spin > _SPINS:
                time.sleep(_PAUSE)

    def reset_persisting(self) -> None:
        """Lines of the L2 cache that were to stay become ordinary ones, which a flush evicts."""
        if self._persists:
            call("cuCtxResetPersistingL2Cache")

    def _set_nothing_aside(self) -> bool:
        """No part of the L2 cache is for lines that stay. False on a card that has no such lines."""
        if not self.attribute("MAX_PERSISTING_L2_CACHE_SIZE"):
            return False
        try:
            call("cuCtxSetLimit", cuda.CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0)
        except CudaError as error:
            if error.name != "CUDA_ERROR_UNSUPPORTED_LIMIT":  # as on a slice of a card
                raise
            return False
        return True

    def launch(self, launch: Launching) -> None:
        """Enqueues. The driver copies the parameters before it returns."""
        buffer = ctypes.create_string_buffer(launch.parameters, max(len(launch.parameters), 1))
        size = ctypes.c_size_t(len(launch.parameters))
        extra = (ctypes.c_void_p * 5)(
            _PARAMETERS, ctypes.addressof(buffer), _SIZE, ctypes.addressof(size), _END
        )
        config = cuda.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = launch.grid
        config.blockDimX, config.blockDimY, config.blockDimZ = launch.block
        config.sharedMemBytes = launch.shared_bytes
        config.hStream = self.stream
        if launch.cooperative:
            attribute = cuda.CUlaunchAttribute()
            attribute.id = cuda.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
            attribute.value.cooperative = 1
            config.attrs, config.numAttrs = [attribute], 1
        call("cuLaunchKernelEx", config, launch.kernel.handle, 0, ctypes.addressof(extra))


class Module:
    """One loading of a cubin: its variables are as at first. Never PTX: the environment forbids compiling."""

    def __init__(self, cubin: bytes) -> None:
        self._image = ctypes.create_string_buffer(cubin, len(cubin))
        self._handle = call("cuModuleLoadData", ctypes.addressof(self._image))
        self._kernels: dict[str, Kernel] = {}
        self._shared: dict[str, int] = {}

    def kernel(self, name: str, shared_bytes: int) -> Kernel:
        if name not in self._kernels:
            self._kernels[name] = Kernel(call("cuModuleGetFunction", self._handle, name.encode()), name)
        if shared_bytes > self._shared.get(name, 0):
            attribute = cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            call("cuFuncSetAttribute", self._kernels[name].handle, attribute, shared_bytes)
            self._shared[name] = shared_bytes
        return self._kernels[name]

    def variable(self, name: str) -> tuple[int, int]:
        """Address and size."""
        address, size = call("cuModuleGetGlobal", self._handle, name.encode())
        return int(address), int(size)

    def unload(self) -> None:
        call("cuModuleUnload", self._handle)
