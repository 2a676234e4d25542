"""OpTest: an op's test as a class, in the style of Paddle's own op tests, so that these can be brought along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from oprack.tensor import LoDTensor, lod_from_lengths
from oprack.testing.op_case import OpCase


class OpTest:
    """Set op_type, inputs, attrs and outputs in `setup_method`, then call check_output and check_grad in tests.

    inputs, outputs: slot -> array; (array, recursive sequence lengths) for a tensor with LoD; a list of
    (name, array) pairs for a duplicable slot. Example:

        class TestRelu(OpTest):
            def setup_method(self):
                self.op_type = "relu"
                self.inputs = {"X": x}
                self.outputs = {"Out": np.maximum(x, 0)}

            def test_output(self):
                self.check_output()

            def test_grad(self):
                self.check_grad(["X"])
    """

    op_type: str = ""
    inputs: Mapping[str, Any] = {}
    attrs: Mapping[str, Any] = {}
    outputs: Mapping[str, Any] = {}
    __test__: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__test__ = True

    def case(self, *, grads: Sequence[str] = (), rtol: float = 1e-5, atol: float = 1e-6) -> OpCase:
        """The OpCase that the attributes describe."""
        inputs = {slot: _value(v) for slot, v in self.inputs.items()}
        outputs = {slot: _value(v) for slot, v in self.outputs.items()}
        name = type(self).__name__
        return OpCase(self.op_type, inputs, dict(self.attrs), outputs, grads, name, rtol, atol)

    def check_output(self, *, atol: float = 1e-5, rtol: float = 1e-5, no_check_set: Sequence[str] = ()) -> None:
        """Assert that the outputs agree on the reference path and on the prepared path.

        no_check_set: output slots that are not compared.
        """
        case = self.case(rtol=rtol, atol=atol)
        case.outputs = {s: _unchecked(v) if s in no_check_set else v for s, v in case.outputs.items()}
        reasons = case.check()
        assert not reasons, "\n".join(reasons)

    def check_grad(self, inputs_to_check: Sequence[str], *, max_relative_error: float = 1e-5) -> None:
        """Assert that the gradients of these input slots agree with central differences at float64.

        The direction is random; the loss is the sum of all floating outputs times random numbers.
        """
        reasons = self.case(grads=inputs_to_check).check_gradient(tolerance=max_relative_error)
        assert not reasons, "\n".join(reasons)


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return [_value(v[1] if isinstance(v, tuple) and isinstance(v[0], str) else v) for v in value]
    if isinstance(value, tuple):
        return LoDTensor(np.asarray(value[0]), lod_from_lengths(value[1]))
    return value


def _unchecked(value: Any) -> Any:
    return [None] * len(value) if isinstance(value, list) else None
