"""Finds CuPy, the driver and a GPU, and says why one of them does not serve."""

from __future__ import annotations

import contextlib
import threading
from contextlib import AbstractContextManager
from typing import Any

from oprack.errors import PreconditionNotMetError
from oprack.kernel import Predicate
from oprack.python.interruption import let_interruptions_pass


class UnavailableError(Exception):
    """Why a library can't be used."""


class Library:
    """A library that is looked for on first use. problem: why it does not serve, "" when it does."""

    def __init__(self) -> None:
        self.problem = ""
        self._ready = self._tried = False
        self._lock = threading.Lock()

    def usable(self) -> bool:
        """Whether kernels of this library may run in this process."""
        if not self._tried:
            with self._lock:
                if not self._tried:
                    try:
                        self._load()
                        self._ready = True
                    except UnavailableError as error:
                        self.problem = str(error)
                    self._tried = True
        return self._ready

    def _load(self) -> None:
        """Raises UnavailableError."""
        raise NotImplementedError(f"{type(self).__name__} must define _load()")

    def _describe(self) -> str:
        raise NotImplementedError(f"{type(self).__name__} must define _describe()")

    def status(self) -> str:
        """One line for `oprack doctor`: versions and devices, or why it does not serve."""
        return self._describe() if self.usable() else f"not used: {self.problem}"

    def identity(self) -> str:
        """What rewritten models on disk depend on: as `status`."""
        return self.status()

    def limit_threads(self, count: int) -> AbstractContextManager[None]:
        """Kernels run on the device: there are no threads of the host to limit."""
        return contextlib.nullcontext()


class CuPyLibrary(Library):
    """CuPy, the driver, and at least one device. cupy: the module, once it is usable."""

    def __init__(self) -> None:
        super().__init__()
        self.cupy: Any = None

    def _load(self) -> None:
        try:
            import cupy
        except ModuleNotFoundError as error:
            if error.name != "cupy":
                raise UnavailableError(f"CuPy can't be imported: {error}") from error
            raise UnavailableError(
                "CuPy is not installed; pip install 'oprack-cuda[cuda13]', or [cuda12] for a driver older than 580"
            ) from None
        except Exception as error:  # a broken installation says so in many ways
            let_interruptions_pass()
            raise UnavailableError(f"CuPy can't be imported: {type(error).__name__}: {error}") from error
        runtime = cupy.cuda.runtime
        try:
            if runtime.driverGetVersion() == 0:
                raise UnavailableError(
                    f"CuPy {cupy.__version__} finds no NVIDIA driver (libcuda.so.1); install the driver, and give a "
                    "container access to the GPU"
                )
            if runtime.getDeviceCount() == 0:
                raise UnavailableError("the driver lists no GPU; look at nvidia-smi and CUDA_VISIBLE_DEVICES")
        except runtime.CUDARuntimeError as error:
            raise UnavailableError(f"CuPy {cupy.__version__} can't use the driver: {error}") from error
        self.cupy = cupy

    def _describe(self) -> str:
        runtime = self.cupy.cuda.runtime
        devices = []
        for i in range(runtime.getDeviceCount()):
            facts = runtime.getDeviceProperties(i)
            name = facts["name"].decode(errors="replace")
            memory = facts["totalGlobalMem"] / 2**30
            devices.append(f"{i}: {name} ({facts['major']}.{facts['minor']}, {memory:.0f} GiB)")
        return (
            f"CuPy {self.cupy.__version__}, CUDA runtime {_version(runtime.runtimeGetVersion())}, "
            f"driver for CUDA {_version(runtime.driverGetVersion())}, {', '.join(devices)}"
        )

    def require(self, what: str) -> Any:
        """The module cupy. Raises PreconditionNotMetError that says why `what` can't be had."""
        if not self.usable():
            raise PreconditionNotMetError(
                f"{what} can't be used: {self.problem}. Run at oprack.CPUPlace(), or see `oprack doctor`"
            )
        return self.cupy


def _version(number: int) -> str:
    """12090 is 12.9."""
    return f"{number // 1000}.{number % 1000 // 10}"


CUDA = CuPyLibrary()


class LibraryPredicate(Predicate):
    """Fits where a library serves; its text says why it does not."""

    __slots__ = ("_library", "_name")

    def __init__(self, library: Library, name: str) -> None:
        self._library, self._name = library, name
        super().__init__(lambda query: library.usable(), name)

    @property
    def text(self) -> str:
        return self._name if self._library.usable() else f"{self._name} (not here: {self._library.problem})"

    @text.setter
    def text(self, value: str) -> None:
        """The text follows from the library's state."""


usable = LibraryPredicate(CUDA, "CuPy and a GPU")
"""Predicate of every kernel of library "cuda"."""
