"""Variables that no layer makes: those that are fed, parameters and counters of the user's own."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from oprack.errors import AlreadyExistsError, InvalidArgumentError
from oprack.layers.append import errors_at_user_line
from oprack.layers.framework import default_main_program
from oprack.layers.helper import LayerHelper
from oprack.layers.initializer import constant
from oprack.layers.param_attr import ParamAttr
from oprack.layers.variable import Parameter, Variable
from oprack.types import dtype_name


def data(name: str, shape: Sequence[int | None], dtype: object = "float32", lod_level: int = 0) -> Variable:
    """A variable of the main program that every run feeds.

    shape: all dims, the batch included; None or -1 where each feed decides. lod_level: nesting of its sequences, whose
    rows are dim 0. No gradient flows into it unless its stop_gradient is set to False.
    Raises InvalidArgumentError for a malformed shape or dtype, AlreadyExistsError when the name is taken.
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

    name: instead of one in `attr`.
    """
    helper = LayerHelper("create_parameter", name=name)
    made = ParamAttr.of(attr)
    if name is not None and made is not None and made.name is None:
        made = replace(made, name=name)
    return helper.create_parameter(made or attr, shape, dtype, is_bias, default_initializer)


def create_global_var(
    shape: Sequence[int], value: float, dtype: object, persistable: bool = False, name: str | None = None
) -> Variable:
    """A variable of block 0 that the startup program fills with `value`; no gradient flows through it."""
    helper = LayerHelper("global_var", name=name)
    return helper.create_global_variable(shape, dtype, name=name, persistable=persistable, initializer=constant(value))
