"""The warning about ops without a rule for split inputs: every rank gathers their inputs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from oprack.errors import UnimplementedError
from oprack.parallel.layouts.layout import Layout

_told: set[str] = set()
_strict = False


def strict(on: bool = True) -> None:
    """Let calls of ops that have no rule of splitting raise instead of gathering their inputs."""
    global _strict
    _strict = on


def tell_of_gathering(info: Any, sources: Sequence[Layout | None]) -> None:
    """Warn once of an op without a rule whose inputs do not lie whole on each rank.

    Args:
        info: The op.
        sources: Where its inputs lie.

    Raises:
        UnimplementedError: `strict()` was called.
    """
    if all(s is None or s.is_broadcast for s in sources):
        return
    text = (
        f"op {info.type} (pack {info.pack}) has no rule sbp for computing on parts of its inputs, so each rank "
        f"gathers all of them; add `sbp` to its definition: oprack.op.sbp.factors makes one of names of dims"
    )
    if _strict:
        raise UnimplementedError(text)
    if info.type not in _told:
        _told.add(info.type)
        warnings.warn(text, stacklevel=2)
