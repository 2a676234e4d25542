"""What a kernel may ask about the op that is running."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oprack.kernel import KernelRules
from oprack.runtime.compose import StepContext
from oprack.tensor import Place
from oprack.tensor.lod_tensor import LoD

if TYPE_CHECKING:
    from oprack.device import DeviceContext
    from oprack.runtime.kernel_operator import OperatorWithKernel
    from oprack.runtime.run_context import RunContext


class KernelContext:
    """Injected into kernels as `ctx`.

    Args:
        op: The operator.
        lods: Offsets of the inputs by slot; slots without LoD may be left out.
        run: The run.
        attrs: All attributes, where the program takes some from variables; None means the operator's.
    """

    __slots__ = ("_attrs", "_lods", "_op", "_run")

    def __init__(
        self,
        op: OperatorWithKernel,
        lods: Mapping[str, Sequence[LoD]],
        run: RunContext,
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        self._op = op
        self._attrs = op.attrs if attrs is None else attrs
        self._lods = lods
        self._run = run

    @property
    def op_type(self) -> str:
        return self._op.type

    @property
    def attrs(self) -> Mapping[str, Any]:
        """All attributes of the op, those included that kernels rarely need."""
        return self._attrs

    @property
    def place(self) -> Place:
        return self._run.place

    @property
    def device(self) -> DeviceContext:
        """The DeviceContext of the place: streams and library handles."""
        return self._run.device

    def lod(self, slot: str, i: int = 0) -> LoD:
        """Offsets of input i of a slot; [] when it has none or is absent."""
        lods = self._lods.get(slot, ())
        return lods[i] if i < len(lods) else []

    def wants(self, slot: str, i: int = 0) -> bool:
        """Whether output i of a slot is asked for; a gradient kernel may skip the others."""
        return self._op.wants(slot, i)

    def is_read(self, *slots: str) -> bool:
        """Whether an op of the program reads one of these outputs, fetch ops counted.

        For intermediate outputs, which are there for the gradient: a kernel that is faster without them may leave out
        those that nobody reads.
        """
        return any(self._op.is_read(slot) for slot in slots)

    def input_count(self, slot: str) -> int:
        return len(self._op.inputs.get(slot, ()))

    def output_count(self, slot: str) -> int:
        return len(self._op.outputs.get(slot, ()))

    def output_dtype(self, slot: str) -> str | None:
        """dtype that the program declares for the first output of a slot; None when it does not say."""
        return self._op.output_dtype(slot)

    def generator(self, seed: int = 0) -> np.random.Generator:
        """Random generator of this draw; a seed other than 0 gives the same numbers on every run."""
        return self._run.random.generator(self._op.key, seed)

    @property
    def rules(self) -> KernelRules:
        """Which kernels the run may choose among."""
        return self._run.rules

    def run_op(
        self,
        op_type: str,
        inputs: Mapping[str, Any],
        attrs: Mapping[str, Any] | None = None,
        lods: Mapping[str, Sequence[LoD]] | None = None,
    ) -> Any:
        """Compute another op on arrays, as `oprack.kernel.KernelContext.run_op` says."""
        run = self._run
        step = StepContext(run.program.manager, op_type, attrs, run.rules, lods, run.place, run.device.xp)
        return step.compute(inputs, attrs or {})
