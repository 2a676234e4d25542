"""Lets a client that imports `paddle` run on oprack without a change."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

from oprack.inference.plugins import of_plugin


class Served(AbstractContextManager[Any], Protocol):
    """What as_paddle() gives: a context manager that may also be ended by a call."""

    def uninstall(self) -> None:
        """Let `import paddle` lead where it led before."""


def as_paddle() -> Served:
    """Let `import paddle` lead to oprack from now on; as a context manager, inside of its block.

    Call it before the client is imported. The plugin paddle serves the name, whole, as `oprack exec` does for a
    command: `paddle.inference` is `oprack.inference`, and everything else is what docs/paddle.md lists.

    Returns:
        A context manager; its `uninstall()` ends it as well.

    Raises:
        MissingPackError: oprack-paddle is not installed.
        PreconditionNotMetError: Paddle itself is imported already.
    """
    served: Served = of_plugin("oprack_paddle.serving", "as_paddle(): the name paddle is served").as_paddle()
    return served
