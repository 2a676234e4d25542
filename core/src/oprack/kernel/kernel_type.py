"""OpKernelType: the place, dtype and library of a kernel."""

from __future__ import annotations

from oprack.deprecation import deprecated, refuse_layout
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

    def __init__(
        self, place: str, dtype: str, library: str = "plain", *deprecated_args: str, layout: str | None = None
    ) -> None:
        # The old order of arguments was (place, dtype, layout, library), with "any" as the layout.
        if deprecated_args or library == "any":
            layout, library = library, deprecated_args[0] if deprecated_args else "plain"
        if layout is not None:
            refuse_layout("OpKernelType", layout)
        object.__setattr__(self, "place", place)
        object.__setattr__(self, "dtype", dtype)
        object.__setattr__(self, "library", library)

    @property
    def layout(self) -> str:
        """Always "any"; removed in the next release."""
        deprecated("OpKernelType.layout", "leave it out: all tensors are in the layout of the program")
        return "any"

    def __str__(self) -> str:
        return f"{self.place}, {self.dtype}" + ("" if self.library == "plain" else f", {self.library}")
