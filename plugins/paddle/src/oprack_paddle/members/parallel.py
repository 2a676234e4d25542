"""paddle.DataParallel: a net whose ranks average their gradients."""

from __future__ import annotations

from typing import Any

from oprack.parallel import DataParallel as _DataParallel


class DataParallel(_DataParallel):
    """A net, of which each rank trains with examples of its own."""

    def __init__(
        self, layers: Any, strategy: Any = None, comm_buffer_size: int = 25, last_comm_buffer_size: int = 1,
        find_unused_parameters: bool = False, group: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(layers, float(comm_buffer_size), None if group is None else group.communicator)

    def scale_loss(self, loss: Any) -> Any:
        """The loss as it is: gradients are averaged."""
        return loss

    def apply_collective_grads(self) -> None:
        """Nothing to do: gradients are averaged in backward."""
