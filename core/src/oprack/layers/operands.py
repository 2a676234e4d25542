"""Operands of Python's operators on Variables and tensors: promoted to one dtype, and numbers as constants."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

from oprack.errors import InvalidArgumentError
from oprack.layers.promotion import RANGES, dtype_of_both
from oprack.packs.vocabulary import op_for
from oprack.types import dtype_enum

if TYPE_CHECKING:
    from oprack.layers.variable import Variable


def variable(x: Any) -> Variable:
    return x  # type: ignore[no-any-return]


def append(role: str, like: Any, inputs: dict[str, Any], attrs: dict[str, Any]) -> Variable:
    return like._apply(op_for(role), inputs, attrs)  # type: ignore[no-any-return]


def named(x: Any) -> str:
    return x.describe() if hasattr(x, "describe") else f"variable {x.name!r}"


def out_of_range(x: Any, number: Any, operation: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{operation}: {number} is no {x.dtype}, which {named(x)} is; expected a number from "
        f"{RANGES[x.dtype][0]} to {RANGES[x.dtype][1]}; cast the tensor first: x.astype('int64')"
    )


def constant(x: Any, number: Any) -> Variable:
    if isinstance(number, complex):
        raise InvalidArgumentError(
            f"a complex number beside {named(x)}: {number}; expected a real number, or a tensor: "
            "oprack.to_tensor(np.array(number)), in a program oprack.layers.assign(np.array([number]))"
        )
    value = number if isinstance(number, numbers.Integral) else float(number)
    attrs = {
        "shape": [1] if x.shape else [],
        "dtype": int(dtype_enum(x.dtype)),
        "value": float(value),
        "str_value": str(int(value)) if isinstance(value, numbers.Integral) else repr(value),
    }
    out: Any = append("constant", x, {}, attrs)
    out.stop_gradient = True
    return out.to(x.place) if hasattr(x, "__oprack_value__") else out  # type: ignore[no-any-return]


def promoted(x: Any, y: Any, role: str) -> tuple[Any, Any]:
    """Both in the dtype of the operation."""
    wanted = dtype_of_both(x.dtype, y.dtype, role)
    return tuple(v if wanted is None or v.dtype == wanted else v.astype(wanted) for v in (x, y))
