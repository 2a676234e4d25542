"""Checks of a layer's arguments; messages name the layer, the argument, what was passed and what is expected."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.layers.append import errors_at_user_line
from oprack.layers.variable import Variable
from oprack.types import dtype_name


def check_type(value: Any, argument: str, layer: str, expected: type | tuple[type, ...]) -> None:
    """Refuse an argument of another type.

    Args:
        value: The argument.
        argument: What the layer calls it.
        layer: The layer, for the error.
        expected: A type or several.

    Raises:
        InvalidArgumentError: The value is no instance of them.
    """
    if not isinstance(value, expected):
        kinds = expected if isinstance(expected, tuple) else (expected,)
        names = " or ".join("None" if k is type(None) else k.__name__ for k in kinds)
        with errors_at_user_line():
            raise InvalidArgumentError(
                f"{layer}: {argument} is {_shown(value)} ({type(value).__name__}); expected {names}"
                + (_advice(value) if Variable in kinds else "")
            )


def _advice(value: Any) -> str:
    if hasattr(value, "__oprack_value__"):
        return (
            " of a program; layers write programs, and this is an eager tensor: call the op itself with it, "
            "oprack.functional.<op>(x), or a module of oprack.nn"
        )
    return "; make a Variable of an array with oprack.layers.assign(array)"


def check_dtype(dtype: object, argument: str, layer: str, expected: Collection[str]) -> str:
    """The name of a dtype, checked.

    Args:
        dtype: The dtype, in any way that `oprack.types.dtype_name` takes.
        argument: What the layer calls it.
        layer: The layer, for the error.
        expected: Names of dtypes.

    Returns:
        The name.

    Raises:
        InvalidArgumentError: It is none of them.
    """
    name = "of no dtype" if dtype is None else dtype_name(dtype)
    if name not in expected:
        with errors_at_user_line():
            raise InvalidArgumentError(
                f"{layer}: {argument} is {name}; expected {' or '.join(sorted(expected))}; convert it with "
                f"layers.cast({argument}, dtype)"
            )
    return name


def check_variable(value: Any, argument: str, layer: str, dtypes: Collection[str] = ()) -> Variable:
    """The Variable that an argument is, checked.

    Args:
        value: The argument.
        argument: What the layer calls it.
        layer: The layer, for the error.
        dtypes: Names of dtypes; () for any.

    Returns:
        The Variable.

    Raises:
        InvalidArgumentError: It is no Variable, or of another dtype.
    """
    check_type(value, argument, layer, Variable)
    if dtypes and value.dtype not in dtypes:
        with errors_at_user_line():
            raise InvalidArgumentError(
                f"{layer}: {argument} (variable {value.name!r}) is {value.dtype}; expected "
                f"{' or '.join(sorted(dtypes))}; convert it with layers.cast({argument}, dtype)"
            )
    return value  # type: ignore[no-any-return]


def _shown(value: Any) -> str:
    return str(value.describe()) if hasattr(value, "__oprack_value__") else repr(value)
