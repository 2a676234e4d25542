"""The communicator of a ring, and what kernels of collectives share."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule
from oprack.parallel import Communicator
from oprack.parallel.rings import ring

PLACES = ("cpu",)
REALS = ("float16", "float32", "float64")
NUMBERS = (*REALS, "int32", "int64")
ANY = (*NUMBERS, "bool", "int8", "uint8", "int16")
REDUCTIONS = ("sum", "max", "min", "prod")
"""By the numbers that Paddle's reduce_type has."""

__all__ = ["ANY", "NUMBERS", "PLACES", "REALS", "REDUCTIONS", "require_member", "require_ranks", "ring"]


def require_ranks(op_type: str, group: Communicator, nranks: int) -> None:
    """Raise InvalidArgumentError if a ring has another number of ranks than the program was written for."""
    if group.size != nranks:
        raise InvalidArgumentError(
            f"op {op_type}: the program was written for {nranks} ranks, but {group.size} run; start it with oprack "
            f"launch -n {nranks}"
        )


def require_member(op_type: str, attr: str, rank: int, group: Communicator) -> None:
    """Raise InvalidArgumentError if a ring has no such rank."""
    if rank >= group.size:
        raise InvalidArgumentError(
            f"op {op_type}: {attr} is {rank}, but {group!r} has {group.size} ranks; expected 0 to {group.size - 1}"
        )


def columns_of_all(x: Array, group: Communicator, xp: ArrayModule) -> Array:
    """The arrays of all ranks side by side along the last dim."""
    return xp.moveaxis(group.all_gather(xp.ascontiguousarray(xp.moveaxis(x, -1, 0))), 0, -1)


def exchanged_rows(op_type: str, x: Array, group: Communicator, xp: ArrayModule) -> Array:
    """The parts that all ranks have for this one, joined. Raises InvalidArgumentError where rows can't be shared."""
    rows, rest = divmod(len(x) if x.ndim else 0, group.size)
    if rest or not x.ndim:
        raise InvalidArgumentError(
            f"op {op_type}: the input has shape {list(x.shape)}; expected a number of rows that {group.size} ranks can "
            "share"
        )
    parts = [xp.ascontiguousarray(x[k * rows : (k + 1) * rows]) for k in range(group.size)]
    return xp.concatenate(group.all_to_all(parts, [parts[0].shape] * group.size))


def part_of(op_type: str, size: int, num: int, index: int) -> slice:
    """Part `index` of `num` equal ones of `size` elements. Raises InvalidArgumentError where there is none."""
    if size % num or index >= num:
        raise InvalidArgumentError(
            f"op {op_type}: part {index} of {num} of a tensor of {size} elements; expected parts of one size, counted "
            "from 0"
        )
    return slice(index * (size // num), (index + 1) * (size // num))


def send_with_shape(x: Array, group: Communicator, peer: int) -> None:
    """Send an array to a rank that calls receive_with_shape."""
    group.send(np.array([x.ndim], np.int64), peer)
    group.send(np.array(x.shape, np.int64), peer)
    group.send(x, peer)


def receive_with_shape(dtype: Any, group: Communicator, peer: int) -> Array:
    """The array that a rank sends by send_with_shape."""
    rank = int(group.receive((1,), np.dtype(np.int64), peer)[0])
    shape = group.receive((rank,), np.dtype(np.int64), peer)
    return group.receive(tuple(shape.tolist()), dtype, peer)
