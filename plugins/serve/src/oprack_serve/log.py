"""One JSON object for each request and each event, a line each, on standard error."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import select
import threading
import time
from typing import Any

from oprack_serve.json_data import to_json

GATHER_SECONDS = 0.03
MOST_PENDING = 1 << 20


class JsonLog:
    """Writes lines of JSON; what a client sends can't break a line, and a reader that stops can't stop the process.

    A pipe or socket that says it is ready takes PIPE_BUF bytes without waiting. What it does not take is kept, up to
    MOST_PENDING bytes, and tried again with the next line; lines beyond that are counted and dropped.
    """

    def __init__(self, all_requests: bool = True, descriptor: int = 2) -> None:
        self._descriptor = descriptor
        self._ready = select.poll()
        self._ready.register(descriptor, select.POLLOUT)
        self._pending = bytearray()
        self._lock = threading.Lock()  # warnings come from other threads, too
        self._gathering = False
        self._untold = 0
        self.lost = 0
        """Lines that were dropped."""
        self.all_requests = all_requests
        """Whether requests that were answered well are lines, too."""

    def __call__(self, event: str, **fields: Any) -> None:
        """Write one line now."""
        self.add([{"time": round(time.time(), 3), "event": event, **fields}])
        self.flush()

    def flush_soon(self) -> None:
        """Write what waits within GATHER_SECONDS, with what comes in that time. For use in an event loop."""
        if not self._gathering:
            self._gathering = True
            asyncio.get_running_loop().call_later(GATHER_SECONDS, self.flush)

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Have lines wait for the next flush; each begins with `time` and `event`, and has no such dict within."""
        lines = _lines(rows)
        with self._lock:
            if len(self._pending) + len(lines) > MOST_PENDING:
                self.lost += len(rows)
                self._untold += len(rows)
                return
            if self._untold:
                self._pending += _lines([{"time": rows[0]["time"], "event": "lines lost", "count": self._untold}])
                self._untold = 0
            self._pending += lines

    def flush(self, seconds: float = 0.0) -> None:
        """Write what waits and is taken within so many seconds. A reader that left is no error of the server."""
        self._gathering = False
        with self._lock, contextlib.suppress(OSError):
            while self._pending and self._ready.poll(seconds * 1e3):
                # whole lines where they fit: other processes write to the same pipe
                end = self._pending.rfind(b"\n", 0, select.PIPE_BUF) + 1 or select.PIPE_BUF
                count = os.write(self._descriptor, self._pending[:end])
                del self._pending[:count]


def _lines(rows: list[dict[str, Any]]) -> bytes:
    text = to_json(rows, str)
    if not text.isascii():  # some readers take other characters for the end of a line
        return b"".join([json.dumps(row, default=str).encode() + b"\n" for row in rows])
    # within a string there is no quote without a backslash before it
    return text[1:-1].replace(b'},{"time":', b'}\n{"time":') + b"\n"


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
