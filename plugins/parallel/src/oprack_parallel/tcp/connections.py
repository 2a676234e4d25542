"""Connections between the processes of a job: how ranks find each other, and who is let in."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import socket
import struct
import threading
import time
import weakref
from collections.abc import Mapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from oprack.errors import CollectiveError, InvalidArgumentError
from oprack.parallel.watchdog import TIMEOUT, time_limit

from oprack_parallel.tcp.launchers import MEETING, Start

_MAGIC = b"oprack ranks 1\n"
_NONCE = 16
_PROOF = hashlib.sha256().digest_size
_LENGTH = struct.Struct("!I")
_HELLO = 2_048
"""Bytes that a process may say of itself before it is let in."""
_TABLE = 1 << 24
"""Bytes that the table of addresses may have."""
_PATIENCE = 10.0
"""Seconds for a handshake."""
_KNOCK = 2.0
"""Seconds for one with whatever listens at a port where rank 0 may be."""
_GREETED = 64
"""So many handshakes at a time; who comes meanwhile is sent away and comes again."""
_PROBE = 2.0
"""Seconds after which it is asked whether a rank that does not come is still there."""
_MEET = "meeting"


class Connections:
    """The sockets of this process to other ranks, each opened when it is used first.

    Rank 0 listens where the launcher says, every other rank on a port of its own, on the interface by which it reaches
    rank 0. Both ends of a connection prove that they know the job's token, by HMAC over what the other end drew; what
    follows is neither encrypted nor signed.

    Args:
        start: Who this process is, and where ranks meet.

    Raises:
        CollectiveError: Not all ranks came in time, or they contradict each other.
        InvalidArgumentError: Ranks can't meet at that address.
    """

    def __init__(self, start: Start) -> None:
        self._start = start
        # Queues of C, and a lock, since a signal's handler may raise inside of what Python's own locks do.
        self._moved, self._bell = threading.Lock(), SimpleQueue[None]()
        self._arrived: dict[tuple[str, int], tuple[socket.socket, Mapping[str, Any]]] = {}
        self._open: list[socket.socket] = []
        self._closed = False
        self._greeters = SimpleQueue[None]()
        for _ in range(_GREETED):
            self._greeters.put(None)
        limit = time_limit()
        self._until = time.monotonic() + limit if limit else float("inf")
        own = weakref.WeakMethod(self.close)
        # A child of os.fork, such as a worker that loads data, would keep connections open when this process is gone.
        os.register_at_fork(after_in_child=lambda: (own() or (lambda: None))())
        self.addresses = self._hosted() if start.rank == 0 else self._joined()

    def to(self, group: str, own: int, other: int, world: int, opens: bool) -> socket.socket:
        """The connection to a rank of a group.

        Args:
            group: Which group, the same text on both ends; each has connections of its own, so that nothing gets
                between its messages.
            own: This rank in the group.
            other: The other one.
            world: The other one's rank among all.
            opens: Whether this rank opens it and the other one lets it in; else the other way round.

        Returns:
            A socket that never waits (`setblocking(False)`).

        Raises:
            CollectiveError: The other rank has ended.
        """
        if opens:
            try:
                found = socket.create_connection(self.addresses[world], _PATIENCE)
                self._introduce(found, {"group": group, "rank": own})
            except OSError as e:
                raise CollectiveError(f"rank {world} at {_shown(self.addresses[world])} can't be reached: {e}") from e
        else:
            found = self._awaited(group, other, world)
        found.setblocking(False)
        return found

    def close(self) -> None:
        """Close all connections; the other ranks see that this one has ended."""
        self._closed = True  # without the lock, which a thread may have held that a fork did not take along
        for sock in list(self._open):
            sock.close()

    # Meeting ----------------------------------------------------------------------------------------------------------
    def _hosted(self) -> list[tuple[str, int]]:
        """Rank 0: wait for all others, and tell each where all are."""
        start = self._start
        listener = self._listener_of_rank_0()
        port = listener.getsockname()[1]
        self._listen(listener)
        others = range(1, start.size)
        while missing := [r for r in others if (_MEET, r) not in self._arrived]:
            if time.monotonic() >= self._until:
                raise CollectiveError(
                    f"engine tcp: rank 0 waited at {start.host}:{port} for more than {time_limit():g} s; of "
                    f"{start.size} ranks that {start.launcher} started, these did not come: "
                    f"{', '.join(map(str, missing[:20]))}{' ...' if len(missing) > 20 else ''}. Do they reach "
                    f"this machine by that name and port? {MEETING}=host:port sets another, {TIMEOUT} the limit"
                )
            self._wait()
        met = {r: self._arrived.pop((_MEET, r)) for r in others}
        found = [(start.host, port), *((s.getpeername()[0], int(hello["port"])) for s, hello in met.values())]
        far = [address for address, _ in found[1:] if not _loopback(address)]
        said: dict[str, Any] = {"addresses": found}
        if far and len(far) < len(found) - 1:
            said = {
                "error": f"{start.host} is a loopback address for ranks on the machine of rank 0 (see its /etc/hosts), "
                f"which ranks on other machines such as {far[0]} can't reach; give {MEETING}=host:port with the "
                "machine's own address"
            }
        for sock, _ in met.values():
            with sock:
                _send_text(sock, json.dumps(said).encode())
        if "error" in said:
            raise InvalidArgumentError(f"engine tcp: {said['error']}")
        return found

    def _listener_of_rank_0(self) -> socket.socket:
        start = self._start
        family, address = self._resolved()
        said: OSError | None = None
        for port in start.ports:
            try:
                return socket.create_server((address, port), family=family, backlog=max(128, start.size))
            except OSError as e:
                said = e
        raise InvalidArgumentError(
            f"engine tcp: rank 0 can't listen at {start.host} ({address}), ports {start.ports[0]} to "
            f"{start.ports[-1]}: {said}; expected an address of the machine where rank 0 runs, with a free port "
            f"({MEETING}=host:port sets another)"
        )

    def _resolved(self) -> tuple[int, str]:
        """Family and address of the host; a name that was made just now may not be known at once."""
        while True:
            try:
                found = socket.getaddrinfo(self._start.host, None, type=socket.SOCK_STREAM)
                return int(found[0][0]), str(found[0][4][0])
            except socket.gaierror as e:
                if time.monotonic() >= self._until:
                    raise InvalidArgumentError(
                        f"engine tcp: there is no host {self._start.host!r} ({e}), at which {self._start.launcher} "
                        f"lets ranks meet; {MEETING}=host:port sets another"
                    ) from e
                time.sleep(0.5)

    def _joined(self) -> list[tuple[str, int]]:
        """Another rank: find rank 0, say where this one listens, and learn where the others do."""
        start, said, told = self._start, "", False
        while True:
            for port in start.ports:
                try:
                    with socket.create_connection((start.host, port), _KNOCK) as sock:
                        family, own = sock.family, sock.getsockname()[0]
                        with socket.create_server((own, 0), family=family, backlog=max(128, start.size)) as listener:
                            hello = {"group": _MEET, "rank": start.rank, "size": start.size}
                            self._introduce(sock, hello | {"port": listener.getsockname()[1]}, _KNOCK)
                            self._listen(listener.dup())
                        sock.settimeout(None if self._until == float("inf") else max(1, self._until - time.monotonic()))
                        table = json.loads(_receive_text(sock, _TABLE))
                except _NotOurs as e:
                    said, told = str(e), True
                    continue
                except (OSError, EOFError) as e:
                    said = said if told else str(e)
                    continue
                if "error" in table:
                    raise InvalidArgumentError(f"engine tcp: {table['error']}")
                return [(start.host, port), *((str(h), int(p)) for h, p in table["addresses"][1:])]
            if time.monotonic() >= self._until:
                raise CollectiveError(
                    f"engine tcp: rank {start.rank} of {start.size} did not find rank 0 at {start.host}, ports "
                    f"{start.ports[0]} to {start.ports[-1]}, within {time_limit():g} s ({said}). Does rank 0 run, and "
                    f"is that its machine? {MEETING}=host:port sets another, {TIMEOUT} the limit"
                )
            time.sleep(0.05)

    # Who comes --------------------------------------------------------------------------------------------------------
    def _listen(self, listener: socket.socket) -> None:
        self._open.append(listener)
        threading.Thread(target=self._let_in, args=(listener,), name="oprack ranks", daemon=True).start()

    def _let_in(self, listener: socket.socket) -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return  # closed
            try:
                self._greeters.get_nowait()
            except Empty:
                sock.close()
            else:
                threading.Thread(target=self._greet, args=(sock,), name="oprack handshake", daemon=True).start()

    def _greet(self, sock: socket.socket) -> None:
        try:
            sock.settimeout(_PATIENCE)
            hello = _answered(sock, self._start.token)
            group, rank = str(hello["group"]), int(hello["rank"])
            if group == _MEET:
                wrong = self._contradiction(rank, hello)
                if wrong:
                    _send_text(sock, json.dumps({"error": wrong}).encode())
                    sock.close()
                    return
            self._arrives(sock, group, rank, hello)
        except (_NotOurs, OSError, EOFError, ValueError, KeyError, TypeError):
            sock.close()  # a stranger, or one that looked whether somebody listens
        finally:
            self._greeters.put(None)

    def _arrives(self, sock: socket.socket, group: str, rank: int, hello: Mapping[str, Any]) -> None:
        _prepare(sock)
        with self._moved:
            self._open.append(sock)
            if self._closed or (group, rank) in self._arrived:
                sock.close()
                return
            self._arrived[group, rank] = sock, hello
        self._bell.put(None)

    def _contradiction(self, rank: int, hello: Mapping[str, Any]) -> str:
        """What is wrong with a rank that comes to meet the others; "" when nothing is."""
        start = self._start
        if hello["size"] != start.size:
            return f"rank {rank} was told of {hello['size']} ranks, rank 0 of {start.size}; start all of them alike"
        if not 0 < rank < start.size:
            return f"rank {rank} of {start.size} can't be"
        with self._moved:
            return (
                f"two processes are rank {rank}; give each a rank of its own" if (_MEET, rank) in self._arrived else ""
            )

    def _awaited(self, group: str, other: int, world: int) -> socket.socket:
        asked = time.monotonic()
        while (group, other) not in self._arrived:
            self._wait()
            if time.monotonic() - asked > _PROBE and (group, other) not in self._arrived:
                asked = time.monotonic()
                self._probe(world)
        return self._arrived.pop((group, other))[0]

    def _wait(self) -> None:
        """Until somebody has come, or a moment: another thread may have heard the bell."""
        with suppress(Empty):
            self._bell.get(timeout=0.05)

    def _probe(self, world: int) -> None:
        """Raise CollectiveError when a rank does not listen any more."""
        try:
            socket.create_connection(self.addresses[world], _PATIENCE).close()
        except ConnectionRefusedError as e:
            raise CollectiveError(f"rank {world} at {_shown(self.addresses[world])} has ended: {e}") from e
        except OSError:
            return  # who can't be asked may be busy; the limit on waiting counts

    def _introduce(self, sock: socket.socket, hello: Mapping[str, Any], patience: float = _PATIENCE) -> None:
        sock.settimeout(patience)
        _proved(sock, self._start.token, hello)
        _prepare(sock)
        self._open.append(sock)


class _NotOurs(Exception):
    """The other end is no process of this job."""


def _proof(token: bytes, *said: bytes) -> bytes:
    return hmac.digest(token, b"\0".join(said), "sha256")


def _answered(sock: socket.socket, token: bytes) -> Mapping[str, Any]:
    """What a process that comes says of itself, once it has proved that it knows the token; then prove it to that."""
    own = secrets.token_bytes(_NONCE)
    sock.sendall(_MAGIC + own)
    head = _exactly(sock, len(_MAGIC) + _NONCE)
    if not head.startswith(_MAGIC):
        raise _NotOurs
    theirs, text = head[len(_MAGIC) :], _receive_text(sock, _HELLO)
    if not hmac.compare_digest(_exactly(sock, _PROOF), _proof(token, b"comes", own, theirs, text)):
        raise _NotOurs
    sock.sendall(_proof(token, b"lets in", theirs, own, text))
    found = json.loads(text)
    if not isinstance(found, dict):
        raise _NotOurs
    return found


def _proved(sock: socket.socket, token: bytes, hello: Mapping[str, Any]) -> None:
    """The other side of `_answered`. Raises _NotOurs where what listens is no rank of this job."""
    try:
        head = _exactly(sock, len(_MAGIC) + _NONCE)
        if not head.startswith(_MAGIC):
            raise _NotOurs("something else listens there")
        own, text = secrets.token_bytes(_NONCE), json.dumps(dict(hello)).encode()
        theirs = head[len(_MAGIC) :]
        sock.sendall(_MAGIC + own + _LENGTH.pack(len(text)) + text + _proof(token, b"comes", theirs, own, text))
        if not hmac.compare_digest(_exactly(sock, _PROOF), _proof(token, b"lets in", own, theirs, text)):
            raise _NotOurs("a process that does not know the job's token listens there")
    except EOFError as e:
        raise _NotOurs("what listens there belongs to another job, or has another token") from e


def _send_text(sock: socket.socket, text: bytes) -> None:
    sock.sendall(_LENGTH.pack(len(text)) + text)


def _receive_text(sock: socket.socket, most: int) -> bytes:
    (length,) = _LENGTH.unpack(_exactly(sock, _LENGTH.size))
    if length > most:
        raise _NotOurs(f"{length} bytes were announced, where at most {most} may come")
    return _exactly(sock, length)


def _exactly(sock: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        got = sock.recv(size - len(found))
        if not got:
            raise EOFError("the other end closed the connection")
        found += got
    return bytes(found)


def _prepare(sock: socket.socket) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # messages of a few bytes are not kept back
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def _loopback(address: str) -> bool:
    return address.startswith(("127.", "::1", "::ffff:127."))


def _shown(address: tuple[str, int]) -> str:
    return f"{address[0]}:{address[1]}"
