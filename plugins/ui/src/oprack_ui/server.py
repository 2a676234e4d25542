"""Runs the application on uvicorn, at this machine's own address alone."""

from __future__ import annotations

import socket

import uvicorn
from starlette.applications import Starlette

HOST = "127.0.0.1"


def serve(app: Starlette, port: int, token: str) -> int:
    """Serve until SIGINT or SIGTERM.

    Args:
        app: The application.
        port: Where to listen; 0 for any free one.
        token: What the address that is printed brings.

    Returns:
        The exit code.

    Raises:
        OSError: The port is taken.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
            listener.listen(64)
        except OSError as error:
            raise OSError(error.errno, f"{HOST}:{port} can't be listened at: {error.strerror}; try --port 0") from error
        print(f"http://{HOST}:{listener.getsockname()[1]}/?token={token}  (Ctrl+C ends it)", flush=True)
        config = uvicorn.Config(
            app, ws="none", lifespan="off", log_level="warning", access_log=False, server_header=False
        )
        uvicorn.Server(config).run(sockets=[listener])
    return 0
