"""What methods of tensors ask of the rooms above, which know gradients, captured functions and the ops of packs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FROM_ABOVE: dict[str, Callable[..., Any]] = {}
"""The functions, which their rooms put here: `backward` of autograd, the others of functional."""
