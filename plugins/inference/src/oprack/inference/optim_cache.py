"""Rewritten models on disk: what passes made of a model, for the next process that loads the same model.

One file per entry, under the key of what it follows from: magic, SHA-256 of the rest, size of the header, header (JSON:
key, code, program, parameters), and the bytes of the parameters. Files are untrusted: an entry that is damaged, of
another user, or of other code is ignored and made anew. Nothing is unpickled; sizes are compared with the file first.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack import __file__ as _HOME
from oprack import __version__
from oprack.cache import KEEPS_NOTHING
from oprack.desc.plain import from_plain, to_plain
from oprack.device import host_array
from oprack.errors import OprackError
from oprack.inference.loading import model_location
from oprack.inference.optim_entry import (
    ALIGN,
    HEAD,
    MAGIC,
    Later,
    Prepared,
    StaleError,
    in_memory_order,
    padded,
    read_entry,
)
from oprack.io.inference_model import InferenceModel, files_beside, model_files
from oprack.io.parameters import open_view
from oprack.packs.installed import discovery
from oprack.packs.manager import PackManager
from oprack.python.interruption import let_interruptions_pass
from oprack.python.logs import get_logger
from oprack.tensor import LoDTensor, Scope

if TYPE_CHECKING:
    from oprack.inference.config import Config
    from oprack.ir import Optimized
    from oprack.runtime import NaiveExecutor

FORMAT = 1
"""Of entries; a new number whenever they are written or read in another way."""

_NOT_ASKED = frozenset({"OPRACK_CACHE", "OPRACK_CACHE_DIR"})


def cache_key(config: Config, executor: NaiveExecutor) -> str:
    """Everything that decides which program and which parameters come out of the passes, as text (JSON).

    The model counts by the SHA-256 of its files' bytes: other weights of the same net have the same size, and copies
    keep the mtime. Code counts by versions here, and by the states of its files in each entry. Passes count by what
    selects them, so that none has to be selected when there is an entry.
    """
    digests = Later(lambda: model_digests(config))  # of megabytes, while packs are found and libraries opened
    manager = executor.manager
    packs = [[p.name, p.distribution, p.version, p.status] for p in manager.packs()]
    passes = [(owner, json.loads(options), _name(target)) for owner, options, target in manager.targets("pass")]
    # those of other places are not asked: what they wrap may take long to import
    served = {options["library"] for _, options, _ in passes if options["place"] in (None, executor.place.kind)}
    libraries = {n: _identity(library) for n, library in sorted(manager.extensions.libraries().items()) if n in served}
    environment = {k: v for k, v in os.environ.items() if k.startswith("OPRACK_") and k not in _NOT_ASKED}
    return json.dumps(
        {
            "format": FORMAT,
            "model": digests.result(),
            "oprack": [__version__, os.path.dirname(_HOME)],
            "python": sys.version,
            "numpy": np.__version__,
            "cpu": _cpu_features(),
            "packs": packs,
            "choice": manager.index.choice.to_dict(),
            "libraries": libraries,
            "passes": passes,
            "pass_builder": config.pass_changes(),
            "place": repr(executor.place),
            "excluded": list(config.excluded_libraries()),
            "by_attr": list(config.libraries_by_attr()),
            "strict": config.strict_sums(),
            "precisions": config.precisions(),
            "deterministic": config.deterministic(),
            "limits": [config.memory_limit(), config.loop_limit()],
            "environment": environment,
        },
        sort_keys=True,
    )


def model_digests(config: Config) -> list[list[Any]]:
    """[name, size, SHA-256] of each file or buffer that the model consists of, and perhaps of other files beside it.

    Raises as load_inference_model where a file is missing.
    """
    buffers = config.buffers()
    if buffers is not None:
        return [_digest(name, buffer) for name, buffer in zip(("program", "parameters"), buffers, strict=True)]
    path, model, params = model_location(config)
    files: dict[str, Path] = files_beside(path, model_filename=model, params_filename=params)
    return [_digest(name, open_view(file)) for name, file in files.items()]


def is_whole(config: Config) -> bool:
    """Whether `model_digests` are those of every file of the model, which only the program itself tells."""
    if config.buffers() is not None:
        return True
    path, model, params = model_location(config)
    files, beside = (
        {os.path.abspath(file) for file in find(path, model_filename=model, params_filename=params).values()}
        for find in (model_files, files_beside)
    )
    return files <= beside


def _digest(name: str, data: bytes | memoryview) -> list[Any]:
    return [name, len(data), hashlib.sha256(data).hexdigest()]


def _identity(library: Any) -> str:
    return str(library.identity()) if hasattr(library, "identity") else type(library).__name__


def _name(target: Any) -> str:
    return target if isinstance(target, str) else f"{target.__module__}:{getattr(target, '__qualname__', target)}"


def _cpu_features() -> list[str]:
    """The CPU's instructions as NumPy knows them: its kernels, which fold constants, round by what they use."""
    try:
        from numpy._core._multiarray_umath import __cpu_features__  # type: ignore[import-not-found]
    except ImportError:  # NumPy 1, or one that moved them
        import platform

        return [platform.machine(), platform.processor()]
    return sorted(name for name, there in __cpu_features__.items() if there)


_LOG = get_logger(__name__)
_SUFFIX, _TEMPORARY = ".oprack-model", ".oprack-*.tmp"
_DEBUG = "OPRACK_IR_DEBUG"  # as in oprack.ir, which is not imported when there is an entry
_ABANDONED = 3600.0  # seconds after which the temporary file of a process that died goes
_BROKEN = (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError)


def load_optimized(
    config: Config,
    scope: Scope,
    executor: NaiveExecutor,
    rewrite: Callable[[], tuple[InferenceModel, Optimized]],
    prepare: Callable[[InferenceModel], Prepared],
) -> tuple[InferenceModel, Prepared]:
    """The rewritten model that a Config names, from its directory of such, or made by `rewrite` and kept there.

    Args:
        config: Names the model and the directory.
        scope: Gets the parameters.
        executor: Runs the model later.
        rewrite: Loads the model, runs the passes, and sets the parameters in `scope`; its result is kept unless a pass
            failed, the model's files changed meanwhile, or ops of this process alone took part.
        prepare: Makes of the model's program what runs; it may be called with what nobody needs in the end.

    Returns:
        The model, and what `prepare` made of it.

    Raises:
        OprackError: As load_inference_model where files are missing, and what `rewrite` and `prepare` raise.
    """
    debugging = KEEPS_NOTHING or config.ir_debug() or os.environ.get(_DEBUG, "") not in ("", "0")
    if debugging or executor.manager.here.has_registrations():
        model, _ = rewrite()
        return model, prepare(model)
    key = cache_key(config, executor)
    cache = OptimCache(config.optim_cache_dir(), config.optim_cache_bytes())
    found = cache.load_and(key, scope, prepare)
    if found is None:
        model, done = rewrite()
        failed = [report.name for report in done.reports if report.error]
        if failed:
            _left_out(f"pass {failed[0]} failed")
        elif cache_key(config, executor) != key:  # the model's files were replaced while they were read
            _left_out("the model changed meanwhile")
        elif not is_whole(config):
            _left_out("the program names files of parameters in another way than they are found beside it")
        else:
            cache.store(key, model, scope, executor.manager)
        found = model, prepare(model)
    return found


class OptimCache:
    """A directory of rewritten models.

    Several processes may use it at once: entries appear whole and never change, so each sees none or all of one.

    Args:
        directory: Made when the first entry is stored.
        max_bytes: Of all entries; those that were not used for the longest time go first.
    """

    def __init__(self, directory: str | os.PathLike[str], max_bytes: int = 2 << 30) -> None:
        self.directory, self.max_bytes = Path(directory), max_bytes

    def path(self, key: str) -> Path:
        """The file of an entry."""
        return self.directory / (hashlib.sha256(key.encode()).hexdigest()[:32] + _SUFFIX)

    def load(self, key: str, scope: Scope) -> InferenceModel | None:
        """The model that was stored under `key`, its parameters set in `scope`; None when there is no usable entry."""
        found = self.load_and(key, scope, lambda model: None)
        return None if found is None else found[0]

    def load_and(
        self, key: str, scope: Scope, prepare: Callable[[InferenceModel], Prepared]
    ) -> tuple[InferenceModel, Prepared] | None:
        """The model that was stored under `key`, and what `prepare` makes of it, while its bytes are still hashed.

        Returns and sets as `load`. What `prepare` raises is raised when the bytes are those that were written.
        """
        path = self.path(key)
        try:
            model, values, prepared = read_entry(path, key, prepare)
        except FileNotFoundError:
            return None
        except StaleError as why:
            _LOG.info("%s: %s; the model is rewritten anew", path, why)
            return None
        except (*_BROKEN, OprackError) as error:
            let_interruptions_pass()
            _LOG.warning("%s is ignored: %s: %s; the model is rewritten anew", path, type(error).__name__, error)
            return None
        for name, value in values.items():
            scope.var(name).value = value
        with suppress(OSError):
            # The time of the last use, by which the oldest entries go.
            os.utime(path)
        return model, prepared()

    def store(self, key: str, model: InferenceModel, scope: Scope, manager: PackManager) -> bool:
        """Keep a rewritten model whose parameters are in `scope`; returns whether it was kept.

        A directory that can't be written is told and no error.
        """
        try:
            return self._store(key, model, scope, manager)
        except OSError as error:
            let_interruptions_pass()
            _LOG.warning("%s can't be written: %s; the rewritten model is not kept", self.directory, error)
        except OprackError as error:
            _left_out(f"the program can't be described: {error}")
        return False

    def _store(self, key: str, model: InferenceModel, scope: Scope, manager: PackManager) -> bool:
        from oprack.io.atomic import AtomicSave  # with modules that readers do not need

        files = discovery.loaded_files(manager.discovered())
        if path := discovery.changed_since_start(files):
            return _left_out(f"{path} was written after this process began")
        arrays: list[np.ndarray[Any, Any]] = []
        rows, offset = [], 0
        for name in scope.local_var_names():
            value = scope.var(name).value
            if value is None:
                continue
            if not isinstance(value, LoDTensor):
                return _left_out(f"parameter {name!r} is a {type(value).__name__}, and not a tensor")
            array, order = in_memory_order(host_array(value, manager.device_contexts))
            rows.append([name, value.dtype, list(array.shape), order, value.lod, offset])
            arrays.append(array)
            offset += -(-array.nbytes // ALIGN) * ALIGN
        header: dict[str, Any] = {"key": key, "files": files, "program": to_plain(model.program.desc)}
        header |= {"feeds": model.feed_names, "fetches": model.fetch_names, "parameters": rows}
        text = json.dumps(header, separators=(",", ":")).encode()
        # Read back before it is stored: an entry that can't be read would be made again by every process.
        from_plain(json.loads(text)["program"])
        text += b" " * (-(HEAD.size + len(text)) % ALIGN)
        if (size := HEAD.size + len(text) + offset) > self.max_bytes:
            return _left_out(f"it takes {size} bytes, and the cache may have {self.max_bytes}")
        pieces = [struct.pack("<Q", len(text)), text, *(piece for a in arrays for piece in padded(a))]
        digest = hashlib.sha256()
        for piece in pieces:
            digest.update(piece)
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with AtomicSave() as save, save.open(self.path(key)) as file:
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), 0o600)
            file.write(MAGIC + digest.digest())
            for piece in pieces:
                file.write(piece)
        self._trim(self.path(key))
        return True

    def entries(self) -> list[tuple[Path, int, float]]:
        """(file, bytes, time of the last use) of each entry, the one used last first."""
        found = []
        for path in self._files("*" + _SUFFIX):
            with suppress(OSError):
                status = path.stat()
                found.append((path, status.st_size, status.st_mtime))
        return sorted(found, key=lambda entry: -entry[2])

    def clear(self) -> int:
        """Remove all entries, and what processes that died left; returns the number of files."""
        files = [*self._files("*" + _SUFFIX), *self._files(_TEMPORARY)]
        for path in files:
            path.unlink(missing_ok=True)
        return len(files)

    def _files(self, pattern: str) -> Iterator[Path]:
        """Files that this class or AtomicSave made; a directory may hold others."""
        return (path for path in self.directory.glob(pattern) if path.is_file() and not path.is_symlink())

    def _trim(self, new: Path) -> None:
        total = 0
        for path, size, _ in sorted(self.entries(), key=lambda entry: entry[0] != new):
            total += size
            if total > self.max_bytes:
                with suppress(OSError):  # Windows keeps a file that is mapped
                    path.unlink(missing_ok=True)
        for path in self._files(_TEMPORARY):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > _ABANDONED:
                    path.unlink(missing_ok=True)


def _left_out(why: str) -> bool:
    _LOG.info("the rewritten model is not kept: %s", why)
    return False
