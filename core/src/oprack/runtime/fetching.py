"""What a run returns: the names that are asked for, and their values in host memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oprack.desc import BlockDesc
from oprack.device import DeviceContextPool, host_array, transform_sparse
from oprack.errors import FetchNameError, InvalidArgumentError, did_you_mean
from oprack.runtime.feed_fetch import fetch_columns
from oprack.tensor import CPUPlace, LoDTensor, LoDTensorArray, SparseValue

_LAST = 3  # ops whose outputs a message names


def fetch_names(block: BlockDesc, fetch_list: Sequence[Any] | None) -> list[str]:
    """The names of the variables to fetch.

    Args:
        block: The block that the program starts with.
        fetch_list: Names, or objects with a `name`; None means those of the block's fetch ops.

    Raises:
        FetchNameError: Something else is listed, or the block has no such variable.
    """
    if fetch_list is None:
        return [name for _, name in fetch_columns(block)]
    if isinstance(fetch_list, str):
        raise FetchNameError(f"fetch_list is the string {fetch_list!r}; expected a list of names: [{fetch_list!r}]")
    names = [n if isinstance(n, str) else getattr(n, "name", n) for n in fetch_list]
    for name in names:
        if not isinstance(name, str):
            raise FetchNameError(f"fetch_list has {name!r}; expected names of variables, or objects with a `name`")
        if block.find_var_recursive(name) is None:
            last = [n for op in block.ops[-_LAST:] for n in op.output_arg_names()]
            raise FetchNameError(
                f"fetch {name!r}: block 0 of the program has no such variable{did_you_mean(name, block.vars)}"
                + (f"; its last ops write {', '.join(map(repr, last))}" if last else "")
            )
    return names


def fetched(value: Any, name: str, block: BlockDesc, pool: DeviceContextPool, return_numpy: bool) -> Any:
    """The value of a variable after a run, in host memory.

    Args:
        value: The value; None when no op set it.
        name: The variable.
        block: The block that declares it.
        pool: Contexts of the places from which values are copied.
        return_numpy: Whether tensors are returned as arrays without LoD.

    Raises:
        FetchNameError: No op of the run set the variable.
        InvalidArgumentError: An array is asked for, and the tensor has LoD.
    """
    if value is None:
        raise FetchNameError(
            f"fetch {name!r}: no op of the run set it; it is declared in the program, but its op did not run or "
            "left this output out"
        )
    if isinstance(value, np.ndarray):  # the caller's own
        return value if return_numpy else LoDTensor(value)
    declared = block.find_var_recursive(name)
    if isinstance(value, LoDTensorArray):
        return [_on_host(t, name, pool, return_numpy, copied=True) for t in value]
    return _on_host(value, name, pool, return_numpy, copied=bool(declared and declared.persistable))


def _on_host(value: Any, name: str, pool: DeviceContextPool, return_numpy: bool, *, copied: bool) -> Any:
    """The value in host memory; `copied` when the scope goes on using its own."""
    if isinstance(value, SparseValue):
        return transform_sparse(value, CPUPlace(), pool)
    if not isinstance(value, LoDTensor):
        return value
    array = host_array(value, pool)
    if (copied or value.shared) and value.place.kind == "cpu":  # from a device it was copied already
        array = array.copy()
    if not return_numpy:
        return LoDTensor(array, value.lod, check=False)
    if value.lod:
        raise InvalidArgumentError(
            f"fetch {name!r}: it has LoD {value.lod if len(str(value.lod)) < 80 else '...'}, which a plain array "
            "can't hold; pass return_numpy=False to get LoDTensors"
        )
    return array
