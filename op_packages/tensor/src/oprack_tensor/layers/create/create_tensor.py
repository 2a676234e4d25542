"""A variable that nothing has written to yet."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable


def create_tensor(dtype: object, name: str | None = None, persistable: bool = False) -> Variable:
    """An empty variable of the current block that ops write to later (assign, While)."""
    helper = LayerHelper("create_tensor", name=name)
    return helper.create_variable(name, dtype=dtype, persistable=persistable)
