"""Whether the interpreter has its global lock; without it a reference count does not say who else has an object."""

from __future__ import annotations

import sys

HAS_GIL: bool = getattr(sys, "_is_gil_enabled", lambda: True)()
