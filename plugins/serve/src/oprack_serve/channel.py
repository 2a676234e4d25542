"""Messages between the server and a process that it looks after: JSON, with descriptors where a message has some."""

from __future__ import annotations

import asyncio
import json
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from oprack_serve.host import MAX_MESSAGE

MOST_DESCRIPTORS = 4


class Channel:
    """One end of a connection. What does not fit into the system's buffers is sent when there is room.

    Args:
        sock: Of SOCK_SEQPACKET.
        on_message: Called with each message and its descriptors, which it owns.
        on_end: Called when the other end is gone, and nothing more is sent or received.
    """

    def __init__(
        self, sock: socket.socket, on_message: Callable[[dict[str, Any], list[int]], None], on_end: Callable[[], None]
    ) -> None:
        sock.setblocking(False)
        self._sock, self._on_message, self._on_end = sock, on_message, on_end
        self._waiting: deque[tuple[bytes, list[socket.socket | int]]] = deque()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(sock.fileno(), self._receive)
        self.open = True

    def send(self, message: dict[str, Any], descriptors: Sequence[socket.socket | int] = ()) -> None:
        """Send a message, now or later. Sockets among the descriptors are closed when they have been sent."""
        if self.open:
            self._waiting.append((json.dumps(message).encode(), list(descriptors)))
            if len(self._waiting) == 1:
                self._flush()

    def _flush(self) -> None:
        while self._waiting:
            data, descriptors = self._waiting[0]
            try:
                socket.send_fds(self._sock, [data], [d if isinstance(d, int) else d.fileno() for d in descriptors])
            except BlockingIOError:
                self._loop.add_writer(self._sock.fileno(), self._flush)
                return
            except OSError:
                self.close()
                self._on_end()
                return
            self._waiting.popleft()
            _close(descriptors)
        self._loop.remove_writer(self._sock.fileno())

    def _receive(self) -> None:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._sock, MAX_MESSAGE, MOST_DESCRIPTORS)
        except BlockingIOError:
            return
        except OSError:
            data, descriptors = b"", []
        if data:
            self._on_message(json.loads(data), descriptors)
        else:
            self.close()
            self._on_end()

    def close(self) -> None:
        """Hang up; more than once is no error."""
        if self.open:
            self.open = False
            self._loop.remove_reader(self._sock.fileno())
            self._loop.remove_writer(self._sock.fileno())
            self._sock.close()
            for _, descriptors in self._waiting:
                _close(descriptors)
            self._waiting.clear()


def _close(descriptors: Sequence[socket.socket | int]) -> None:
    for each in descriptors:
        if isinstance(each, socket.socket):
            each.close()
