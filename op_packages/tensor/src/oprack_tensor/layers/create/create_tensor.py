"""A variable that nothing has written to yet."""

from __future__ import annotations

from oprack.layers import LayerHelper


def create_tensor(dtype, name=None, persistable=False):
    """An empty variable of the current block that ops write to later (assign, While)."""
    helper = LayerHelper("create_tensor", name=name)
    return helper.create_variable(name, dtype=dtype, persistable=persistable)
