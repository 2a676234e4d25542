"""Methods of tensors that lie on several ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oprack.eager_tensor import Tensor
from oprack.functional.tensor_methods import TensorMethods
from oprack.tensor.meta import TensorMeta

if TYPE_CHECKING:
    from oprack.parallel.layouts.layout import Placement


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

    def to_global(self, placement: Placement | None = None, sbp: Any = None, *, from_whole: bool = False) -> Tensor:
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
        from oprack.parallel.eager.global_tensor import to_global  # most programs run on one rank

        x: Any = self
        return to_global(x, placement, sbp, from_whole=from_whole)

    def to_local(self) -> Tensor:
        """This rank's part of a global tensor, as a tensor of this process; gradients flow through.

        Returns:
            The part; the tensor itself when it is not global.
        """
        from oprack.parallel.eager.global_tensor import to_local

        x: Any = self
        return to_local(x)
