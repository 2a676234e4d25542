"""The page of a model, served on this machine alone while a test looks at it."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import oprack
import uvicorn
from oprack_ui.app import make_app
from oprack_ui.model import ShownModel

TOKEN = "a-token-of-tests"


def cookie(address: str) -> str:
    """What a browser sends that opened the page by its token."""
    return f"oprack_ui_{address.rpartition(':')[2]}={TOKEN}"


@contextlib.contextmanager
def served(model: Path) -> Iterator[str]:
    """The address of `oprack ui MODEL`."""
    manager = oprack.default_manager()
    app = make_app(manager, ShownModel(str(model), None, manager, 2 << 30, 1000), TOKEN)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)  # who asks before the server runs, waits
        server = uvicorn.Server(uvicorn.Config(app, ws="none", lifespan="off", log_level="error"))
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(10)
