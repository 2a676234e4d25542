"""Shapes given as an attribute or as tensors."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array


def given_shape(op: str, tensor: Array | None, tensors: Sequence[Array] | None, attr: Sequence[int]) -> tuple[int, ...]:
    """Dims as a tuple. Raises InvalidArgumentError for a negative one."""
    if tensor is not None:
        dims = [int(v) for v in tensor.reshape(-1).tolist()]
    elif tensors:
        dims = [int(t.reshape(-1)[0]) for t in tensors]
    else:
        dims = list(attr)
    if any(d < 0 for d in dims):
        raise InvalidArgumentError(f"op {op}: shape is {dims}; expected no negative size when the op runs")
    return tuple(dims)
