"""The process of one version of a model: it loads the model once, forks the workers, and forks another when one ends.

Forked workers share the pages of the parameters, and one that is forked later has them at once. This process runs
nothing of the model itself: kernel libraries start threads when they first run, and those do not survive a fork.

    python -m oprack_serve.host FD MODEL WORKERS THREADS MEMORY_LIMIT CACHE OPTIONS BEHIND

FD is a socket to the server, one JSON message each. CACHE is the folder of rewritten models, "" for none; OPTIONS is
ModelOptions.of_predictor() in JSON; BEHIND is "1" where loading is to stand behind what else the CPUs have to do, ""
where nobody is served yet. From here:
{"loaded": signature} or {"failed": text}; then for each worker {"worker": number, "pid": pid} with its socket, its
pidfd, by which the server ends it, and its door, through which the server passes the sockets of other fronts; and
{"ended": number, "status": exit code} when it is gone. From the server: {"replace": number} for another worker now and
none when that one ends, {"warm": number} when one has been warmed up. When the server closes the socket, this process
and the workers end.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from oprack_serve.log import JsonLog, log_all

MAX_MESSAGE = 1 << 17
SHORT_LIFE, LONGEST_PAUSE = 2.0, 30.0
BEHIND = 10
"""By how much a thread is nicer that loads a model beside those that serve: a tenth of a CPU at least is left to it."""


def keep_what_is_there() -> None:
    """Have the garbage collector leave alone what is there now, and look more seldom at what comes.

    It looks at all that lives after each 700 new objects, which took a fifth of a request's time in the server, and
    writes to it, so that forked workers got pages of their own. Requests and runs leave next to no cycles.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


@dataclass
class _Child:
    number: int
    pid: int
    started: float
    replaced: bool = False
    warm: bool = False


class Host:
    """Forks workers and looks after them."""

    def __init__(self, control: socket.socket, predictor: Any, signature: Any, proof: Any, threads: int) -> None:
        self._control, self._predictor, self._signature, self._threads = control, predictor, signature, threads
        self._proof = proof
        self._children: dict[int, _Child] = {}  # by pidfd
        self._count = 0
        self._short_lives = 0

    def run(self, workers: int) -> None:
        """Fork workers and keep their number, until the server closes its end."""
        for _ in range(workers):
            self._fork()
        due: list[float] = []
        try:
            while True:
                poll = select.poll()
                poll.register(self._control, select.POLLIN)
                for fd in self._children:
                    poll.register(fd, select.POLLIN)
                wait = min(due, default=None)
                ready = poll.poll(None if wait is None else max(0.0, wait - time.monotonic()) * 1e3)
                for fd, _ in ready:
                    if fd == self._control.fileno():
                        if not self._obey():
                            return
                    else:
                        due += self._reap(fd)
                for moment in [m for m in due if m <= time.monotonic()]:
                    due.remove(moment)
                    self._fork()
        finally:
            for child in self._children.values():
                os.kill(child.pid, signal.SIGKILL)
            for child in self._children.values():
                os.waitpid(child.pid, 0)

    def _fork(self) -> None:
        ours, theirs = socket.socketpair()
        our_door, door = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs, our_door, door:
            self._count += 1
            pid = os.fork()
            if not pid:
                self._become_worker(theirs, door, (ours, our_door))
            pidfd = os.pidfd_open(pid)
            self._children[pidfd] = _Child(self._count, pid, time.monotonic())
            self._tell({"worker": self._count, "pid": pid}, [ours.fileno(), pidfd, our_door.fileno()])

    def _become_worker(self, sock: socket.socket, door: socket.socket, others: Iterable[socket.socket]) -> None:
        code = 1
        try:
            for other in (*others, self._control):
                other.close()
            for fd in self._children:
                os.close(fd)
            self._work(sock, door)
            code = 0
        except BaseException:
            logging.getLogger(__name__).exception("a worker ended")
        finally:
            os._exit(code)  # what the parent registered to run at its end is not the child's

    def _work(self, sock: socket.socket, door: socket.socket) -> None:
        """Be a worker, until the server closes the connection."""
        from oprack_serve import worker

        worker.main(sock, door, self._predictor, self._signature, self._proof, self._threads)

    def _reap(self, fd: int) -> list[float]:
        """Say that a child ended; returns when others have to start in its place."""
        child = self._children.pop(fd)
        os.close(fd)
        _, status = os.waitpid(child.pid, 0)
        self._tell({"ended": child.number, "status": os.waitstatus_to_exitcode(status)})
        if child.replaced:
            return []
        now = time.monotonic()
        # one that served was ended by what came; if that comes again, a pause would only make others wait
        short = not child.warm and now - child.started < SHORT_LIFE
        self._short_lives = self._short_lives + 1 if short else 0
        return [now + (min(LONGEST_PAUSE, 0.25 * 2**self._short_lives) if self._short_lives > 1 else 0.0)]

    def _obey(self) -> bool:
        message = self._control.recv(MAX_MESSAGE)
        if not message:
            return False
        ((what, number),) = json.loads(message).items()
        for child in [child for child in self._children.values() if child.number == number]:
            if what == "warm":
                child.warm = True
            else:
                child.replaced = True
                self._fork()
        return True

    def _tell(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        socket.send_fds(self._control, [json.dumps(message).encode()], fds)


def load(path: str, memory_limit: int, cache: str = "", options: dict[str, Any] | None = None) -> tuple[Any, Any, Any]:
    """A predictor of the model, its signature, and the proof that entries of a batch do not depend on each other.

    cache: where rewritten models are kept, "" for nowhere. options: ModelOptions.of_predictor().
    """
    from oprack.inference import Config, create_predictor
    from oprack.io.inference_model import load_program
    from oprack.parallel.programs.independence import why_rows_may_depend

    from oprack_serve.signature import Signature, TensorSpec

    program, feeds, fetches = load_program(path)
    block = program.global_block()

    def spec(name: str) -> TensorSpec:
        var = block.find_var_recursive(name)
        if var is None:
            return TensorSpec(name, "", None)
        shape = None if var.shape is None else tuple(int(d) for d in var.shape)
        return TensorSpec(name, var.dtype_name() or "", shape, var.lod_level)

    config = Config(path)
    if memory_limit:
        config.set_memory_limit(memory_limit)
    config.set_optim_cache_dir(cache)
    _set_options(config, options or {})
    signature = Signature(tuple(map(spec, feeds)), tuple(map(spec, fetches)))
    return create_predictor(config), signature, partial(why_rows_may_depend, program, feeds, fetches)


def _loaded(behind: bool, *arguments: Any) -> tuple[Any, Any, Any]:
    """What `load` returns, by a thread that is scheduled behind others, if that is wanted: those that serve.

    Niceness is a thread's own in Linux, and nobody may lower his own again; workers are forked by the main thread and
    have that one's.
    """

    def stand_behind() -> None:
        if behind:
            os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) + BEHIND)

    with ThreadPoolExecutor(1, initializer=stand_behind) as thread:
        return thread.submit(load, *arguments).result()


def _set_options(config: Any, options: dict[str, Any]) -> None:
    config.switch_ir_optim(options.get("passes", True))
    if "bfloat16" in options.get("precision", ()):
        config.enable_mkldnn_bfloat16()
    if "int8" in options.get("precision", ()):
        config.enable_mkldnn_int8()
    known = config.pass_builder().all_passes()
    for name in options.get("without_passes", ()):
        if name not in known:
            raise ValueError(f"without_passes of serve.toml has {name!r}; the passes are {', '.join(known)}")
        config.delete_pass(name)


def main(arguments: Sequence[str]) -> int:
    """Load, say so, and look after the workers."""
    fd, path, workers, threads, memory_limit, cache, options, behind = arguments
    log_all(JsonLog())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C reaches the whole group; the server says when to end
    with socket.socket(fileno=int(fd)) as control:
        try:
            of_model = path, int(memory_limit), cache, json.loads(options)
            predictor, signature, proof = _loaded(behind == "1", *of_model)
        except Exception as error:
            control.send(json.dumps({"failed": f"{type(error).__name__}: {error}"[:10_000]}).encode())
            return 1
        keep_what_is_there()
        control.send(json.dumps({"loaded": signature.to_json()}).encode())
        Host(control, predictor, signature, proof, int(threads)).run(int(workers))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (BrokenPipeError, ConnectionError):
        sys.exit(1)
