"""StaticRNN: a recurrent network over dense tensors, one step for each index of the first dim."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Self

from oprack.errors import InvalidArgumentError
from oprack.layers import Variable, check_variable
from oprack.types import VarType

from oprack_control_flow.layers.array import tensor_array_to_tensor
from oprack_control_flow.layers.loop import _RNN as RNN
from oprack_control_flow.layers.loop import _filled as filled


class StaticRNN(RNN):
    """Runs a step for each index along the first dim of its inputs, [steps, batch, ...].

        rnn = layers.StaticRNN()
        with rnn.step():
            word = rnn.step_input(x)
            before = rnn.memory(shape=[-1, 64], batch_ref=word)
            hidden = layers.fc([word, before], 64, act="tanh")
            rnn.update_memory(before, hidden)
            rnn.step_output(hidden)
        out = rnn()                                             # [steps, batch, 64]

    Ops while, slice, write_to_array, tensor_array_to_tensor and others. Raises InvalidArgumentError.
    """

    kind = "static_rnn"

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._inputs: dict[str, Variable] = {}
        self._count = -1

    def step(self) -> AbstractContextManager[Self]:
        """Build the step from the layers in this with block."""
        return self._block()

    def step_input(self, x: Variable) -> Variable:
        """x[t] in step t; x is [steps, ...]."""
        self._outer(x, "x")
        if not x.shape or (self._count > 0 and x.shape[0] not in (-1, self._count)):
            raise InvalidArgumentError(
                f"StaticRNN.step_input: x has shape {list(x.shape)}; expected [steps, ...], with the "
                f"{self._count if self._count > 0 else ''} steps of the other inputs"
            )
        self._count = max(self._count, x.shape[0])
        if self._steps is None:
            with self._outside():
                self._steps = self._integer(x.shape[0]) if x.shape[0] > 0 else self._length(x)
                self._compare()
        seen = x[self._step]
        self._inputs[seen.name] = x
        return seen

    def _length(self, x: Variable) -> Variable:
        shape = self._helper.apply("shape", {"Input": x}, stop_gradient=True)
        attrs: dict[str, Any] = {"axes": [0], "starts": [0], "ends": [1]}
        first = self._helper.apply("slice", {"Input": shape}, attrs, stop_gradient=True)
        attrs = {"in_dtype": int(VarType.INT32), "out_dtype": int(VarType.INT64)}
        return self._helper.apply("cast", {"X": first}, attrs, stop_gradient=True)

    def memory(
        self,
        init: Variable | None = None,
        shape: Sequence[int] | None = None,
        batch_ref: Variable | None = None,
        init_value: float = 0.0,
        init_batch_dim_idx: int = 0,
        ref_batch_dim_idx: int = 1,
    ) -> Variable:
        """The value passed to update_memory in the previous step; in the first step, `init` or a filled tensor.

        Args:
            init: The initial value; None for a tensor of `init_value`.
            shape: The shape of that tensor, of which dim init_batch_dim_idx is replaced by the batch size.
            batch_ref: The result of step_input, or an outer variable, from which the batch size is taken.
            init_value: The value of all its elements.
            init_batch_dim_idx: The batch dim of `shape`.
            ref_batch_dim_idx: The batch dim of the whole input to which batch_ref belongs.
        """
        with self._outside():
            if init is not None:
                start = self._outer(init, "init")
            else:
                if shape is None or batch_ref is None:
                    raise InvalidArgumentError("StaticRNN.memory: expected init, or shape and batch_ref")
                whole = self._inputs.get(check_variable(batch_ref, "batch_ref", "StaticRNN.memory").name, batch_ref)
                start = filled(
                    self._helper, whole, shape, batch_ref.dtype, init_value, ref_batch_dim_idx, init_batch_dim_idx
                )
            outside = self._helper.apply("assign", {"X": start})
        return self._remember(outside, outside)

    def step_output(self, o: Variable) -> None:
        """Make the values of a variable in all steps, [steps, ...], a result of the network."""
        self.output(o)

    def _result(self, array: Variable, inner: Variable) -> Variable:
        out, _ = tensor_array_to_tensor(array, axis=0, use_stack=True)
        out.desc.shape = (self._count, *inner.shape)
        return out
