"""Ahead: parameters that lie in parts are whole while a call reads them, gathered ahead and let go of behind."""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from oprack.autograd.followers import follow_backward
from oprack.eager_tensor import Tensor
from oprack.interpreter.modes import is_grad_enabled
from oprack.parallel.communicator import Communicator
from oprack.parallel.layouts.boxing import start_gathering
from oprack.parallel.layouts.layout import Layout

_Key = tuple[int, Layout, bool]
_USES = 1 << 16
"""Where no backward ends a pass, it ends after so many uses of parameters."""


class _Use:
    """A parameter that a call reads whole.

    Args:
        p: The parameter.
        source: Its layout.
        target: The layout in which the call reads it.
        back: Whether a backward pass reads it.
    """

    def __init__(self, p: Tensor, source: Layout, target: Layout, back: bool) -> None:
        self._p, self.source, self.target = weakref.ref(p), source, target
        self.key: _Key = id(p), target, back
        self.nbytes = math.prod(p.shape) * p._value.itemsize
        self._of: tuple[Any, int] = (None, 0)
        self._wait: Callable[[], Any] | None = None

    def start(self) -> bool:
        """Start to gather the values that the parameter has now; whether that was possible."""
        p = self._p()
        if p is None:
            return False
        self._of = p._value, p._version
        self._wait = start_gathering(p._value, p.shape, self.source, self.target)
        return self._wait is not None

    def take(self) -> Any:
        """What was gathered, which is let go of here; None where nothing was started."""
        wait, self._wait = self._wait, None
        return None if wait is None else wait()

    def is_of(self, p: Tensor) -> bool:
        """Whether what was gathered are the values that the parameter has now."""
        value, version = self._of
        return self._p() is p and value is p._value and version == p._version


class Ahead:
    """The parameters of a world's global tensors that are on their way to a call that reads them whole.

    All ranks make the same calls, so they gather in the same order, that of the last pass, for as long as this one goes
    as that did: while one call runs, the parameters of the next ones travel, about as many bytes as the largest one
    has. What a backward pass reads of them is gathered again, so nothing is whole for longer than a call. A pass ends
    with its backward; without gradients it ends where the next one begins.
    """

    def __init__(self) -> None:
        self._last: list[_Use] = []
        self._now: list[_Use] = []
        self._travelling: dict[_Key, _Use] = {}
        self._follows = True  # this pass goes as the last one did
        self._largest = 0
        self._thread = 0

    @staticmethod
    def of(world: Communicator) -> Ahead:
        """That of a world, made where there is none."""
        found: Ahead | None = world.__dict__.get("ahead")
        if found is None:
            found = world.__dict__["ahead"] = Ahead()
            follow_backward(found)
        return found

    def whole(self, p: Tensor, source: Layout, target: Layout, back: bool = False) -> Any:
        """The array of a parameter in a layout in which it is gathered from one; collective.

        Args:
            p: The parameter.
            source: Its layout.
            target: The layout that is wanted.
            back: Whether a backward pass asks.

        Returns:
            The array; None where more than one gathering leads from one layout to the other.
        """
        use = _Use(p, source, target, back)
        again = self._now and not back and not is_grad_enabled() and use.key == self._now[0].key
        if again or len(self._now) >= _USES:
            self._end_pass()
        self._thread, at = threading.get_ident(), len(self._now)
        self._follows = self._follows and at < len(self._last) and self._last[at].key == use.key
        found = self._travelling.pop(use.key, None)
        value = None if found is None else found.take()
        if found is None or not found.is_of(p):
            value = use.take() if use.start() else None
        if value is None:
            return None
        self._now.append(use)
        self._largest = max(self._largest, use.nbytes)
        if self._follows:
            self._start(self._last[at + 1 :])
        return value

    def _start(self, uses: Sequence[_Use]) -> None:
        travelling = sum(use.nbytes for use in self._travelling.values())
        for use in uses:
            if travelling >= self._largest:
                return
            if use.key not in self._travelling:
                if not use.start():
                    return
                self._travelling[use.key] = use
                travelling += use.nbytes

    def _end_pass(self) -> None:
        left, self._travelling = list(self._travelling.values()), {}
        for use in left:
            use.take()
        self._last, self._now, self._follows = self._now, [], True

    def gradient_ready(self, tensor: Tensor) -> None:
        """See Follower."""

    def after_backward(self, error: BaseException | None) -> None:
        """See Follower."""
        if self._thread != threading.get_ident():  # ranks may be threads
            return
        self._thread = 0
        if error is not None:
            self._now, self._travelling = [], {}
        self._end_pass()
