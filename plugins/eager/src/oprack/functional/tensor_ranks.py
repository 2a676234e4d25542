"""Methods of tensors that lie on several ranks."""

from __future__ import annotations

from typing import Any

from oprack.eager_tensor import Tensor
from oprack.eager_tensor.meta import TensorMeta, TensorPlacement
from oprack.errors import InvalidArgumentError
from oprack.functional.tensor_methods import TensorMethods


class GlobalMethods(TensorMethods):
    """What a global tensor is, and how one is made; see oprack.parallel."""

    _meta: TensorMeta

    @property
    def is_global(self) -> bool:
        """Whether its parts lie on several ranks, by a layout; see oprack.parallel."""
        return self._meta.layout is not None

    @property
    def layout(self) -> Any:
        """How the parts of a global tensor lie over ranks; None for a tensor of this process alone."""
        return self._meta.layout

    def to_global(
        self, placement: TensorPlacement | None = None, sbp: Any = None, *, from_whole: bool = False
    ) -> Tensor:
        """Make this rank's part a part of a global tensor, or give a global tensor another layout. Collective.

        Args:
            placement: The grid of ranks, as `oprack.parallel.placement` makes it; default: that of a global tensor.
            sbp: For each axis of the grid "split(dim)", "broadcast" or "partial_sum", as text or as
                `oprack.parallel.split(dim)`; one of them alone for a grid of one axis. Default: as it is.
            from_whole: Whether each rank passes the same whole tensor, of which it keeps its part; otherwise each
                passes its part. A tensor with LoD is split by whole sequences.

        Returns:
            The global tensor; gradients flow through.

        Raises:
            InvalidArgumentError: The placement or sbp is missing, does not fit the shape, or is on another kind of
                place.
            CollectiveError: The parts do not make up one tensor.
            UnimplementedError: The tensor is no dense array, or lies on another placement.
        """
        x: Any = self
        layout = self._meta.layout
        if placement is None and layout is not None:
            placement = layout.placement
        if placement is None or not hasattr(placement, "to_global"):
            what = "is of this process alone" if placement is None else f"can't go to {placement!r}"
            raise InvalidArgumentError(
                f"to_global: {x.describe()} {what}; expected where it goes: x.to_global(placement, "
                '"split(0)"), with placement = oprack.parallel.placement()'
            )
        return placement.to_global(x, sbp, from_whole)

    def to_local(self) -> Tensor:
        """This rank's part of a global tensor, as a tensor of this process; gradients flow through.

        Returns:
            The part; the tensor itself when it is not global.
        """
        x: Any = self
        layout = self._meta.layout
        return x if layout is None else layout.to_local(x)
