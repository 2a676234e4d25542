"""Alone: the world of a program that nobody launched."""

from __future__ import annotations

import os
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.parallel.communicator import Communicator


class Alone(Communicator):
    """The world of a program that nobody launched: one rank, on which each collective is a copy."""

    engine = "local"

    def __init__(self, name: str = "world") -> None:
        super().__init__(0, 1, name)

    def _nobody(self, *_: Any, **__: Any) -> Any:
        raise InvalidArgumentError("one rank runs, and no other answers; start more with oprack launch -n 2 ...")

    # Between ranks alone: with one the public methods copy, and call none of these.
    _all_reduce = _all_gather = _reduce_scatter = _all_to_all = _broadcast = _send = _receive = _nobody

    def _gather_facts(self, value: Any) -> list[Any]:
        return [value]

    def _split(self, color: int, key: int, name: str) -> Communicator:
        return Alone(name)

    def abort(self, code: int, reason: str = "") -> None:
        os._exit(code)
