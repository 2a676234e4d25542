"""One JSON object for each request and each event, a line each, on standard error."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any, TextIO


class JsonLog:
    """Writes lines of JSON; what a client sends can't break a line."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr

    def __call__(self, event: str, **fields: Any) -> None:
        """Write one line. A reader that left is no error of the server."""
        row = {"time": round(time.time(), 3), "event": event, **fields}
        try:
            self._stream.write(json.dumps(row, ensure_ascii=True, default=str) + "\n")
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
