"""Rules `expected_kernel_type` for ops whose kernel's dtype does not follow from all inputs alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.types import dtype_name


def dtype_of(*slots: str) -> Callable[[Any], Any]:
    """`expected_kernel_type = dtype_of("W")`: the kernel's dtype is that of the first of these slots that is present.

    For ops whose inputs differ in dtype on purpose (ids and a table), or whose first input may be absent.

    Args:
        slots: Input slots.

    Returns:
        The rule.
    """

    def expected_kernel_type(ctx: Any) -> Any:
        for slot in slots:
            for i in range(ctx.input_count(slot)):
                if ctx.is_initialized(slot, i):
                    return ctx.kernel_type(dtype=ctx.dtype(slot, i))
        raise InvalidArgumentError(
            f"op {ctx.op_type}: none of its inputs {', '.join(slots)} holds a tensor, so the dtype of the kernel "
            "can't be told; feed it or run the op that writes it"
        )

    return expected_kernel_type


def dtype_of_attr(name: str, *slots: str) -> Callable[[Any], Any]:
    """`expected_kernel_type = dtype_of_attr("dtype")`: the dtype is an attribute (a wire number).

    A negative number means "as the input": then the first present slot of `slots` decides.

    Args:
        name: The attribute.
        slots: Input slots.

    Returns:
        The rule.
    """
    by_slot = dtype_of(*slots) if slots else None

    def expected_kernel_type(ctx: Any) -> Any:
        value = ctx.attrs[name]
        if isinstance(value, int) and value < 0 and by_slot is not None:
            return by_slot(ctx)
        return ctx.kernel_type(dtype=dtype_name(value))

    return expected_kernel_type
