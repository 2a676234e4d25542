"""What a rewritten model follows from: the key under which it is kept on disk."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from oprack import __file__ as _HOME
from oprack import __version__
from oprack.inference.background import Later
from oprack.inference.loading import model_location
from oprack.io.inference_model import files_beside, model_files
from oprack.io.parameters import open_view

if TYPE_CHECKING:
    from oprack.inference.config import Config
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
    libraries = {n: _identity(library) for n, library in sorted(manager.libraries().items()) if n in served}
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
            "choice": manager.choice.to_dict(),
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
