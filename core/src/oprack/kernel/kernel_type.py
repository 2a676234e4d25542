"""OpKernelType: what a kernel works on."""

from __future__ import annotations

from dataclasses import dataclass

from oprack.deprecation import deprecated, refuse_layout


@dataclass(frozen=True)
class OpKernelType:
    """What a kernel works on.

    Attributes:
        place: Sort of place, such as "cpu".
        dtype: Name of the dtype that it computes in.
        library: The library whose functions it calls; "plain" for none.
    """

    place: str
    dtype: str
    library: str = "plain"

    def __init__(self, place: str, dtype: str, library: str = "plain", *of_old: str, layout: str | None = None) -> None:
        if of_old or library == "any":  # (place, dtype, layout, library)
            layout, library = library, of_old[0] if of_old else "plain"
        if layout is not None:
            refuse_layout("OpKernelType", layout)
        object.__setattr__(self, "place", place)
        object.__setattr__(self, "dtype", dtype)
        object.__setattr__(self, "library", library)

    @property
    def layout(self) -> str:
        """Always "any"; for one release more."""
        deprecated("OpKernelType.layout", "leave it out: all tensors are in the layout of the program")
        return "any"

    def __str__(self) -> str:
        return f"{self.place}, {self.dtype}" + ("" if self.library == "plain" else f", {self.library}")
