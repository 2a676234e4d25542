"""OpExpr.of: a call described by names, applied in the mode of the moment; OPRACK_DETERMINISTIC as the default mode."""

from __future__ import annotations

import contextvars
import re
import sys
from typing import Any

import numpy as np
import oprack
import pytest
from oprack.errors import AttributeValueError, InvalidArgumentError, UnknownOpError
from oprack.inference import Config
from oprack.interpreter import OpExpr, apply
from oprack.interpreter.modes import current_mode
from oprack.packs.manager import PackManager
from oprack.program import Program
from oprack.runtime import Executor


def test_it_runs_with_gradients_and_in_programs(rack: PackManager) -> None:
    expr = OpExpr.of("double", {"factor": 3.0}, inputs=["X"])
    for _ in range(3):
        x = oprack.to_tensor(np.array([1.0, 2.0]), requires_grad=True)
        y = apply(expr, x)
        np.testing.assert_array_equal(y.numpy(), [3.0, 6.0])
        y.backward(oprack.to_tensor(np.array([1.0, 10.0])))
        np.testing.assert_array_equal(x.grad.numpy(), [3.0, 30.0])
    with oprack.no_grad():
        assert not apply(expr, x).requires_grad
    program = Program()
    with oprack.program_guard(program, Program()), oprack.static_mode():
        out = apply(expr, oprack.layers.data("x", [-1], dtype="float64"))
    assert out.shape == (-1,) and program.global_block().ops[-1].attrs["factor"] == 3.0


def test_lists_and_absent_inputs(rack: PackManager) -> None:
    ones = oprack.to_tensor(np.ones((1, 2)))
    joined = OpExpr.of("join", inputs={"X": 3})
    assert apply(joined, ones, ones, ones).shape == (3, 2)
    with pytest.raises(InvalidArgumentError, match="applied to 2 tensors; expected 3"):
        apply(joined, ones, ones)
    w, ids = oprack.to_tensor(np.eye(2)), oprack.to_tensor(np.array([1, 0]))
    pick = OpExpr.of(rack.op_info("pick"), inputs=["W", "Ids"])  # in whatever order: calls go by that of the op
    np.testing.assert_array_equal(apply(pick, ids, w).numpy(), np.eye(2)[[1, 0]])


@pytest.mark.parametrize(
    ("arguments", "options", "error", "text"),
    [
        (("nothing",), {"inputs": ["X"]}, UnknownOpError, "op 'nothing' is unknown"),
        (("double", {"factor": -1.0}), {"inputs": ["X"]}, AttributeValueError, "factor"),
        (
            ("double", {"fctor": 1.0}),
            {"inputs": ["X"]},
            InvalidArgumentError,
            "no attribute 'fctor' (did you mean factor",
        ),
        (("double",), {"inputs": ["x"]}, InvalidArgumentError, "no input 'x'"),
        (("double",), {"inputs": ["X"], "outputs": {"Y": 1}}, InvalidArgumentError, "no output 'Y'"),
        (("double",), {"inputs": {"X": 2}}, InvalidArgumentError, "input X can't have 2 tensors"),
        (("pick",), {"inputs": ["Ids"]}, InvalidArgumentError, "input W is missing"),
    ],
)
def test_what_does_not_fit_is_refused(rack: PackManager, arguments: Any, options: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        OpExpr.of(*arguments, **options)


@pytest.mark.parametrize(("value", "wanted"), [("1", True), ("on", True), ("0", False), ("no", False), ("", False)])
def test_the_environment_says_whether_runs_are_deterministic(
    rack: PackManager, monkeypatch: pytest.MonkeyPatch, value: str, wanted: bool
) -> None:
    monkeypatch.setenv("OPRACK_DETERMINISTIC", value)
    assert Executor().rules.deterministic is wanted and Config().deterministic() is wanted
    assert Executor(deterministic=not wanted).rules.deterministic is not wanted
    assert contextvars.Context().run(lambda: current_mode().deterministic) is wanted


def test_tensors_know_ranks_by_what_they_are_given(rack: PackManager, monkeypatch: pytest.MonkeyPatch) -> None:
    """As without oprack-parallel, of which nothing can be imported here."""
    for name in [n for n in sys.modules if n.startswith("oprack.parallel.")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "oprack.parallel", None)

    class Grid:
        def to_global(self, x: Any, sbp: Any, from_whole: bool) -> Any:
            return x, sbp, from_whole

    x: Any = oprack.to_tensor(np.array([1.0, 2.0]))
    assert x.to_local() is x and not x.is_global and x.layout is None
    assert x.to_global(Grid(), "split(0)", from_whole=True) == (x, "split(0)", True)
    for arguments, what in [((), "is of this process alone"), (("cpu", "B"), "can't go to 'cpu'")]:
        with pytest.raises(InvalidArgumentError, match=rf"{what}; expected .* = parallel\.placement\(\) after"):
            x.to_global(*arguments)
