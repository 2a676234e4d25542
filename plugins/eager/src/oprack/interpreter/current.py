"""The mode of this thread or task, as calls look it up."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

CURRENT: ContextVar[Any] = ContextVar("oprack_mode", default=None)
current_or_none = CURRENT.get
