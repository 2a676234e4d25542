"""Variables that ops name by attributes only: what blocks read, what gradients need, and what is dropped when."""

from __future__ import annotations

import numpy as np
import pytest
from oprack import Executor, layers
from oprack.desc import OpDesc
from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, program_guard
from oprack.program import Program
from oprack.runtime import Checks
from oprack.types import AttrType, VarType

X = np.array([[1.0, 2.0], [3.0, 5.0]], np.float32)
AXIS = {"axis": AttrType.VAR}


def cumsum(b, source, result, axis):
    """Sums along the dim that variable `axis` holds."""
    b.var(result)
    b.block.append_op(OpDesc("cumsum", {"X": source}, {"Out": result}, {"axis": axis}, AXIS))


@pytest.mark.parametrize("options", [{}, {"prepared": False}, {"checks": Checks(nan_inf=True)}])
def test_a_loop_finds_a_variable_that_only_an_attribute_names(builder, options):
    """Checks make a run drop what no op needs any more, one op after the other."""
    b = builder()
    b.var("x", "k0", "s", "k")
    b.op("assign", X="k0", Out="k")  # local, and in no slot of what follows
    b.constant("i", 0, VarType.INT64)
    b.constant("n", 2, VarType.INT64)
    b.op("less_than", X="i", Y="n", Out="go")
    b.op("assign", X="x", Out="s")
    b.var("scopes", kind=VarType.STEP_SCOPES)
    with b.inside() as body:
        cumsum(b, "s", "t", "k")
        b.op("assign", X="t", Out="s")
        b.op("increment", X="i", Out="i", step=1.0)
        b.op("less_than", X="i", Y="n", Out="go")
    b.op("while", X=["s", "i", "n"], Condition="go", Out=["s", "i", "go"], StepScopes="scopes", sub_block=body)
    (s,) = b.run({"x": X, "k0": np.array([0], np.int64)}, ["s"], **options)
    assert np.array_equal(s.array, X.cumsum(0).cumsum(0))


@pytest.mark.parametrize("prepared", [True, False])
def test_a_gradient_takes_its_attribute_from_the_value_of_then(differentiated, prepared):
    """The dim is 0 when cumsum runs, and 1 when the loss is there."""

    def function(x):
        axis = layers.fill_constant([1], "int64", 0)
        out = LayerHelper("cumsum").apply("cumsum", {"X": x}, {"axis": axis})
        layers.increment(axis)
        return out

    run = differentiated(function, {"x": X.astype(np.float64)})
    (grad,) = run.run(prepared)
    assert np.allclose(grad, run.cotangent[::-1].cumsum(0)[::-1])


def test_a_gradient_refuses_an_attribute_that_is_lost(differentiated):
    def function(x):
        axis = layers.fill_constant([1], "int64", 0)
        out = LayerHelper("cumsum").apply("cumsum", {"X": x}, {"axis": axis})
        layers.assign(layers.fill_constant([1], "int64", 1), axis)
        return out

    with pytest.raises(InvalidArgumentError, match="op cumsum: its gradient cumsum_grad takes an attribute from"):
        differentiated(function, {"x": X.astype(np.float64)})


def test_a_branch_lists_what_an_attribute_names():
    main = Program()
    with program_guard(main, Program()):
        x = layers.data("x", [2, 2])
        axis = layers.fill_constant([1], "int64", 1)
        go = layers.fill_constant([1], "bool", True)
        out = layers.assign(x)
        with layers.ConditionalBlock(go).block():
            LayerHelper("cumsum").apply("cumsum", {"X": x}, {"axis": axis}, outs={"Out": out})
    (branch,) = [op for op in main.global_block().ops if op.type == "conditional_block"]
    assert branch.input("Input") == [x.name, axis.name]
    (found,) = Executor().run(main, {"x": X}, [out])
    assert np.array_equal(found, X.cumsum(1))
