"""Initializers of given values: the ops that they append, and what they refuse."""

from __future__ import annotations

import numpy as np
import oprack
import pytest
from oprack.errors import InvalidArgumentError
from oprack.initializer import Bilinear, Constant, NumpyArrayInitializer
from oprack.layers import LayerHelper

INITIALIZERS = [
    (Constant(3), "fill_constant", {"value": 3.0, "str_value": "3"}),
    (NumpyArrayInitializer(np.arange(216).reshape(6, 4, 3, 3)), "assign_value", {"fp32_values": list(range(216))}),
]


@pytest.fixture
def programs():
    main, startup = oprack.Program(), oprack.Program()
    with oprack.program_guard(main, startup), oprack.unique_name.guard():
        yield main, startup


@pytest.mark.parametrize(("initializer", "op_type", "attrs"), INITIALIZERS, ids=lambda v: repr(v)[:30])
def test_initializers(programs, initializer, op_type, attrs):
    LayerHelper("conv").create_parameter(initializer, [6, 4, 3, 3])
    (op,) = programs[1].global_block().ops
    assert op.type == op_type and op.attr("shape") == [6, 4, 3, 3]
    for name, value in attrs.items():
        assert op.attr(name) == pytest.approx(value)


def test_bilinear_initializer_interpolates(programs):
    LayerHelper("up").create_parameter(Bilinear(), [1, 1, 4, 4])
    taps = np.array([0.25, 0.75, 0.75, 0.25])
    values = programs[1].global_block().ops[0].attr("fp32_values")
    assert np.allclose(np.reshape(values, (4, 4)), np.outer(taps, taps))
    with pytest.raises(InvalidArgumentError, match=r"\[4, 4\]; expected filters \[o, i, k, k\]"):
        LayerHelper("up").create_parameter(Bilinear(), [4, 4])


def test_array_of_another_shape_is_refused(programs):
    with pytest.raises(InvalidArgumentError, match="the array has shape"):
        LayerHelper("fc").create_parameter(oprack.ParamAttr(initializer=NumpyArrayInitializer(np.ones(3))), [2])
    assert not any(p.global_block().vars or p.global_block().ops or p.parameters for p in programs)
