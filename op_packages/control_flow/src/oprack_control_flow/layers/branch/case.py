"""One of several functions of layers, by conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.layers import Variable

from oprack_control_flow.layers.branch.cond import cond


def case(
    pred_fn_pairs: Sequence[tuple[Variable, Callable[..., Any]]],
    default: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Variable:
    """The function of the first true condition among [(condition, function), ...], else `default`; see cond.

    Without a default the last function takes its place. Raises InvalidArgumentError.
    """
    pairs = list(pred_fn_pairs)
    if not pairs or not all(isinstance(p, list | tuple) and len(p) == 2 for p in pairs):
        raise InvalidArgumentError(
            f"case: pred_fn_pairs is {pred_fn_pairs!r}; expected a list of (condition, function)"
        )
    if default is None:
        default = pairs.pop()[1]
    if not pairs:
        return default()
    (pred, function), *rest = pairs
    return cond(pred, function, (lambda: case(rest, default)) if rest else default, name)
