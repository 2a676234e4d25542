"""Hypothesis, imported on first use: blocks of packs are imported where it is not installed as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oprack.errors import PreconditionNotMetError


def hypothesis() -> Any:
    """Hypothesis, which only fuzzing needs. Raises PreconditionNotMetError that says what to install."""
    try:
        import hypothesis as found
        import hypothesis.strategies
    except ImportError as error:
        raise PreconditionNotMetError(
            "oprack.testing.fuzz chooses and shrinks examples with Hypothesis; install it with: pip install hypothesis"
        ) from error
    return found


class _Late:
    def __getattr__(self, name: str) -> Any:
        return getattr(hypothesis().strategies, name)


if TYPE_CHECKING:
    import hypothesis.strategies as st
else:
    st = _Late()

__all__ = ["hypothesis", "st"]
