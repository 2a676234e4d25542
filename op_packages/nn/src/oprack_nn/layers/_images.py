"""Arguments of layers that slide windows over images: checked, and in the form of attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, Variable, check_variable


def int_pair(value: Sequence[int] | int, argument: str, layer: str, rank: int = 2) -> list[int]:
    """An int for all spatial dims, or a list of them."""
    if isinstance(value, int):
        return [value] * rank
    if isinstance(value, list | tuple) and len(value) == rank and all(isinstance(v, int) for v in value):
        return list(value)
    raise InvalidArgumentError(
        f"{layer}: {argument} is {value!r}; expected an int or {rank} ints, for height and width"
    )


def resolve_padding(value: Sequence[int] | int | str, channel_last: bool, layer: str) -> tuple[list[int], str]:
    """(paddings, padding_algorithm) of "SAME", "VALID", an int, [h, w], [top, bottom, left, right], a pair per dim."""
    if isinstance(value, str):
        if value.upper() not in ("SAME", "VALID"):
            raise InvalidArgumentError(f"{layer}: padding is {value!r}; expected 'SAME', 'VALID' or numbers")
        return [0, 0], value.upper()
    if isinstance(value, list | tuple) and len(value) == 4 and all(isinstance(v, list | tuple) for v in value):
        spatial: Sequence[Any] = value[1:3] if channel_last else value[2:4]
        value = [v for pair in spatial for v in pair]
    if isinstance(value, list | tuple) and len(value) == 4:
        top, bottom, left, right = value
        return ([top, left] if top == bottom and left == right else list(value)), "EXPLICIT"
    return int_pair(value, "padding", layer), "EXPLICIT"


def check_image(input: Variable, data_format: str, layer: str) -> tuple[Variable, bool, int]:
    """(Variable, whether channels come last, number of channels)."""
    check_variable(input, "input", layer)
    if data_format not in ("NCHW", "NHWC") or len(input.shape) != 4:
        raise InvalidArgumentError(
            f"{layer}: input {input.name!r} has shape {list(input.shape)} and data_format is {data_format!r}; expected "
            "4 dims and 'NCHW' or 'NHWC'"
        )
    last = data_format == "NHWC"
    channels = input.shape[3 if last else 1]
    if channels <= 0:
        raise InvalidArgumentError(
            f"{layer}: input {input.name!r} has shape {list(input.shape)}; expected a known number of channels, so "
            "give data() its size"
        )
    return input, last, channels


def check_groups(groups: int | None, channels: int, num_filters: int, layer: str) -> int:
    """groups, 1 when absent; InvalidArgumentError when channels or filters can't be parted so."""
    groups = groups or 1
    if channels % groups or num_filters % groups:
        raise InvalidArgumentError(
            f"{layer}: groups is {groups}; expected a divisor of the {channels} channels and {num_filters} filters"
        )
    return groups


def add_bias(helper: LayerHelper, out: Variable, last: bool) -> Variable:
    """out with a bias per channel, and the activation."""
    start = 3 if last else 1
    return helper.append_activation(helper.append_bias_op(out, dim_start=start, dim_end=start + 1))
