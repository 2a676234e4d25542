"""OpKernelType: the place, dtype and library of a kernel."""

from __future__ import annotations

from oprack.records import dataclass


@dataclass(frozen=True)
class OpKernelType:
    """The place, dtype and library of a kernel.

    Attributes:
        place: Kind of place, such as "cpu".
        dtype: Name of the dtype that it computes in.
        library: The library whose functions it calls; "plain" for none.
    """

    place: str
    dtype: str
    library: str = "plain"

    def __str__(self) -> str:
        return f"{self.place}, {self.dtype}" + ("" if self.library == "plain" else f", {self.library}")
