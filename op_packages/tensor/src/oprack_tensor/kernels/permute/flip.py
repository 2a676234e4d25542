"""Kernel of flip: a view."""

from __future__ import annotations

from oprack.kernel import kernel


@kernel("flip", place=("cpu", "cuda"), view=True)
def flip(X, *, axis, xp):
    return xp.flip(X, tuple(axis))
