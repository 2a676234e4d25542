"""{{ cookiecutter.first_op }}: its kernel is a plain function, and bad attributes are refused."""

from __future__ import annotations

import numpy as np
import pytest

import oprack
from oprack.errors import AttributeValueError
{% if cookiecutter.native == "C" %}from {{ cookiecutter.__import_name }} import native
{% endif %}from {{ cookiecutter.__import_name }}.kernels import {{ cookiecutter.first_op }}


def test_kernel_is_a_plain_function() -> None:
    assert {{ cookiecutter.first_op }}(np.float32([3.0, -2.0]), factor=0.5).tolist() == [4.5, 2.0]


def test_a_factor_of_zero_is_refused() -> None:
    with pytest.raises(AttributeValueError, match=r"factor.*expected a value other than 0"):
        oprack.op_info("{{ cookiecutter.first_op }}").checker.check({"factor": 0.0})


def test_runs_in_a_program() -> None:
    program = oprack.Program()
    block = program.global_block()
    block.create_var("x", dtype="float32", shape=[-1])
    block.create_var("y", dtype="float32", shape=[-1])
    block.append_op("{{ cookiecutter.first_op }}", {"X": "x"}, {"Out": "y"}, {"factor": 2.0})
    saved = program.serialize()
    executor, x = oprack.Executor(oprack.CPUPlace()), np.float32([1, 2])
    (y,) = executor.run(oprack.Program.parse(saved), feed={"x": x}, fetch_list=["y"], scope=oprack.Scope())
    assert y.tolist() == [2.0, 8.0]
{%- if cookiecutter.native == "C" %}


@pytest.mark.skipif(native.library() is None, reason="the pack was built without a C compiler")
@pytest.mark.parametrize("x", [np.float32(3), np.zeros((0, 2)), np.arange(12.0).reshape(3, 4).T[::2]])
def test_c_agrees_with_numpy(x: np.ndarray) -> None:
    """A number, an array without elements, and one that lies with gaps."""
    x = np.asarray(x, np.float32)
    y = native.{{ cookiecutter.first_op }}(x, 0.5)
    assert y.shape == x.shape
    np.testing.assert_allclose(y, {{ cookiecutter.first_op }}(x, factor=0.5), rtol=1e-6)
{%- endif %}
