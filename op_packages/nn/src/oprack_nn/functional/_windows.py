"""Sizes of windows as the ops have them, and images of one dim as those of two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprack.errors import InvalidArgumentError

Sizes = int | Sequence[int]


def per_dim(value: Any, rank: int, what: str = "the size") -> list[int]:
    """A number for each of `rank` dims, of one number or a list."""
    if isinstance(value, int):
        return [value] * rank
    found = [int(v) for v in value]
    if len(found) != rank:
        raise InvalidArgumentError(f"{what} is {value!r}; expected a number, or {rank} of them")
    return found


def paddings(padding: Any, rank: int) -> dict[str, Any]:
    """The attributes of a padding: a number, one per dim, two per dim, "SAME" or "VALID"."""
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "VALID"):
            raise InvalidArgumentError(f'padding is {padding!r}; expected "SAME", "VALID", or numbers')
        return {"padding_algorithm": padding.upper()}
    if isinstance(padding, list | tuple) and len(padding) == 2 * rank:
        return {"paddings": [int(v) for v in padding]}
    return {"paddings": per_dim(padding, rank, "padding")}


def channels_first(data_format: str, rank: int) -> str:
    """The op's data_format for a rank, of any of Paddle's: NCL, NCHW, NCDHW, NLC, NHWC, NDHWC."""
    names = {1: ("NCL", "NLC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}[rank]
    if data_format not in names:
        raise InvalidArgumentError(f"data_format is {data_format!r}; expected {' or '.join(names)}")
    return {"NCL": "NCHW", "NLC": "NHWC"}.get(data_format, data_format)


def line(value: Any, rest: int) -> list[int]:
    """The sizes of windows over a line, as those of windows over an image that is one row high."""
    found = per_dim(value, 1)
    return [rest, *found]


def line_paddings(padding: Any) -> dict[str, Any]:
    """The attributes of a padding of a line, as those of an image that is one row high."""
    found = paddings(padding, 1)
    if "paddings" in found:
        sizes = found["paddings"]
        found["paddings"] = [0, *sizes] if len(sizes) == 1 else [0, 0, *sizes]
    return found


def row(data_format: str) -> int:
    """Where an image has the dim of its rows, which a line lacks."""
    return 2 if data_format == "NCL" else 1
