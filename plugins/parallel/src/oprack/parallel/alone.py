"""Alone: the world of a program that nobody launched."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.parallel.communicator import Communicator


class Alone(Communicator):
    """The world of a program that nobody launched: one rank, on which each collective is a copy."""

    engine = "local"

    def __init__(self, name: str = "world") -> None:
        super().__init__(0, 1, name)

    def _all_reduce(self, x: Any, op: str) -> Any:
        return x

    def _all_gather(self, x: Any, counts: Sequence[int]) -> Any:
        return x

    def _reduce_scatter(self, x: Any, counts: Sequence[int]) -> Any:
        return x

    def _all_to_all(self, parts: Sequence[Any], shapes: Sequence[Sequence[int]]) -> list[Any]:
        return list(parts)

    def _broadcast(self, x: Any, root: int) -> Any:
        return x

    def _send(self, x: Any, to: int) -> None:
        raise InvalidArgumentError(f"send to rank {to}: one rank runs; start more with oprack launch -n 2 ...")

    def _receive(self, shape: Sequence[int], dtype: Any, source: int) -> Any:
        raise InvalidArgumentError(f"receive from rank {source}: one rank runs; start more with oprack launch -n 2 ...")

    def _gather_facts(self, value: Any) -> list[Any]:
        return [value]

    def _split(self, color: int, key: int, name: str) -> Communicator:
        return Alone(name)

    def abort(self, code: int, reason: str = "") -> None:
        os._exit(code)
