"""Predictors of examples: of certain passes and libraries, read from a cache of optimised models or not."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from oprack.inference import Config, Predictor
from oprack.packs.manager import PackManager
from oprack.runtime import NaiveExecutor


class _Predictor(Predictor):
    """A predictor with the kernel libraries that it is given."""

    def __init__(self, config: Config, manager: PackManager, libraries: Sequence[str]) -> None:
        excluded = [n for n in manager.extensions.libraries() if n not in libraries]
        self._own = NaiveExecutor(manager=manager, excluded_libraries=excluded)
        super().__init__(config)

    def _make_executor(self) -> NaiveExecutor:
        return self._own


def make_predictor(
    model: tuple[bytes, bytes],
    passes: Collection[str],
    threads: int,
    manager: PackManager,
    libraries: Sequence[str],
    cache: str = "",
) -> Predictor:
    """Load a model.

    Args:
        model: The bytes of its program and of its parameters.
        passes: Names of the passes that rewrite it.
        threads: How many threads it uses; 0 leaves that open.
        manager: The packs.
        libraries: Names of the kernel libraries that serve it.
        cache: The directory that keeps the rewritten model; "": none.
    """
    config = Config()
    config.set_model_buffer(model[0], len(model[0]), model[1], len(model[1]))
    if threads:
        config.set_cpu_math_library_num_threads(threads)
    if passes:
        builder = config.pass_builder()
        builder.deleted.update(n for n in builder.all_passes() if n not in passes)
    else:
        config.switch_ir_optim(False)
    config.set_optim_cache_dir(cache)
    return _Predictor(config, manager, libraries)


def from_cache(make: Callable[..., Predictor]) -> Predictor | None:
    """A predictor whose rewritten model another one has kept; None for a model that no file can hold."""
    with tempfile.TemporaryDirectory() as folder:
        make(cache=folder)
        return make(cache=folder) if any(Path(folder).iterdir()) else None
