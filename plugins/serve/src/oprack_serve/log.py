"""One JSON object for each request and each event, a line each, on standard error."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from typing import Any, TextIO

_encode = json.JSONEncoder(ensure_ascii=True, default=str).encode
GATHER_SECONDS = 0.03


class JsonLog:
    """Writes lines of JSON; what a client sends can't break a line."""

    def __init__(self, stream: TextIO | None = None, all_requests: bool = True) -> None:
        self._stream = stream or sys.stderr
        self._pending: list[str] = []
        self.all_requests = all_requests
        """Whether requests that were answered well are lines, too."""

    def __call__(self, event: str, **fields: Any) -> None:
        """Write one line now."""
        self._add(event, fields)
        self.flush()

    def soon(self, event: str, **fields: Any) -> None:
        """Write one line within GATHER_SECONDS, with the others of that time: what every request says. For use in an
        event loop.
        """
        if not self._pending:
            asyncio.get_running_loop().call_later(GATHER_SECONDS, self.flush)
        self._add(event, fields)

    def _add(self, event: str, fields: dict[str, Any]) -> None:
        self._pending.append(_encode({"time": round(time.time(), 3), "event": event, **fields}) + "\n")

    def flush(self) -> None:
        """Write what waits. A reader that left is no error of the server."""
        lines, self._pending = self._pending, []
        try:
            self._stream.write("".join(lines))
            self._stream.flush()
        except (OSError, ValueError):
            return


class _Lines(logging.Handler):
    """Records of `logging` as lines of the log."""

    def __init__(self, log: JsonLog) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info:
            text += "\n" + logging.Formatter().formatException(record.exc_info)
        self._log(record.levelname.lower(), logger=record.name, message=text)


def log_all(log: JsonLog) -> None:
    """Write warnings of this process and of its libraries to the log as well."""
    logging.getLogger().addHandler(_Lines(log))
    logging.captureWarnings(True)
