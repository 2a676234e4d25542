"""The review of a pack's source tree by `oprack check`: what a careful reader would find, each with the way to mend it.

The pack is loaded from its project directory, beside the installed packs, and need not be installed itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path

from oprack.errors import OprackError
from oprack.testing.review.subject import Finding, Subject, subject_of

PARTS = ("manifest", "strings", "docs", "shapes", "gradients", "kernels", "splitting", "generated", "bridges", "wheel")
"""Parts of the review; each is a function `review` of the module of this name."""


def review(path: Path, parts: Sequence[str] = PARTS) -> list[Finding]:
    """Review a pack.

    Args:
        path: Its project directory, with pyproject.toml.
        parts: Which of PARTS.

    Returns:
        What was found.

    Raises:
        NotFoundError: There is no pack.
    """
    with subject_of(path) as subject:
        found = list(findings(subject, parts))
    return found


def findings(subject: Subject, parts: Sequence[str]) -> Iterator[Finding]:
    """What there is to say about a pack that is in use.

    Args:
        subject: The pack, of `subject_of`.
        parts: Which of PARTS.

    Yields:
        Each finding.
    """
    if subject.broken:
        yield Finding("strings", subject.broken, "mend what the message names; nothing else can be looked at before")
        return
    for part in parts:
        one: Callable[[Subject], Iterator[Finding]] = import_module(f"oprack.testing.review.{part}").review
        try:
            yield from one(subject)
        except OprackError as e:
            yield Finding(part, f"{type(e).__name__}: {e}", f"mend it; the part {part} could not go on")


__all__ = ["PARTS", "Finding", "Subject", "findings", "review", "subject_of"]
