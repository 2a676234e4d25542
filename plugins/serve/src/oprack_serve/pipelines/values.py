"""Values between the stages of a pipeline: tensors, and lists of tensors for models that run once for each.

Functions see arrays of NumPy, LoDTensors where a tensor has LoD, and lists of these. On their way to the process of the
functions and back they are a feed as any other: the entries of a list `crops` are `crops[0]`, `crops[1]` and so on, and
`crops[]` says how many there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.tensor import LoDTensor

from oprack_serve.datatypes import DATATYPES, dtype_name
from oprack_serve.extensions.bytes_tensors import of_strings
from oprack_serve.joining import Feed
from oprack_serve.signature import Tensor

MAX_ENTRIES = 4096

Value = Tensor | list[Tensor]


class ValueTypeError(TypeError):
    """A function returned what can't be handed on."""


def nbytes(value: Value) -> int:
    """Memory of a value."""
    if isinstance(value, list):
        return sum(map(nbytes, value))
    array = value.array
    return sum(map(len, array.flat)) if array.dtype == object else array.nbytes


# On their way ---------------------------------------------------------------------------------------------------------
def to_feed(values: dict[str, Value]) -> Feed:
    """The values, each by one name or several."""
    feed: Feed = {}
    for name, value in values.items():
        if isinstance(value, list):
            feed[f"{name}[]"] = Tensor(np.array(len(value), np.int64), [])
            feed |= {f"{name}[{i}]": entry for i, entry in enumerate(value)}
        else:
            feed[name] = value
    return feed


def from_feed(names: tuple[str, ...], feed: Feed) -> dict[str, Value]:
    """The values of these names."""
    values: dict[str, Value] = {}
    for name in names:
        if name in feed:
            values[name] = feed[name]
        else:
            values[name] = [feed[f"{name}[{i}]"] for i in range(int(feed[f"{name}[]"].array))]
    return values


# As functions see them ------------------------------------------------------------------------------------------------
def to_python(value: Value) -> Any:
    """What a function gets."""
    if isinstance(value, list):
        return [to_python(entry) for entry in value]
    return LoDTensor(value.array, value.lod) if value.lod else value.array


def from_python(name: str, found: Any) -> Value:
    """What a function returned: an array, a LoDTensor, text or bytes (one element of BYTES), or a list of such, for
    which a model runs once for each entry. Raises ValueTypeError that names the value.
    """
    if isinstance(found, list | tuple):
        if len(found) > MAX_ENTRIES:
            raise ValueTypeError(f"{name!r} is a list of {len(found)} entries; at most {MAX_ENTRIES} are taken")
        return [_tensor(f"{name}[{i}]", entry) for i, entry in enumerate(found)]
    return _tensor(name, found)


def _tensor(name: str, found: Any) -> Tensor:
    if isinstance(found, str | bytes):
        found = np.array([found], object)
    lod = [list(level) for level in found.lod] if isinstance(found, LoDTensor) else []
    array = found.array if isinstance(found, LoDTensor) else found
    if not isinstance(array, np.ndarray | np.generic):
        raise ValueTypeError(
            f"{name!r} is of type {type(found).__name__}; expected an array of NumPy, a LoDTensor, str, bytes, or a "
            "list of these"
        )
    array = np.asarray(array)
    if array.dtype.kind in "OUS":
        elements = array.reshape(-1).tolist()
        if not all(isinstance(e, str | bytes) for e in elements):
            raise ValueTypeError(f"{name!r} is an array of objects; expected str or bytes in it")
        return Tensor(of_strings(elements, array.shape), lod)
    if dtype_name(array.dtype) not in DATATYPES:
        raise ValueTypeError(f"{name!r} has dtype {array.dtype}; expected one of {', '.join(DATATYPES)}")
    return Tensor(array, lod)
