"""OpKernelType: what a kernel works on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OpKernelType:
    """place: kind of place ("cpu"). dtype: name. library: "plain" or its name."""

    place: str
    dtype: str
    library: str = "plain"

    def __str__(self) -> str:
        return f"{self.place}, {self.dtype}" + ("" if self.library == "plain" else f", {self.library}")
