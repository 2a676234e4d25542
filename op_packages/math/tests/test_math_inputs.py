"""Attributes given as variables, and errors for inputs that do not fit."""

from __future__ import annotations

import numpy as np
import pytest
from oprack.desc import OpDesc
from oprack.errors import AttributeValueError, InvalidArgumentError, OprackError
from oprack.op.desc_rules import infer_op
from oprack.packs.manager import default_manager
from oprack.program import Program
from oprack.runtime import Executor
from oprack.tensor import LoDTensor
from oprack.types import AttrType

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def run(op_type, inputs, attrs=None, types=None, extra=None, prepared=True):
    """Build a program of one op, infer its shapes, run it. Returns Out and the shape known at build time."""
    program = Program()
    block = program.global_block()
    feed = dict(inputs) | dict(extra or {})
    for name, value in feed.items():
        block.create_var(name, dtype=value.dtype.name, shape=value.shape)
    block.create_var("out")
    slots = {name: [name] for name in inputs}
    op = block.append_op(OpDesc(op_type, slots, {"Out": ["out"]}, attrs or {}, types or {}))
    infer_op(op, block, default_manager().op_info(op_type))
    (out,) = Executor(prepared=prepared).run(program, feed, ["out"])
    return out, block.vars["out"].shape


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize(
    ("op_type", "attrs", "types", "axis", "built", "want"),
    [
        ("reduce_sum", {"dim": ["axis"]}, {"dim": AttrType.VARS}, [1], (-1, -1), X.sum(1)),
        ("reduce_sum", {"dim": "axis"}, {"dim": AttrType.VAR}, [1, 2], (-1, -1), X.sum((1, 2))),
        (
            "reduce_max",
            {"dim": "axis", "keep_dim": True},
            {"dim": AttrType.VAR},
            [0, 2],
            (-1, -1, -1),
            X.max((0, 2), keepdims=True),
        ),
        ("arg_max", {"axis": "axis"}, {"axis": AttrType.VAR}, [1], (-1, -1), X.argmax(1)),
        ("cumsum", {"axis": "axis"}, {"axis": AttrType.VAR}, [1], (2, 3, 4), X.cumsum(1)),
    ],
)
def test_attribute_from_a_variable(op_type, attrs, types, axis, built, want, prepared):
    extra = {"axis": np.array(axis, np.int64)}
    out, shape = run(op_type, {"X": X}, attrs, types, extra, prepared)
    np.testing.assert_array_equal(out, want)
    assert shape == built


ZERO = np.zeros(1, np.int32)


@pytest.mark.parametrize(
    ("op_type", "inputs", "attrs", "error", "words"),
    [
        (
            "elementwise_add",
            {"X": X, "Y": X[0, :2]},
            {},
            InvalidArgumentError,
            ["elementwise_add", "[2, 4]", "3 and 2"],
        ),
        ("elementwise_add", {"X": X, "Y": X[0]}, {"axis": 2}, InvalidArgumentError, ["axis is 2", "between 0 and 1"]),
        ("elementwise_div", {"X": ZERO + 1, "Y": ZERO}, {}, OprackError, ["elementwise_div", "holds a 0"]),
        ("elementwise_mod", {"X": ZERO + 1, "Y": ZERO}, {}, OprackError, ["elementwise_mod", "holds a 0"]),
        ("matmul_v2", {"X": X, "Y": X}, {}, InvalidArgumentError, ["matmul_v2", "4 columns", "3 rows"]),
        ("mul", {"X": X, "Y": X}, {"x_num_col_dims": 3}, InvalidArgumentError, ["x_num_col_dims is 3", "rank above 3"]),
        ("reduce_sum", {"X": X}, {"dim": [3]}, InvalidArgumentError, ["dim 3", "-3 to 2"]),
        ("reduce_mean", {"X": X}, {"dim": [0, -3]}, InvalidArgumentError, ["twice"]),
        ("reduce_max", {"X": X[:0]}, {"dim": [0]}, InvalidArgumentError, ["at least one element"]),
        ("arg_max", {"X": X}, {}, AttributeValueError, ["axis", "missing"]),
        ("arg_max", {"X": X}, {"axis": 3}, InvalidArgumentError, ["axis is 3"]),
        ("clip", {"X": X}, {"min": 2.0, "max": 1.0}, OprackError, ["min is 2.0", "min <= max"]),
        ("increment", {"X": X}, {}, InvalidArgumentError, ["one element"]),
        ("bmm", {"X": X, "Y": X[:1]}, {}, InvalidArgumentError, ["equal first dims"]),
        ("clip_by_norm", {"X": X}, {"max_norm": 0.0}, AttributeValueError, ["greater than 0"]),
    ],
)
def test_error_says_what_was_given_and_expected(op_type, inputs, attrs, error, words):
    types = {k: default_manager().op_info(op_type).proto.attrs[k].type for k in attrs}
    with pytest.raises(error) as caught:
        run(op_type, inputs, attrs, types)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_equal_all_is_a_tensor_in_every_run_of_a_plan() -> None:
    """The plan is of a run whose shapes differ, which NumPy has no scalar for."""
    program = Program()
    block = program.global_block()
    for name in ("x", "y", "out"):
        block.create_var(name)
    block.append_op("equal_all", {"X": ["x"], "Y": ["y"]}, {"Out": ["out"]})
    executor, two = Executor(), np.ones((2, 2))
    for x, y, want in [(two, two[:1], False), (two, two, True), (two[:0], two[:0], True)]:
        for _ in range(2):
            (got,) = executor.run(program, {"x": x, "y": y}, ["out"], return_numpy=False)
            assert isinstance(got, LoDTensor) and got.array.shape == () and bool(got.array) is want
