"""What a kernel may ask about the op that is running."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np

    from oprack.device import DeviceContext
    from oprack.kernel.rules import KernelRules
    from oprack.tensor import Place
    from oprack.tensor.lod_tensor import LoD


class KernelContext(Protocol):
    """Type of the parameter `ctx` that a kernel may have."""

    @property
    def op_type(self) -> str:
        """The op."""

    @property
    def attrs(self) -> Mapping[str, Any]:
        """All attributes of the op, those included that kernels rarely need."""

    @property
    def rules(self) -> KernelRules:
        """Which kernels the run may choose among."""

    @property
    def place(self) -> Place:
        """The place of the run."""

    @property
    def device(self) -> DeviceContext:
        """The DeviceContext of the place: streams and library handles."""

    def lod(self, slot: str, i: int = 0) -> LoD:
        """Offsets of input i of a slot; [] when it has none or is absent."""

    def wants(self, slot: str, i: int = 0) -> bool:
        """Whether output i of a slot is asked for; a gradient kernel may skip the others."""

    def is_read(self, *slots: str) -> bool:
        """Whether an op of the program reads one of these outputs, fetch ops counted."""

    def input_count(self, slot: str) -> int:
        """Number of variables of an input slot."""

    def output_count(self, slot: str) -> int:
        """Number of variables of an output slot."""

    def output_dtype(self, slot: str) -> str | None:
        """dtype that the program declares for the first output of a slot; None when it does not say."""

    def generator(self, seed: int = 0) -> np.random.Generator:
        """Random generator of this draw; a seed other than 0 gives the same numbers on every run."""

    def run_op(
        self,
        op_type: str,
        inputs: Mapping[str, Any],
        attrs: Mapping[str, Any] | None = None,
        lods: Mapping[str, Sequence[LoD]] | None = None,
    ) -> Any:
        """Compute another op on arrays, by the best kernel that the run may choose; for kernels of fused ops.

        Args:
            op_type: The op; its shape rule is not asked.
            inputs: Arrays by slot, a list for a duplicable one, None for an absent one.
            attrs: Those that differ from the op's defaults.
            lods: Offsets of the inputs by slot.

        Returns:
            What the kernel returned: an array, a tuple in the order of OpProto, or a dict by slot.

        Raises:
            KernelNotFoundError: No kernel fits.
        """
