"""Which ops the initializers append to the startup program, with which limits and deviations."""

from __future__ import annotations

import oprack
import pytest
from oprack.initializer import MSRA, Normal, TruncatedNormal, Uniform, Xavier
from oprack.layers import LayerHelper

INITIALIZERS = [
    (Uniform(-2, 3, seed=5), "uniform_random", {"min": -2.0, "max": 3.0, "seed": 5}),
    (Normal(1, 2), "gaussian_random", {"mean": 1.0, "std": 2.0}),
    (TruncatedNormal(1, 2), "truncated_gaussian_random", {"mean": 1.0, "std": 2.0}),
    (Xavier(), "uniform_random", {"min": -((6 / 90) ** 0.5), "max": (6 / 90) ** 0.5}),
    (Xavier(uniform=False), "gaussian_random", {"std": (2 / 90) ** 0.5}),
    (Xavier(fan_in=10, fan_out=14), "uniform_random", {"max": 0.5}),
    (MSRA(), "uniform_random", {"max": (6 / 36) ** 0.5}),
    (MSRA(uniform=False, fan_in=8), "gaussian_random", {"std": 0.5}),
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
