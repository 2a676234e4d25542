"""Bearer tokens: a file of them, of which each request has to bring one."""

from __future__ import annotations

import hashlib
import hmac
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from oprack.errors import InvalidArgumentError

from oprack_serve.errors import RequestError

MAX_BYTES, SHORTEST = 1 << 20, 16
LOOK_SECONDS = 1.0
EVENTS = Callable[..., None]


class Tokens:
    """The tokens of a file, one on each line; a file that changes is read again.

    Args:
        path: Of the file.
        event: Called when a changed file can't be used, and its tokens of before stay.

    Raises:
        InvalidArgumentError: The file can't be read, or has no token of SHORTEST bytes or more on each line.
    """

    def __init__(self, path: Path, event: EVENTS) -> None:
        self._path, self._event = path, event
        self._state: tuple[int, ...] = ()
        self._digests: list[bytes] = []
        self._look_at = 0.0
        self._read(_state(path))

    def _read(self, state: tuple[int, ...]) -> None:
        try:
            data = self._path.read_bytes() if state and state[0] <= MAX_BYTES else b""
        except OSError as error:
            raise InvalidArgumentError(f"--token-file {os.fspath(self._path)!r}: {error.strerror}") from None
        tokens = [line.strip() for line in data.splitlines() if line.strip()]
        if not tokens or min(map(len, tokens)) < SHORTEST:
            raise InvalidArgumentError(
                f"--token-file {os.fspath(self._path)!r}: expected a token of {SHORTEST} bytes or more on each line; "
                "`openssl rand -hex 32` makes one"
            )
        # what is compared has one length, and takes one time
        self._digests, self._state = [_digest(token) for token in tokens], state

    def _look(self) -> None:
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_SECONDS
        state = _state(self._path)
        if state == self._state:
            return
        try:
            self._read(state)
        except InvalidArgumentError as error:
            self._state = state  # said once
            self._event("tokens can't be read", reason=str(error))

    def check(self, authorization: str | None) -> None:
        """Raise RequestError with status 401 unless the header Authorization has one of the tokens."""
        self._look()
        scheme, _, token = (authorization or "").partition(" ")
        digest = _digest(token.strip().encode("utf-8", "surrogateescape"))
        known = [hmac.compare_digest(digest, each) for each in self._digests]
        if scheme.lower() != "bearer" or not any(known):
            what = "an unknown token" if authorization else "no token"
            raise RequestError(401, f"the request has {what}; send the header Authorization: Bearer TOKEN")


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def _state(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_size, found.st_mtime_ns, found.st_ino


class Authorized:
    """An ASGI application in front of another: requests without a token get no further, but for those of health."""

    OPEN = ("/v2/health/live", "/v2/health/ready")

    def __init__(self, app: Any, tokens: Tokens, refuse: Callable[[RequestError], Any]) -> None:
        self._app, self._tokens, self._refuse = app, tokens, refuse

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] not in self.OPEN:
            given = dict(scope["headers"]).get(b"authorization")
            try:
                self._tokens.check(None if given is None else given.decode("latin-1"))
            except RequestError as error:
                response = self._refuse(error)
                response.headers["WWW-Authenticate"] = "Bearer"
                response.headers["Connection"] = "close"  # nobody reads the body
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)
