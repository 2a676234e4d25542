"""Wrong ops, attributes, shapes and values end in errors of oprack's own, that say more than NumPy does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import raw_outcomes
from oprack.errors import InvalidArgumentError, OprackError, PreconditionNotMetError
from oprack.packs.manager import default_manager
from oprack.program import Program
from oprack.runtime import Executor


def test_few_outcomes_are_raw() -> None:
    """Every case of every op, altered twice: what NumPy says itself is rare, and some of it never comes through."""
    kinds, raw = raw_outcomes.count(2, seed=5)
    failed = sum(n for kind, n in kinds.items() if kind not in ("ok", "nothing"))
    assert kinds["bare"] == 0, raw
    assert failed > 150 and len(raw) < 0.15 * failed, raw
    for never in ("'NoneType'", "array is too big", "Maximum allowed dimension", "NoneType and"):
        assert not [text for text in raw if never in text]


def run(op: str, inputs: dict[str, Any], output: str, attrs: dict[str, Any] | None = None, bound: Any = None) -> Any:
    """The op on the reference path; bound: slots that differ from inputs."""
    program = Program()
    block = program.global_block()
    for name, value in inputs.items():
        block.create_var(name, dtype=str(value.dtype), shape=list(value.shape))
    block.create_var("out")
    desc = block.append_op(op, bound or {name: [name] for name in inputs}, {output: ["out"]})
    protos = default_manager().op_info(op).proto.attrs
    for name, value in (attrs or {}).items():
        desc.set_attr(name, value, protos[name].type)
    (out,) = Executor(prepared=False).run(program, inputs, ["out"])
    return out


X = np.arange(6.0).reshape(2, 3)
INDEX = np.zeros((2, 3), "int64")


@pytest.mark.parametrize(
    "op,inputs,output,attrs,words",
    [
        ("flip", {"X": X}, "Out", {"axis": [2]}, "axis is 2 but the tensor has rank 2; expected -2 <= axis < 2"),
        ("flip", {"X": X}, "Out", {"axis": [0, -2]}, "expected each axis of X once at most"),
        ("argsort", {"X": X}, "Out", {"axis": -3}, "axis is -3 but the tensor has rank 2"),
        ("softmax", {"X": X}, "Out", {"axis": 7}, "axis is 7 but the tensor has rank 2"),
        ("softmax_grad", {"Out": X, "Out@GRAD": X}, "X@GRAD", {"axis": 7}, "axis is 7 but the tensor has rank 2"),
        ("take_along_axis", {"Input": X, "Index": INDEX}, "Result", {"Axis": 2}, "Axis is 2 but the tensor has rank 2"),
        ("put_along_axis", {"Input": X, "Index": INDEX, "Value": X}, "Result", {"Axis": -3}, "Axis is -3"),
        ("square_grad", {"X": X, "Out@GRAD": X[:1]}, "X@GRAD", {}, "expected the same number of elements"),
        ("relu_grad", {"Out": X, "Out@GRAD": X[:1]}, "X@GRAD", {},
         r"Out@GRAD has shape \[1, 3\], but Out has \[2, 3\]; expected the shape of what it is the gradient of"),
        ("assign", {}, "Out", {}, "input X is absent|no input"),
        ("increment", {"X": INDEX[:1, :1]}, "Out", {"step": float("nan")}, "step is nan; expected a finite one"),
        ("fill_constant", {}, "Out", {"shape": [2**31, 2**31], "dtype": 5},
         r"would have shape \[2147483648, 2147483648\], which takes 4611686018427387904 bytes or more; this machine"),
    ],
)  # fmt: skip
def test_own_words(op: str, inputs: dict[str, Any], output: str, attrs: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        run(op, inputs, output, attrs)


def test_a_needed_input_without_a_value() -> None:
    with pytest.raises(InvalidArgumentError, match="op elementwise_add: input Y is absent, but the op needs it; give"):
        run("elementwise_add", {"X": X}, "Out", {"axis": -1})
    program = Program()
    block = program.global_block()
    for name in ("x", "y", "out"):
        block.create_var(name, dtype="float64", shape=[2, 3])
    block.append_op("elementwise_add", {"X": ["x"], "Y": ["y"]}, {"Out": ["out"]})
    with pytest.raises(
        PreconditionNotMetError, match=r"input Y \(variable 'y'\) holds no value; feed it or run the op"
    ):
        Executor(prepared=False).run(program, {"x": X}, ["out"])
    with pytest.raises(OprackError, match=r"'y'.*holds no value"):
        Executor().run(program, {"x": X}, ["out"])


def test_scalars_have_one_axis_and_gradients_of_scalars_may_be_lists_of_one() -> None:
    assert run("argsort", {"X": np.array(3.0)}, "Out", {"axis": -1}) == 3
    assert run("square_grad", {"X": np.array([3.0]), "Out@GRAD": np.array(1.0)}, "X@GRAD").reshape(-1) == [6.0]
