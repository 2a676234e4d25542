"""How a kernel declines a call, and how its reason is passed on."""

from __future__ import annotations

import threading
from typing import Any

# a kernel returns NotImplemented and nothing else, so that a plan can compare by identity; the reason goes beside it,
# by thread, since kernels of several threads decline at once
_WHY = threading.local()


def decline(reason: str) -> Any:
    """Leave a call to the next kernel that fits: `return decline("X has gaps")`.

    Args:
        reason: Why, for logs and for the error that every kernel declined.

    Returns:
        NotImplemented.
    """
    _WHY.reason = reason
    return NotImplemented


def take_reason() -> str:
    """The reason of the last kernel that declined in this thread, or "" when it had none. It is cleared."""
    reason: str = getattr(_WHY, "reason", "")
    _WHY.reason = ""
    return reason
