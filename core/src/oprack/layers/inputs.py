"""Variables that users make themselves: `data`, which runs feed, and `create_parameter` and `create_global_var`."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from oprack.errors import AlreadyExistsError, InvalidArgumentError
from oprack.layers.framework import default_main_program
from oprack.layers.helper import LayerHelper
from oprack.layers.user_line import errors_at_user_line
from oprack.layers.variable import ParamAttr, Parameter, Variable, constant
from oprack.types import dtype_name


def data(name: str, shape: Sequence[int | None], dtype: object = "float32", lod_level: int = 0) -> Variable:
    """A variable of the main program that every run feeds.

    No gradient flows into it unless its stop_gradient is set to False.

    Args:
        name: The name by which runs feed it.
        shape: All dims, the batch included; None or -1 where each feed decides.
        dtype: The dtype: a name, a VarType or a NumPy dtype.
        lod_level: How deep its sequences, whose rows are dim 0, are nested.

    Returns:
        The variable.

    Raises:
        InvalidArgumentError: The name, the shape or the dtype is malformed.
        AlreadyExistsError: The program has a variable of that name.
    """
    program = default_main_program()
    block = program.global_block()
    with errors_at_user_line():
        if not isinstance(name, str) or not name:
            raise InvalidArgumentError(f"data: name is {name!r}; expected a str that is not empty")
        if not isinstance(shape, list | tuple):
            raise InvalidArgumentError(f"data: shape of {name!r} is {shape!r}; expected a list, such as [None, 784]")
        dims = [-1 if d is None else d for d in shape]
        if not all(isinstance(d, numbers.Integral) and int(d) >= -1 for d in dims):
            raise InvalidArgumentError(
                f"data: shape of {name!r} is {list(shape)}; expected sizes, with None or -1 where each feed decides"
            )
        if block.has_var(name):
            raise AlreadyExistsError(
                f"data: the program has a variable {name!r} already; choose another name, or build in a new program "
                "with program_guard"
            )
        desc = block.create_var(
            name,
            dtype=dtype_name(dtype),
            shape=[int(d) for d in dims],
            lod_level=lod_level,
            stop_gradient=True,
            need_check_feed=True,
        )
    return Variable(program, block, desc)


def create_parameter(
    shape: Sequence[int],
    dtype: object = "float32",
    name: str | None = None,
    attr: Any = None,
    is_bias: bool = False,
    default_initializer: Any = None,
) -> Parameter:
    """A parameter for a layer written by hand; see LayerHelper.create_parameter.

    Args:
        shape: Its sizes.
        dtype: Its dtype.
        name: Its name, instead of one in `attr`.
        attr: What ParamAttr.of takes.
        is_bias: Whether the default initializer is that of biases, 0.
        default_initializer: The initializer, when `attr` has none.

    Returns:
        The parameter.
    """
    helper = LayerHelper("create_parameter", name=name)
    param_attr = ParamAttr.of(attr)
    if name is not None and param_attr is not None and param_attr.name is None:
        param_attr = replace(param_attr, name=name)
    return helper.create_parameter(param_attr or attr, shape, dtype, is_bias, default_initializer)


def create_global_var(
    shape: Sequence[int], value: float, dtype: object, persistable: bool = False, name: str | None = None
) -> Variable:
    """A variable of block 0 that the startup program fills with `value`; no gradient flows through it.

    Args:
        shape: Its sizes.
        value: What it is filled with.
        dtype: Its dtype.
        persistable: Whether parameter files and checkpoints have it.
        name: Default: a new one.

    Returns:
        The variable.
    """
    helper = LayerHelper("global_var", name=name)
    return helper.create_global_variable(shape, dtype, name=name, persistable=persistable, initializer=constant(value))
