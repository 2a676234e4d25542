"""What a request is refused with: a status of HTTP and a message."""

from __future__ import annotations


class RequestError(Exception):
    """The request can't be answered; `status` is HTTP's, the text says what was passed and what was expected."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class WorkerLostError(Exception):
    """The worker process ended while it ran a batch."""
