"""Checkpointer: checkpoints of training that every rank writes and reads in parts, and any other grid of ranks reads.

A directory holds checkpoints as `ckpt-<n>` and the name of the newest in `latest`, as `oprack.io.save_checkpoint` has
them. In each, every rank has a file of safetensors with its pieces, rectangular regions of tensors, and `manifest.json`
says where each piece lies and has a checksum for every few MiB of it. Until all ranks have written, the directory has
a temporary name, so a job that is killed at any moment leaves the last whole checkpoint.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from oprack.checkpoint import MANIFEST, Checkpoint, last_saved, latest_checkpoint, new_checkpoint
from oprack.checkpoint.directory import locked
from oprack.checkpoint.manifest import check_plain, is_count, misfit, seal, unseal
from oprack.checkpoint.safetensor_files import TensorFile, open_tensors, write_tensors
from oprack.eager_tensor.devices import RANDOM
from oprack.errors import (
    CheckpointBusyError,
    CheckpointError,
    CheckpointMismatchError,
    CorruptCheckpointError,
    CorruptParameterError,
    InvalidArgumentError,
    OprackError,
)
from oprack.nn.parameter import Region
from oprack.parallel.communicator import Communicator
from oprack.parallel.training.pieces import Held, held_by, take
from oprack.parallel.watchdog import time_limit
from oprack.parallel.world import world
from oprack.python.interruption import let_interruptions_pass
from oprack.tensor import numpy_dtype
from oprack.types import DTYPE_NAMES

_CHECKED = 4 << 20
"""Bytes that have a checksum of their own, in whole rows of a piece: what is read of it is read in such steps."""
_POLL = 0.02
_DIGEST = re.compile("[0-9a-f]{32}")


class Checkpointer:
    """Writes and reads checkpoints of what several ranks, or one, train.

    checkpoints = parallel.Checkpointer("run/checkpoints", asynchronous=True)
    found = checkpoints.load({"net": net, "adam": adam})  # None at the very beginning
    for step in range(found.step if found else 0, steps):
        ...
        checkpoints.save(step + 1, {"net": net, "adam": adam})
    checkpoints.wait()

    Modules may be whole on each rank, global, or of a pipeline stage (then with a name for each stage), and optimizers
    of any of these, or in parallel.Zero. What several ranks have is written by one of them, in turns. The ranks that
    load may be others, more or fewer, with other layouts: each reads what it needs. All methods are collective. The
    directory has to be the same on all hosts. The library safetensors is needed.

    Args:
        path: The directory of checkpoints.
        keep: How many to keep.
        asynchronous: Whether `save` returns once it has a copy of this rank's pieces, while a thread goes on writing.
            What fails there is raised by the next call.

    Raises:
        InvalidArgumentError: keep is below 1.
    """

    def __init__(self, path: str | os.PathLike[str], keep: int = 3, asynchronous: bool = False) -> None:
        if keep < 1:
            raise InvalidArgumentError(f"Checkpointer: keep is {keep}; expected 1 or more")
        self.path, self.keep, self.asynchronous = Path(path), keep, asynchronous
        self._ranks = world()
        self._job: _Job | None = None
        self._planned: tuple[str, list[tuple[str, Region]]] = ("", [])

    # Saving -----------------------------------------------------------------------------------------------------------
    def save(self, step: int, states: Mapping[str, Any], extra: Mapping[str, Any] | None = None) -> None:
        """Write a checkpoint; collective.

        The random numbers of `oprack.seed` are part of it, those of each rank.

        Args:
            step: Number of the training step.
            states: Name -> a module, an optimizer, or what else has state_dict() and set_state_dict(state).
            extra: Anything that JSON can represent; that of rank 0 counts.

        Raises:
            CheckpointError: The last asynchronous one could not be written, or this one; all ranks raise it.
            CheckpointBusyError: Another program is saving into the directory.
            InvalidArgumentError: Something has no state, or a value that can't be stored.
        """
        self.wait()
        job = _Job(self.path, self.keep, self._ranks, f"part-{self._ranks.rank:05}-of-{self._ranks.size:05}")
        with self._all_or_none("save"):
            check_plain(dict(extra or {}), "extra")
            if dotted := [name for name in states if "." in name]:
                raise InvalidArgumentError(f"Checkpointer: states are named {dotted}; expected names without dots")
            held = held_by(states)
            job.begin()
        job.directory = self.path / self._ranks.gather_facts(job.directory.name)[0]
        job.body = {"step": int(step), "extra": dict(extra or {}), "random": self._ranks.gather_facts(RANDOM.state())}
        own = self._plan(held)
        with self._all_or_none("save"):
            job.held = Held(held.forms, {at: _kept(held.pieces[at], self.asynchronous) for at in own}, held.values)
            job.names = list(states)
        self._job = job
        if self.asynchronous:
            job.start()
        else:
            job.run()
            self.wait()

    def wait(self) -> None:
        """Wait until the last checkpoint is written, on all ranks; collective.

        Raises:
            CheckpointError: It could not be written; the message says by which rank, and why.
        """
        job, self._job = self._job, None
        if job is None:
            return
        with self._all_or_none("save"):
            job.join()
        last_saved[0] = os.fspath(job.directory.with_suffix(""))

    @contextlib.contextmanager
    def _all_or_none(self, what: str) -> Iterator[None]:
        """Let an error of one rank be raised by all, so that none waits for others; collective at its end."""
        error: Exception | None = None
        try:
            yield
        except (OprackError, OSError, MemoryError) as found:
            error = found
        facts = self._ranks.gather_facts(None if error is None else [type(error).__name__, str(error)])
        if error is not None:
            raise (
                error if isinstance(error, OprackError) else CheckpointError(f"Checkpointer.{what}: {error}")
            ) from error
        failed = next((rank for rank, fact in enumerate(facts) if fact is not None), None)
        if failed is not None:
            kind = {c.__name__: c for c in (CheckpointBusyError, CheckpointMismatchError, CorruptCheckpointError)}
            name, text = facts[failed]
            raise kind.get(name, CheckpointError)(f"Checkpointer.{what}: rank {failed} failed: {text}")

    def _plan(self, held: Held) -> list[tuple[str, Region]]:
        """The pieces that this rank writes; collective. What several ranks have is written by one of them, in turns."""
        digest = hashlib.sha256(json.dumps(held.facts).encode()).hexdigest()
        known = self._ranks.gather_facts(digest == self._planned[0])
        if not all(known):
            holders: dict[tuple[str, Region], list[int]] = {}
            for rank, facts in enumerate(self._ranks.gather_facts(held.facts)):
                for key, region, *_ in facts:
                    holders.setdefault((key, _region(region)), []).append(rank)
            writers = [ranks[k % len(ranks)] for k, ranks in enumerate(holders.values())]
            pairs = zip(writers, holders, strict=True)
            self._planned = digest, [at for rank, at in pairs if rank == self._ranks.rank]
        return self._planned[1]

    # Loading ----------------------------------------------------------------------------------------------------------
    def load(self, states: Mapping[str, Any], path: str | os.PathLike[str] | None = None) -> Checkpoint | None:
        """Set states from the newest checkpoint; collective.

        Each rank reads the regions that it holds. Names, shapes and dtypes are compared before a state is changed;
        where a checksum differs, some tensors may have new values already.

        Args:
            states: As they were saved, on any number of ranks and in any layouts.
            path: The directory of one checkpoint; default: the newest one.

        Returns:
            The step, what was saved as `extra`, and the directory; None where there is no checkpoint yet.

        Raises:
            CheckpointMismatchError: The checkpoint is of something else.
            CorruptCheckpointError: It is truncated or altered.
            CheckpointError: Another rank could not read it.
        """
        self.wait()
        with self._all_or_none("load"):
            found = Path(path) if path is not None else latest_checkpoint(self.path)
        name = self._ranks.gather_facts(None if found is None else os.fspath(found))[0]
        if name is None:
            return None
        directory = Path(name)
        with self._all_or_none("load"):
            body = unseal(directory / MANIFEST, _objection, "Checkpointer")
            with _Reader(directory, body) as reader:
                if missing := [name for name in states if name not in body["names"]]:
                    raise CheckpointMismatchError(
                        f"{os.fspath(directory)!r} holds no {', '.join(missing)}; it holds {', '.join(body['names'])}"
                    )
                forms = {key: (tuple(t["shape"]), t["dtype"]) for key, t in body["tensors"].items()}
                take(states, forms, body["values"], reader.read)
            randoms = body["random"]
            RANDOM.load_state(randoms[self._ranks.rank % len(randoms)])
        return Checkpoint(body["step"], body["extra"], directory)


def _kept(array: np.ndarray, copied: bool) -> np.ndarray:
    """An array that is written now, or a copy that may be written later."""
    return array.copy(order="C") if copied or not array.flags.c_contiguous else array


def _region(region: Sequence[Sequence[int]]) -> Region:
    """A region as keys have it, of JSON's lists."""
    return tuple([(int(a), int(b)) for a, b in region])


def _steps(shape: Sequence[int], itemsize: int) -> list[tuple[int, int]]:
    """(start, stop) of the rows that have a checksum together."""
    rows = shape[0] if shape else 1
    count = max(1, _CHECKED // max(1, math.prod(shape[1:]) * itemsize))
    return [(a, min(a + count, rows)) for a in range(0, rows, count)]


def _digest(rows: np.ndarray) -> str:
    return hashlib.blake2b(np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data, digest_size=16).hexdigest()


class _Job:
    """The writing of one checkpoint by one rank; rank 0 waits for all others and gives it its name."""

    def __init__(self, root: Path, keep: int, ranks: Communicator, name: str) -> None:
        self.root, self.keep, self.ranks, self.name = root, keep, ranks, name
        self.directory = Path()
        self.held, self.body, self.names = Held(), dict[str, Any](), list[str]()
        self._open = contextlib.ExitStack()
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Make the directory, on rank 0."""
        if self.ranks.rank:
            return
        self.root.mkdir(parents=True, exist_ok=True)
        try:
            self._open.enter_context(locked(self.root))
        except BlockingIOError as error:
            raise CheckpointBusyError(
                f"Checkpointer: another process or thread saves into {os.fspath(self.root)!r} ({error}); expected one "
                "program at a time, so give each a directory of its own"
            ) from error
        try:
            self.directory = self._open.enter_context(new_checkpoint(self.root, self.keep))
        except BaseException:
            self._open.close()
            raise

    def start(self) -> None:
        """Write in a thread."""
        self._thread = threading.Thread(target=self.run, name="oprack-checkpoint")
        self._thread.start()

    def run(self) -> None:
        """Write this rank's file and what says that it is complete; rank 0 then makes the whole a checkpoint."""
        error: Exception | None = None
        try:
            with self._open:  # on rank 0: at its end the directory gets its name, unless something was raised
                self._write()
                if not self.ranks.rank:
                    self._gather()
        except Exception as found:
            error = found
            let_interruptions_pass()
            if self.ranks.rank:
                with contextlib.suppress(OSError):
                    self._tell("failed", str(found).encode())
        self._error = error
        self.held = Held()

    def join(self) -> None:
        """Wait until it is written. Raises what went wrong on this rank."""
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise CheckpointError(f"the checkpoint was not written: {self._error}") from self._error

    def _write(self) -> None:
        arrays, entries, counts = dict[str, np.ndarray](), list[dict[str, Any]](), dict[str, int]()
        for (key, region), array in self.held.pieces.items():
            number = counts[key] = counts.get(key, 0) + 1
            name = key if number == 1 else f"{key}@{number}"
            shape, dtype = self.held.forms[key]
            arrays[name] = array
            rows = array.reshape(array.shape or (1,))
            sums = [_digest(rows[a:b]) for a, b in _steps(array.shape, array.itemsize)]
            entries.append({"key": key, "shape": shape, "dtype": dtype, "name": name, "region": region, "sums": sums})
        file = self.directory / f"{self.name}.safetensors"
        if arrays:
            regions = json.dumps({e["name"]: [e["shape"], e["region"]] for e in entries})
            with open(file, "xb") as opened:
                write_tensors(opened, arrays, {"format": "np", "oprack_regions": regions})
        part = {"file": file.name, "pieces": entries, "values": self.held.values, "names": self.names}
        self._tell("json", seal(part))

    def _tell(self, suffix: str, data: bytes) -> None:
        """Write a file for rank 0, to which it is complete or not there."""
        temporary = self.directory / f"{self.name}.writing"
        temporary.write_bytes(data)
        os.replace(temporary, self.directory / f"{self.name}.{suffix}")

    def _gather(self) -> None:
        """Wait for the files of all ranks, and write the manifest of them."""
        parts, limit, since = list[Path](), time_limit(), time.monotonic()
        for rank in range(self.ranks.size):
            path = self.directory / f"part-{rank:05}-of-{self.ranks.size:05}.json"
            while not path.exists():
                if failed := next(self.directory.glob("*.failed"), None):
                    raise CheckpointError(f"{failed.stem}: {failed.read_text('utf-8')}")
                if limit and time.monotonic() - since > limit:
                    raise CheckpointError(f"rank {rank} has not written its part after {limit:g} s")
                time.sleep(_POLL)
            parts.append(path)
        tensors: dict[str, dict[str, Any]] = {}
        values: dict[str, Any] = {}
        names = set[str]()
        for path in parts:
            part = unseal(path, lambda body: "", "Checkpointer")
            names |= set(part["names"])
            for e in part["pieces"]:
                entry = tensors.setdefault(e["key"], {"shape": e["shape"], "dtype": e["dtype"], "pieces": []})
                entry["pieces"].append([part["file"], e["name"], e["region"], e["sums"]])
            values = part["values"] | values
            path.unlink()
        body = {**self.body, "names": sorted(names), "tensors": tensors, "values": values}
        (self.directory / MANIFEST).write_bytes(seal(body))


# Reading --------------------------------------------------------------------------------------------------------------
class _Piece(NamedTuple):
    key: str
    file: str
    name: str
    region: Region
    sums: list[str]


class _Reader:
    """Reads regions of tensors from the pieces of a checkpoint, by maps of its files, and compares checksums."""

    def __init__(self, directory: Path, body: Mapping[str, Any]) -> None:
        self._directory, self._tensors = directory, body["tensors"]
        self._open, self._files = contextlib.ExitStack(), dict[str, TensorFile]()

    def __enter__(self) -> _Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.clear()
        self._open.close()

    def read(self, key: str, region: Region) -> np.ndarray:
        """A region of a tensor, as a new array.

        Raises:
            CorruptCheckpointError: A file is missing or was altered.
        """
        tensor = self._tensors[key]
        dtype = numpy_dtype(tensor["dtype"])
        found = np.empty([b - a for a, b in region], dtype)
        left = found.size
        try:
            for file, name, where, sums in tensor["pieces"]:
                piece = _Piece(key, file, name, _region(where), sums)
                left -= self._copy(piece, region, found)
        except CorruptParameterError as error:
            raise self._altered(str(error)) from error
        if left:
            raise self._altered(f"the pieces of {key} and its region {list(region)} differ by {left} elements")
        return found

    def _copy(self, piece: _Piece, region: Region, target: np.ndarray) -> int:
        """Copy what a piece and a region share to the region's array; returns how many elements that is."""
        common = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(region, piece.region, strict=True)]
        if any(a >= b for a, b in common):
            return 0
        file, shape = self._file(piece.file), tuple([b - a for a, b in piece.region])
        steps = _steps(shape, target.itemsize)
        if file.shape(piece.name) != shape or len(steps) != len(piece.sums):
            raise self._altered(
                f"{piece.name!r} of {piece.file} has shape {list(file.shape(piece.name))} and {len(piece.sums)} "
                f"checksums; expected {list(shape)} and {len(steps)}"
            )
        # Of a tensor without dims there is one piece, whose row is the tensor itself.
        first, (start, stop) = (piece.region[0][0], common[0]) if shape else (0, (0, 1))
        for (a, b), digest in zip(steps, piece.sums, strict=True):
            here = (max(start, first + a), min(stop, first + b))
            if here[0] >= here[1]:
                continue
            rows = file.read(piece.name, (a, b))
            if rows.dtype != target.dtype or _digest(rows) != digest:
                raise self._altered(f"rows {first + a} to {first + b} of {piece.key} have another checksum")
            box = [here, *common[1:]][: len(shape)]
            target[_within(box, region)] = rows[_within(box, [(first + a, first + b), *piece.region[1:]])]
        return math.prod(b - a for a, b in common)

    def _file(self, name: str) -> TensorFile:
        if name not in self._files:
            if not (self._directory / name).is_file():
                raise self._altered(f"its file {name} is missing")
            self._files[name] = self._open.enter_context(open_tensors(self._directory / name))
        return self._files[name]

    def _altered(self, why: str) -> CorruptCheckpointError:
        return CorruptCheckpointError(
            f"{os.fspath(self._directory)!r}: {why}, so it was altered; take another checkpoint beside it"
        )


def _within(box: Region, region: Region) -> tuple[Any, ...]:
    """The index of a box in the array of a region."""
    pairs = zip(box, region, strict=False)
    return (*[slice(a - start, b - start) for (a, b), (start, _) in pairs], ...)


# What a manifest has: key -> (in words, the test)
_BODY = {
    "step": ("an int", lambda v: type(v) is int),
    "extra": ("a dict", lambda v: isinstance(v, dict)),
    "random": ("a list of dicts", lambda v: isinstance(v, list) and bool(v) and all(isinstance(r, dict) for r in v)),
    "names": ("a list of str", lambda v: isinstance(v, list) and all(isinstance(n, str) for n in v)),
    "values": ("a dict", lambda v: isinstance(v, dict)),
    "tensors": ("a dict", lambda v: isinstance(v, dict)),
}
_TENSOR = {
    "shape": ("a list of dims", lambda v: isinstance(v, list) and all(map(is_count, v))),
    "dtype": ("a dtype", lambda v: v in DTYPE_NAMES.values()),
    "pieces": ("a list", lambda v: isinstance(v, list)),
}
_FILE = re.compile(r"part-\d{5}-of-\d{5}\.safetensors")


def _objection(body: Any) -> str:
    """Why something is no body of a manifest; "" when it has all that is read of it, with the right types."""
    if isinstance(body, dict) and "variables" in body:
        return "it is one of a program, and oprack.io.load_checkpoint reads it"
    if why := misfit(body, _BODY, "the body"):
        return why
    for key, tensor in body["tensors"].items():
        if why := misfit(tensor, _TENSOR, f"tensors[{key!r}]"):
            return why
        covered = 0
        for piece in tensor["pieces"]:
            if not _is_piece(piece, tensor["shape"]):
                return f"tensors[{key!r}].pieces has {str(piece)[:80]!r}"
            covered += math.prod(b - a for a, b in piece[2])
        if covered != math.prod(tensor["shape"]):
            return f"tensors[{key!r}] has pieces of {covered} elements for shape {tensor['shape']}"
    return ""


def _is_piece(piece: Any, shape: Sequence[int]) -> bool:
    """Whether it is [file, name in it, region, checksums] of a tensor of that shape."""
    if not isinstance(piece, list) or [type(v) for v in piece] != [str, str, list, list]:
        return False
    file, _, region, sums = piece
    if not _FILE.fullmatch(file) or len(region) != len(shape):
        return False
    fits = all(
        isinstance(r, list) and len(r) == 2 and all(map(is_count, r)) and r[0] <= r[1] <= n
        for r, n in zip(region, shape, strict=True)
    )
    return fits and all(isinstance(d, str) and _DIGEST.fullmatch(d) for d in sums)
