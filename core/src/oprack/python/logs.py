"""Loggers of `logging` for a process that may never use it: to import it takes as long as ten modules of ours."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any


class _Logger:
    """The logger of a module.

    Args:
        name: Its name.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, method: str) -> Any:
        logging = sys.modules.get("logging")
        if logging is None:  # nobody can have set a handler or a level
            return "".format  # which takes whatever it is given
        # A library says nothing unless the program asks: logging.basicConfig(level=logging.INFO) shows what it says
        if not (ours := logging.getLogger("oprack")).handlers:
            ours.addHandler(logging.NullHandler())
        return getattr(logging.getLogger(self._name), method)


if TYPE_CHECKING:  # to type checkers it is the function that they know
    import logging

    get_logger = logging.getLogger
else:
    get_logger = _Logger
