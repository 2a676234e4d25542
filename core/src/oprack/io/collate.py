"""Examples put together to a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from oprack.errors import InvalidArgumentError
from oprack.functional.tensor import to_tensor


def default_collate(examples: Sequence[Any]) -> Any:
    """Arrays, tensors and numbers of one shape as a tensor with a new first dim; tuples, lists and dicts part by part.

    Args:
        examples: The examples of a batch.

    Returns:
        A tensor, or tensors in lists and dicts as the examples have them; text stays a list.

    Raises:
        InvalidArgumentError: Arrays differ in their shapes, or dicts in their keys.
    """
    return _collated(examples, _stacked)


def lod_collate(examples: Sequence[Any]) -> Any:
    """Arrays of different lengths one after the other, without padding, as a tensor with LoD; else as default_collate.

    A batch of sequences [3, 8], [5, 8] is a tensor [8, 8] whose lod is [[0, 3, 8]], as sequence ops take it. Numbers,
    such as a label for each example, are rows [batch, 1]. An empty sequence counts for the offsets alone: its dtype,
    which is float64 for np.asarray([]), says nothing.

    Args:
        examples: The examples of a batch.

    Returns:
        Tensors, in lists and dicts as the examples have them; text stays a list.

    Raises:
        InvalidArgumentError: Arrays differ in other dims than the first, or some have integers and some floats.
    """
    return _collated(examples, _joined)


def _collated(examples: Sequence[Any], join: Any) -> Any:
    first = examples[0]
    if isinstance(first, Mapping):
        if odd := {key for e in examples for key in first.keys() ^ e.keys()}:
            raise InvalidArgumentError(
                f"a batch has examples that differ in their keys: {sorted(odd, key=repr)} are in some of them only; "
                "expected the same keys in each"
            )
        return {key: _collated([e[key] for e in examples], join) for key in first}
    if isinstance(first, tuple | list):
        if len({len(e) for e in examples}) > 1:
            raise InvalidArgumentError(
                f"a batch has examples of {sorted({len(e) for e in examples})} parts; expected as many of each; a "
                "sequence of numbers belongs into an array: np.asarray(numbers)"
            )
        return [_collated(part, join) for part in zip(*examples, strict=True)]
    if isinstance(first, str | bytes) or first is None:
        return list(examples)
    return join([np.asarray(e) for e in examples])


def _stacked(arrays: list[np.ndarray]) -> Any:
    shapes = {a.shape for a in arrays}
    if len(shapes) > 1:
        raise InvalidArgumentError(
            f"a batch has arrays of shapes {', '.join(map(str, sorted(shapes)[:4]))}; expected one shape; for "
            "sequences of different lengths pass collate_fn=oprack.io.lod_collate, which needs no padding"
        )
    array = np.stack(arrays)
    return to_tensor(array.astype(np.float32) if array.dtype == np.float64 and not _is_array(arrays) else array)


def _is_array(arrays: list[np.ndarray]) -> bool:
    """Whether examples are arrays; Python's numbers have no dims, and floats among them become float32."""
    return arrays[0].ndim > 0


def _joined(arrays: list[np.ndarray]) -> Any:
    if not arrays[0].ndim:
        return _stacked([a.reshape(1) for a in arrays])
    full = [a for a in arrays if len(a)] or arrays[:1]  # np.asarray([]) is float64, and no sequence of that dtype
    rest = {a.shape[1:] for a in (*full, *arrays) if a.shape != (0,)} or {()}
    if len(rest) > 1:
        raise InvalidArgumentError(
            f"a batch has sequences whose rows have shapes {', '.join(map(str, sorted(rest)[:4]))}; expected one shape"
        )
    if len({a.dtype.kind for a in full}) > 1:
        raise InvalidArgumentError(
            f"a batch has sequences of {', '.join(sorted({a.dtype.name for a in full}))}; expected one kind of numbers"
        )
    return to_tensor(np.concatenate(full), lod=[[0, *accumulate(len(a) for a in arrays)]])
