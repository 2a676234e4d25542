"""KernelTypeContext: what the rule that chooses an op's OpKernelType can ask about the running op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oprack.errors import InvalidArgumentError, PreconditionNotMetError
from oprack.kernel import OpKernelType
from oprack.runtime.infer import dtype_of_value
from oprack.tensor import Place

if TYPE_CHECKING:
    from oprack.runtime.kernel_operator import OperatorWithKernel


class KernelTypeContext:
    """The argument of `expected_kernel_type(ctx)`."""

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
        """dtype of input i of a slot.

        Raises:
            InvalidArgumentError: The input is absent or holds no tensor.
        """
        values = self._values.get(slot, ())
        dtype = dtype_of_value(values[i]) if i < len(values) else None
        if dtype is None:
            raise InvalidArgumentError(f"op {self.op_type}: input {slot}[{i}] holds no tensor, so it has no dtype")
        return dtype

    def output_dtype(self, slot: str) -> str | None:
        """dtype that the program declares for the first output of a slot; None when it does not say."""
        return self._op.output_dtype(slot)

    def kernel_type(self, *, dtype: str, place: str | None = None, library: str = "plain") -> OpKernelType:
        """An OpKernelType at the place of the run, unless `place` is given; `library` requests a library."""
        return OpKernelType(place or self.place.kind, dtype, library)

    def common_dtype(self) -> OpKernelType:
        """The default rule: the dtype that all present inputs share.

        Raises:
            InvalidArgumentError: The message names the inputs that differ, or says that none is present.
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
