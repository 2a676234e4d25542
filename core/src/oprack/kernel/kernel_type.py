"""OpKernelType: what a kernel works on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OpKernelType:
    """place: kind of place ("cpu"). dtype: name. layout: "any" or a library's own. library: "plain" or its name."""

    place: str
    dtype: str
    layout: str = "any"
    library: str = "plain"

    def __str__(self) -> str:
        extra = "" if (self.layout, self.library) == ("any", "plain") else f", {self.library}, layout {self.layout}"
        return f"{self.place}, {self.dtype}{extra}"
