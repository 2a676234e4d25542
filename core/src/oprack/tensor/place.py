"""Places: where memory lives and kernels run. Their classes differ in `kind` ("cpu", "cuda"); plugins add others."""

from __future__ import annotations

from typing import ClassVar

from oprack.python.records import dataclass


@dataclass(frozen=True)
class Place:
    """A device: its sort and its number; equal places share one DeviceContext."""

    kind: ClassVar[str] = ""
    device_id: int = 0

    def __str__(self) -> str:
        return f"{self.kind}:{self.device_id}"


@dataclass(frozen=True)
class CPUPlace(Place):
    """Host memory; kernels run NumPy."""

    kind: ClassVar[str] = "cpu"

    def __repr__(self) -> str:
        return "CPUPlace()"


@dataclass(frozen=True)
class CUDAPlace(Place):
    """Memory of one NVIDIA GPU; the plugin oprack-cuda brings its context."""

    kind: ClassVar[str] = "cuda"

    def __repr__(self) -> str:
        return f"CUDAPlace({self.device_id})"


@dataclass(frozen=True)
class CUDAPinnedPlace(Place):
    """Page-locked host memory, the staging area of asynchronous copies; the plugin oprack-cuda brings its context."""

    kind: ClassVar[str] = "cuda_pinned"

    def __repr__(self) -> str:
        return "CUDAPinnedPlace()"


@dataclass(frozen=True)
class ShapesPlace(Place):
    """No memory at all: what lies here has shape and dtype (ShapeArray), and ops say shapes and compute nothing."""

    kind: ClassVar[str] = "shapes"

    def __repr__(self) -> str:
        return "ShapesPlace()"
