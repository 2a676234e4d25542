"""StateFiles: arrays of an optimizer's state in files that are mapped into memory, beside what the process holds."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from oprack.eager_tensor import Tensor
from oprack.eager_tensor.meta import CPU
from oprack.errors import InvalidArgumentError, UnimplementedError
from oprack.tensor import Scope

_SMALLEST = 4096
"""Bytes; smaller arrays stay where they are."""


class StateFiles:
    """Where the state lies between steps: one file without a name for each array, which ends with the process.

    Args:
        directory: Where the files lie, on a disk with room for the state.
        group_mb: Parameters of so many MiB are updated at a time; so much of their state is in memory.

    Raises:
        InvalidArgumentError: group_mb is not above 0.
        NotADirectoryError: There is no such directory.
    """

    def __init__(self, directory: str | os.PathLike[str], group_mb: float) -> None:
        if not group_mb > 0:
            raise InvalidArgumentError(f"offload: group_mb is {group_mb!r}; expected more than 0")
        self._directory, self._most = Path(directory), int(group_mb * (1 << 20))
        if not self._directory.is_dir():
            raise NotADirectoryError(f"offload: {os.fspath(directory)!r} is no directory; make it first")
        self._maps: dict[str, np.ndarray] = {}

    def groups(self, parameters: Sequence[Tensor]) -> Iterator[list[int]]:
        """Positions of parameters that are updated together.

        Args:
            parameters: The parameters, in host memory.

        Yields:
            Positions, in order.

        Raises:
            UnimplementedError: A parameter lies elsewhere.
        """
        group: list[int] = []
        size = 0
        for k, p in enumerate(parameters):
            if p.place != CPU:
                raise UnimplementedError(f"offload: {p.describe()} lies at {p.place}; expected parameters on the CPU")
            if group and size + p._value.nbytes > self._most:
                yield group
                group, size = [], 0
            group.append(k)
            size += p._value.nbytes
        if group:
            yield group

    def put(self, scope: Scope, names: Sequence[str]) -> None:
        """Let variables have their values in files, which they keep until the next step.

        Args:
            scope: Has the variables.
            names: Of arrays of the state.

        Raises:
            OSError: There is no room on the disk.
        """
        for name in names:
            value = scope.get_var(name).get()
            array = value.array
            if array.nbytes < _SMALLEST:
                continue
            found = self._maps.get(name)
            if found is None or found.shape != array.shape or found.dtype != array.dtype:
                found = self._maps[name] = self._mapped(array)
            if array is not found:
                found[...] = array
                # A plan may remember the value of its last run, whose memory nobody needs any more.
                scope.var(name).value = type(value)(found, place=CPU, shared=True)
                value.array = None

    def _mapped(self, like: np.ndarray) -> np.ndarray:
        with tempfile.TemporaryFile(dir=self._directory, prefix="oprack-state-") as file:
            if hasattr(os, "posix_fallocate"):  # a full disk is an error here, and not a signal when it is written
                os.posix_fallocate(file.fileno(), 0, like.nbytes)
            return np.asarray(np.memmap(file, like.dtype, "w+", shape=like.shape))
