"""A port for probes of health and for metrics alone: however many clients fill the other one, here is room."""

from __future__ import annotations

import socket

import uvicorn
from starlette.applications import Starlette

from oprack_serve.http import bounded_protocol, port_config
from oprack_serve.settings import Settings

CONNECTIONS = 32
"""Of the port; a probe that comes when there are as many takes the place of the one that says nothing for longest."""
READ_SECONDS = 5.0


class HealthServer(uvicorn.Server):
    """Serves an application without a lifespan in the event loop of another server, which says when it begins and ends.

    Args:
        app: The routes.
        listener: The socket of the port.
        settings: The server's, whose TLS is that of this port, too.
    """

    def __init__(self, app: Starlette, listener: socket.socket, settings: Settings) -> None:
        protocol = bounded_protocol(READ_SECONDS, CONNECTIONS)
        config = port_config(
            app, settings, protocol, lifespan="off", date_header=False, timeout_graceful_shutdown=1, backlog=CONNECTIONS
        )
        super().__init__(config)
        self._listener = listener

    async def start(self) -> None:
        """Answer from now on."""
        self.config.load()
        self.lifespan = self.config.lifespan_class(self.config)
        await self.startup([self._listener])

    async def stop(self) -> None:
        """Close the port and its connections."""
        if self.started:
            await self.shutdown([self._listener])
