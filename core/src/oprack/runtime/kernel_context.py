"""What a kernel, and the rule that picks its OpKernelType, may ask about the op that is running."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oprack.errors import InvalidArgumentError, PreconditionNotMetError
from oprack.kernel import OpKernelType
from oprack.runtime.infer import dtype_of_value
from oprack.tensor import Place
from oprack.tensor.lod_tensor import LoD

if TYPE_CHECKING:
    from oprack.device import DeviceContext
    from oprack.runtime.kernel_operator import OperatorWithKernel
    from oprack.runtime.run_context import RunContext


class KernelTypeContext:
    """Handed to `expected_kernel_type(ctx)`."""

    def __init__(self, op: OperatorWithKernel, values: Mapping[str, Sequence[Any]], place: Place) -> None:
        self._op = op
        self._values = values
        self.op_type = op.type
        self.attrs = op.attrs
        self.place = place

    def input_count(self, slot: str) -> int:
        return len(self._values.get(slot, ()))

    def has_input(self, slot: str) -> bool:
        return bool(self._values.get(slot))

    def is_initialized(self, slot: str, i: int = 0) -> bool:
        """Whether input i of a slot holds a value with a dtype."""
        values = self._values.get(slot, ())
        return i < len(values) and dtype_of_value(values[i]) is not None

    def dtype(self, slot: str, i: int = 0) -> str:
        """dtype of input i of a slot. Raises InvalidArgumentError when it holds none."""
        values = self._values.get(slot, ())
        dtype = dtype_of_value(values[i]) if i < len(values) else None
        if dtype is None:
            raise InvalidArgumentError(f"op {self.op_type}: input {slot}[{i}] holds no tensor, so it has no dtype")
        return dtype

    def output_dtype(self, slot: str) -> str | None:
        """dtype that the program declares for the first output of a slot; None when it does not say."""
        return self._op.output_dtype(slot)

    def kernel_type(
        self, *, dtype: str, place: str | None = None, layout: str = "any", library: str = "plain"
    ) -> OpKernelType:
        """An OpKernelType at the place of the run; a library or layout may be forced."""
        return OpKernelType(place or self.place.kind, dtype, layout, library)

    def common_dtype(self) -> OpKernelType:
        """The default rule: the dtype that all given inputs share.

        Raises InvalidArgumentError that names the inputs that differ, or says that none is given.
        """
        first: tuple[str, str] | None = None
        for slot, values in self._values.items():
            for i, value in enumerate(values):
                dtype = dtype_of_value(value)
                if dtype is None:
                    continue
                if first is None:
                    first = (f"{slot}[{i}]", dtype)
                elif dtype != first[1]:
                    raise InvalidArgumentError(
                        f"op {self.op_type} (pack {self._op.info.pack}): input {first[0]} is {first[1]} but "
                        f"{slot}[{i}] is {dtype}; all inputs of this op share one dtype, so cast one of them"
                    )
        if first is None and self._values:
            names = [repr(n) for slot in self._values for n in self._op.inputs[slot]]
            raise PreconditionNotMetError(
                f"op {self.op_type}: variable {', '.join(names)} holds no value; feed it, load it, or run the op that "
                "writes it first"
            )
        if first is None:
            raise InvalidArgumentError(
                f"op {self.op_type} (pack {self._op.info.pack}): it has no input, so the dtype of the kernel can't "
                "be told; its definition needs expected_kernel_type, for example dtype_of_attr('dtype')"
            )
        return self.kernel_type(dtype=first[1])


class KernelContext:
    """Injected into kernels as `ctx`. lods: offsets of the inputs by slot; slots without LoD may be left out."""

    __slots__ = ("_attrs", "_lods", "_op", "_run")

    def __init__(
        self,
        op: OperatorWithKernel,
        lods: Mapping[str, Sequence[LoD]],
        run: RunContext,
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        """attrs: where the program takes some from variables, all of them with these values."""
        self._op = op
        self._attrs = op.attrs if attrs is None else attrs
        self._lods = lods
        self._run = run

    @property
    def op_type(self) -> str:
        return self._op.type

    @property
    def attrs(self) -> Mapping[str, Any]:
        """All attributes of the op, those that kernels rarely need included."""
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
