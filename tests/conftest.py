"""Settings that all cross-distribution tests share."""

from __future__ import annotations

from hypothesis import settings

# The machine's load decides how long an example takes, and a failing seed must fail again.
settings.register_profile("oprack", deadline=None, derandomize=True)
settings.load_profile("oprack")
