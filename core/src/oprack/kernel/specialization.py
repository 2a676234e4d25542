"""KernelSpecialization: what is known of an op before its arrays are there, for kernels that specialize themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from oprack.records import dataclass


@dataclass(frozen=True)
class KernelSpecialization:
    """One op that a plan will run again and again, as the `specialize` of its kernel sees it.

    Attributes:
        op_type: The op.
        attrs: All attributes, defaults included.
        dtypes: For each present input slot the dtype of each of its inputs, None for an absent one.
        xp: NumPy or CuPy.
    """

    op_type: str
    attrs: Mapping[str, Any]
    dtypes: Mapping[str, tuple[Any, ...]]
    xp: Any

    def given(self, slot: str) -> bool:
        """Whether the op has an input in this slot.

        Args:
            slot: The slot.

        Returns:
            Whether it has.
        """
        return any(dtype is not None for dtype in self.dtypes.get(slot, ()))


Specialize = Callable[[KernelSpecialization], "Callable[..., Any] | None"]
