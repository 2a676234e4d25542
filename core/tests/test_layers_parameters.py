"""Parameters of programs written by hand: declared, shared, initialised, with the small ops of layers_rack."""

from __future__ import annotations

import pytest
from layers_rack import Constant, Xavier
from oprack import layers
from oprack.errors import (
    InvalidArgumentError,
)
from oprack.layers import LayerHelper, ParamAttr


def double(x, **attrs):
    return LayerHelper("double").apply("double", {"X": x}, attrs)


# Parameters -----------------------------------------------------------------------------------------------------------
def test_parameter_is_declared_and_filled_in_both_programs(programs):
    main, startup = programs
    attr = ParamAttr(name="w", initializer=Constant(2.0), learning_rate=0.5, trainable=False, need_clip=False)
    w = LayerHelper("fc").create_parameter(attr, [3, 4], "float64")
    assert (w.shape, w.dtype, w.persistable, w.is_parameter, w.trainable) == ((3, 4), "float64", True, True, False)
    assert w.optimize_attr == {"learning_rate": 0.5} and not w.need_clip and w.initializer is attr.initializer
    var, (op,) = startup.global_block().vars["w"], startup.global_block().ops
    assert var.persistable and var is not w.desc
    assert (op.type, op.attr("shape"), op.attr("dtype"), op.attr("value")) == ("rack_fill", [3, 4], 6, 2.0)
    w.trainable = True
    assert main.global_block().vars["w"].stop_gradient is False


def test_parameters_are_shared_by_name(programs):
    _, startup = programs
    first, second = (LayerHelper("fc").create_parameter("w", [3, 4]) for _ in range(2))
    assert first.desc is second.desc and len(startup.global_block().ops) == 1
    with pytest.raises(
        InvalidArgumentError, match=r"'w' would be float32\[4, 4\], but the program has w: float32\[3, 4\]"
    ):
        LayerHelper("fc").create_parameter("w", [4, 4])
    layers.data("x", [3, 4])
    with pytest.raises(InvalidArgumentError, match="'x' would be"):
        LayerHelper("fc").create_parameter("x", [3, 4])


@pytest.mark.parametrize(
    ("attr", "shape", "text"),
    [
        (None, [-1, 3], r"parameter would have shape \[-1, 3\]"),
        (None, [0], r"greater than 0"),
        (False, [1], "can't be left out with False"),
        (3, [1], r"got 3 \(int\); expected ParamAttr"),
        (ParamAttr(initializer="zeros"), [1], "initializer of parameter 'fc_0.w_0' is 'zeros'"),
    ],
)
def test_bad_parameter_leaves_no_trace(programs, attr, shape, text):
    with pytest.raises(InvalidArgumentError, match=text):
        LayerHelper("fc").create_parameter(attr, shape)
    assert not any(p.global_block().vars or p.global_block().ops or p.parameters for p in programs)


def test_param_attr_of():
    initializer = Xavier()
    assert ParamAttr.of(None) == ParamAttr() == ParamAttr.of(True) and ParamAttr.of(False) is None
    assert ParamAttr.of("w").name == "w" and ParamAttr.of(initializer).initializer is initializer
    assert ParamAttr.of(len).regularizer is len


def test_defaults_are_xavier_and_zero(programs):
    helper = LayerHelper("fc")
    helper.create_parameter(None, [2, 4])
    helper.create_parameter(None, [4], is_bias=True)
    weight, bias = programs[1].global_block().ops
    assert weight.type == "rack_draw"
    assert (bias.type, bias.attr("value")) == ("rack_fill", 0.0)


def test_global_variables(programs):
    main, startup = programs
    main.create_block()
    lr = layers.create_global_var([1], 0.5, "float32", persistable=True, name="lr")
    main.rollback()
    assert lr.block is main.global_block() and lr.stop_gradient and lr.persistable
    assert startup.global_block().ops[0].attr("value") == 0.5
    w = layers.create_parameter([2], name="own", attr=ParamAttr(learning_rate=3.0))
    assert w.name == "own" and w.optimize_attr["learning_rate"] == 3.0
    assert LayerHelper("x").parameter("own").desc is w.desc
    with pytest.raises(InvalidArgumentError, match="'lr' is no parameter"):
        LayerHelper("x").parameter("lr")
