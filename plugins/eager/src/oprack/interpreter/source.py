"""The generated code that a call runs, for people to read."""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.runtime.profiler import in_reference

# What `generated_function` was told as the title, by everything that generates code.
_GENERATED = re.compile(r"<(eager|gradient of|jit of|oprack\.functional|plan of)\b")
# Calls until everything is written: of a jitted function the first one captures it, the second one has no plan yet.
_CALLS = 5


def source_of(function: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    """The generated code that a call runs once everything is compiled.

    The function is called until no more code is written for it, once if all is there already and up to five times
    otherwise, so what it changes is changed as often. `backward` needs retain_graph=True for that.

    Args:
        function: What calls ops: `oprack.relu`, what `oprack.jit` made, `y.backward`, `optimizer.step`, the `run` of an
            Executor or a Predictor, or a function of your own around them.
        args: Its arguments.
        kwargs: Its arguments by name.

    Returns:
        The text of each generated function that ran, in the order of their first calls, below a line with the name by
        which tracebacks and debuggers show it.

    Raises:
        InvalidArgumentError: It can't be called; otherwise as the call itself.
    """
    if not callable(function):
        raise InvalidArgumentError(
            f"source_of({type(function).__name__}): expected a function and its arguments; the code of a program is "
            "that of a run: source_of(executor.run, program, feed, fetch_list)"
        )
    for number in range(_CALLS):
        seen = _Seen()
        try:
            seen.call(function, args, kwargs)
        except Exception as error:
            if number:
                error.add_note(
                    f"source_of called {getattr(function, '__name__', function)} {number + 1} times, until all of its "
                    "code was written; backward takes that with retain_graph=True"
                )
            raise
        if not seen.wrote and (seen.texts or in_reference()):
            break
    if not seen.texts:
        return "# no generated code ran: its ops, if it has any, ran one by one, on the reference path\n"
    return "\n".join(f"# {name}\n{text}" for name, text in seen.texts.items())


class _Seen:
    """Notes which generated functions a call runs.

    Attributes:
        texts: Their texts by the name of their file.
        wrote: Whether code was generated meanwhile.
    """

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.wrote = False

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Call a function."""
        before = sys.getprofile()
        sys.setprofile(self._note)
        try:
            function(*args, **kwargs)
        finally:
            sys.setprofile(before)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event != "call" or name in self.texts or not _GENERATED.match(name):
            return
        if frame.f_code.co_name == "<module>":  # the text is executed, once, to define the function
            self.wrote = True
        else:
            self.texts[name] = "".join(linecache.getlines(name))
