"""The testing room: OpCase and OpTest find what is wrong, and say it."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from oprack.errors import DefinitionError
from oprack.kernel import kernel
from oprack.op import GradOp, Input, OpDef, Output
from oprack.packs.manager import PackManager
from oprack.tensor import LoDTensor
from oprack.testing import LIMITATION, OpCase, OpTest
from oprack_testing.pytest_plugin import pytest_terminal_summary

X = np.array([[1.0, -2.0], [3.0, 4.0]])


@pytest.fixture(autouse=True)
def _rack(rack: PackManager) -> None:
    """Tests run on the small ops of conftest."""


def test_a_case_that_agrees() -> None:
    assert OpCase("double", {"X": X}, {"factor": 3.0}, {"Out": 3 * X}, grads=["X"]).check() == []
    lod = LoDTensor(X, [[0, 0, 2]])
    assert OpCase("double", {"X": lod}, outputs={"Out": LoDTensor(2 * X, [[0, 0, 2]])}).check() == []
    assert OpCase("join", {"X": [X, X]}, outputs={"Out": np.concatenate([X, X])}).check() == []


@pytest.mark.parametrize(
    ("outputs", "text"),
    [
        ({"Out": 3 * X}, "differs by up to 4"),
        ({"Out": np.float32(2 * X)}, "is float64[2, 2], expected float32[2, 2]"),
        ({"Out": LoDTensor(2 * X, [[0, 2]])}, "has LoD [], expected [[0, 2]]"),
    ],
)
def test_a_case_that_differs_says_how_on_every_path(outputs: dict[str, Any], text: str) -> None:
    found = OpCase("double", {"X": X}, outputs=outputs).check()
    assert len(found) == 3 and all(text in line for line in found)


def test_a_slot_that_the_op_does_not_have() -> None:
    with pytest.raises(DefinitionError, match=r"double: Y is no slot of op double; inputs are X"):
        OpCase("double", {"Y": X}).check()


def test_a_wrong_gradient_is_found(rack: PackManager) -> None:
    @kernel("double_grad", priority=1)
    def wrong(Out_grad: Any, *, factor: float) -> Any:
        return Out_grad * (factor + 1)

    rack.register_kernel(wrong)
    (line,) = OpCase("double", {"X": X}, outputs={"Out": 2 * X}, grads=["X"]).check()
    assert "gradient of X_0 is" in line and "central differences give" in line


def test_a_gradient_is_checked_through_the_outputs_that_the_case_names(rack: PackManager) -> None:
    class Both(OpDef, type="both"):
        """Once = X, Twice = 2 X; only Once passes a gradient on."""

        X = Input("Any tensor.")
        Once = Output("As X.")
        Twice = Output("As X.")

        def infer_shape(ctx) -> None:
            ctx.set_dim("Once", ctx.dim("X"))
            ctx.set_dim("Twice", ctx.dim("X"))

        def make_grad(fwd) -> GradOp:
            return GradOp("double", X=fwd.output_grad("Once"), Out=fwd.input_grad("X"), attrs={"factor": 1.0})

    @kernel("both")
    def both(X: Any) -> Any:
        return X.copy(), 2 * X

    rack.register_op(Both)
    rack.register_kernel(both)
    outputs = {"Once": X, "Twice": 2 * X}
    assert OpCase("both", {"X": X}, outputs=outputs, grads=["X"], loss=["Once"]).check() == []
    (line,) = OpCase("both", {"X": X}, outputs=outputs, grads=["X"]).check()
    assert "gradient of X_0 is" in line
    with pytest.raises(DefinitionError, match="Thrice is no slot of op both"):
        OpCase("both", {"X": X}, outputs=outputs, grads=["X"], loss=["Thrice"]).check()


class TestDouble(OpTest):
    """The style of Paddle's op tests."""

    def setup_method(self) -> None:
        self.op_type = "double"
        self.inputs = {"X": (X, [[2, 0]])}
        self.attrs = {"factor": 0.5}
        self.outputs = {"Out": (0.5 * X, [[2, 0]])}

    def test_output(self) -> None:
        self.check_output()

    def test_gradient(self) -> None:
        self.check_grad(["X"])

    def test_a_wrong_output_fails(self) -> None:
        self.outputs = {"Out": (X, [[2, 0]])}
        with pytest.raises(AssertionError, match="double-TestDouble: Out_0 differs by up to 2"):
            self.check_output()
        self.check_output(no_check_set=["Out"])


class TestJoin(OpTest):
    """A duplicable slot is a list of (name, array)."""

    def setup_method(self) -> None:
        self.op_type = "join"
        self.inputs = {"X": [("a", X), ("b", X)]}
        self.outputs = {"Out": np.concatenate([X, X])}

    def test_output(self) -> None:
        self.check_output()


def test_the_pytest_plugin_imports_no_array_library() -> None:
    code = (
        "import sys, oprack_testing.pytest_plugin; print([m for m in ('numpy', 'google.protobuf') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_known_gaps_are_printed_as_a_table() -> None:
    class Reporter:
        stats = {"passed": [SimpleNamespace(user_properties=[(LIMITATION, ["relu.0001", "forward", "a reason"])])]}

        def __init__(self) -> None:
            self.lines: list[str] = []

        def section(self, title: str, **_: Any) -> None:
            self.lines.append(title)

        def write_line(self, line: str) -> None:
            self.lines.append(line)

    reporter = Reporter()
    pytest_terminal_summary(reporter)
    assert reporter.lines == ["1 known differences from the recorded cases", "relu.0001  forward  a reason"]
