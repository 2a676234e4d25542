"""What the rule that picks an op's OpKernelType may ask about the op that is running."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from oprack.kernel import OpKernelType
    from oprack.tensor import Place


class KernelTypeContext(Protocol):
    """Type of the parameter of `expected_kernel_type(ctx)`.

    Attributes:
        op_type: The op.
        attrs: All attributes of the op.
        place: The place of the run.
    """

    op_type: str
    attrs: Mapping[str, Any]
    place: Place

    def input_count(self, slot: str) -> int:
        """Number of variables of an input slot.

        Args:
            slot: The slot.

        Returns:
            The number.
        """

    def has_input(self, slot: str) -> bool:
        """Whether an input slot is present."""

    def is_initialized(self, slot: str, i: int = 0) -> bool:
        """Whether input i of a slot holds a value with a dtype."""

    def dtype(self, slot: str, i: int = 0) -> str:
        """dtype of input i of a slot; raises InvalidArgumentError when it holds none."""

    def output_dtype(self, slot: str) -> str | None:
        """dtype that the program declares for the first output of a slot; None when it does not say."""

    def kernel_type(self, *, dtype: str, place: str | None = None, library: str = "plain") -> OpKernelType:
        """An OpKernelType at the place of the run; a library may be forced."""

    def common_dtype(self) -> OpKernelType:
        """The default rule: the dtype that all present inputs share; raises InvalidArgumentError when they differ."""
