"""Random numbers: what ops of oprack draw follows from torch's seed."""

from __future__ import annotations

from collections.abc import Sequence
from threading import RLock
from typing import Any

import torch
from oprack.bridge import run
from oprack.cache import Cache
from oprack.eager_tensor.devices import RANDOM
from oprack.interpreter.op_expr import OpExpr

_draws = Cache(4096)  # by expression: an op that is told to infer draws nothing
_drawing = RLock()


def run_seeded(expr: OpExpr, tensors: Sequence[Any]) -> Sequence[Any]:
    """Run a call; what it draws follows from `torch.manual_seed`, and does not change what oprack itself draws.

    Args:
        expr: The call.
        tensors: oprack's tensors.

    Returns:
        oprack's tensors.
    """
    known = _draws[expr]
    if known is False:
        return run(expr, tensors)
    with _drawing:
        before = RANDOM.state()
        if known is None:
            found = run(expr, tensors)
            _draws[expr] = RANDOM.state() != before
            if not _draws[expr]:
                return found
        try:
            RANDOM.load_state({"seed": int(torch.randint(1 << 62, ())), "draws": {}})
            return run(expr, tensors)
        finally:
            RANDOM.load_state(before)


def draws(expr: OpExpr) -> bool:
    """Whether a call, which was made before, draws random numbers."""
    return bool(_draws[expr])
