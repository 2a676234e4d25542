"""Interruptions at any line of generated runs: Ctrl-C, the handler of a signal, a timer.

What interrupts a run has to come out of it as the very object that was raised; the next run gives what one without an
interruption gives; no pack is declared broken; and a step of a training program that ended early leaves what the ops
did that had finished by then, which is the state of the reference path behind one of its ops.
"""

from __future__ import annotations

import copyreg
import faulthandler
import linecache
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import Any
from unittest.mock import patch

import numpy as np
from oprack import layers
from oprack.errors import OprackError
from oprack.packs.manager import PackManager
from oprack.packs.pack import BrokenPackWarning
from oprack.program import Program
from oprack.runtime import Executor
from oprack.runtime.prepared_function import PreparedFunction
from oprack.tensor import LoDTensor, Scope
from oprack.testing.fuzz.examples.example import Example
from oprack.testing.fuzz.examples.nets import net_examples
from oprack.testing.fuzz.examples.strategies import hypothesis
from oprack.testing.fuzz.runs.outcome import compared, differing
from oprack.testing.fuzz.runs.paths import Path, Paths

KINDS = ("interrupt", "handler", "timer")
_SIGNAL = signal.SIGUSR1
# Of a net of four layers, relative to the largest number of an array: kernels of a plan may sum in another order.
_CLOSE = 1e-4
_ROUNDS = 20_000  # of the loops of a run; generated ones that end have a few
_WARM = 3  # runs until a plan is compiled and has met the shapes


class StoppedError(Exception):
    """What a timer's handler raises."""


class TimeIsOverError(TimeoutError):
    """What a handler raises at a line of ours. It is an OSError as well, which Python's own import system swallows."""


@dataclass
class Report:
    """What a campaign did.

    Attributes:
        injected: How many interruptions were raised.
        failures: What was wrong, one line each.
    """

    injected: int = 0
    failures: list[str] = field(default_factory=list)


class Interrupter:
    """Raises one exception at a line of oprack or a pack, and notes whether it came out.

    Attributes:
        error: What was raised; None when nothing was.
        lines: How many lines ran.
        where: The line.
    """

    def __init__(self, kind: str, at: int = 0, seconds: float = 0.0) -> None:
        self.kind, self.at, self.seconds = kind, at, seconds
        self.error: BaseException | None = None
        self.lines = 0
        self.where = ""
        self.dropped = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.error = (StoppedError if self.kind == "timer" else TimeIsOverError)("the time is over")
        self.where = self.where or ("" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}")
        # Python's copyreg passes over whatever is raised while it notes the slots of a class, once for each class.
        self.dropped = frame is not None and frame.f_code is copyreg._slotnames.__code__  # type: ignore[attr-defined]
        raise self.error

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "call":
            return self._trace if _is_ours(frame.f_code.co_filename) else None
        if event == "line":
            self.lines += 1
            if 0 < self.at <= self.lines and self.error is None and not leaves_block(frame):
                self._fire(frame)
        return self._trace

    def _fire(self, frame: FrameType) -> None:
        self.where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        if self.kind == "handler":
            signal.raise_signal(_SIGNAL)
        self.error = KeyboardInterrupt()
        raise self.error

    def _unraisable(self, what: Any) -> None:
        # Python itself drops what is raised in __del__ and in callbacks of weak references.
        self.dropped = self.dropped or what.exc_value is self.error

    @contextmanager
    def active(self) -> Iterator[None]:
        """Within a with block, the interruption may happen."""
        number = signal.SIGALRM if self.kind == "timer" else _SIGNAL
        before, hook, trace = signal.signal(number, self._handle), sys.unraisablehook, sys.gettrace()
        sys.unraisablehook = self._unraisable
        try:
            if self.kind == "timer":
                signal.setitimer(signal.ITIMER_REAL, max(self.seconds, 1e-5))
            else:
                sys.settrace(self._trace)
            yield
        finally:
            sys.settrace(trace)
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(number, before)
            sys.unraisablehook = hook


def leaves_block(frame: FrameType) -> bool:
    """Whether a with block has ended, and its line comes up again before `__exit__` is called, or a finally begins.

    Python handles no signal there, so a lock that is taken by `with` is always given back, and a function written in C
    that begins a finally is always called; only tracing stops there.
    """
    code, line = frame.f_code, frame.f_lineno
    above = linecache.getline(code.co_filename, line - 1).strip()
    if above.startswith("if ") and "(" not in above:
        above = linecache.getline(code.co_filename, line - 2).strip()
    if above == "finally:":
        return True
    if not linecache.getline(code.co_filename, line).lstrip().startswith("with "):
        return False
    return frame.f_lasti != min(start for start, _, number in code.co_lines() if number == line)


def _is_ours(filename: str) -> bool:
    return ("oprack" in filename or filename.startswith("<plan")) and "fuzz" not in filename


class Injections:
    """A campaign. Its programs follow from the seed alone.

    Args:
        manager: The packs.
        seed: Of the programs and of the lines.
        kinds: Of KINDS.
        say: Prints a line.
        hang: Seconds after which a turn hangs; the process then ends, and says what its threads do. 0: it waits.
    """

    def __init__(
        self,
        manager: PackManager,
        seed: int,
        kinds: Sequence[str] = KINDS,
        say: Callable[[str], None] = print,
        hang: float = 0.0,
    ) -> None:
        self.manager, self.seed, self.kinds, self.say, self.hang = manager, seed, kinds, say, hang
        self.rng = random.Random(seed)
        self.report = Report()
        self.paths = Paths(manager)

    def run(self, seconds: float, most: int = 1 << 30) -> Report:
        """Interrupt training steps and runs of generated nets in turns, until the time is over.

        Args:
            seconds: How long.
            most: How many interruptions at most.

        Returns:
            What was found.
        """
        until = time.monotonic() + seconds
        examples: list[Example] = []
        turn = 0
        while time.monotonic() < until and self.report.injected < most:
            turn += 1
            if self.hang:
                faulthandler.dump_traceback_later(self.hang, exit=True)
            if turn % 3:
                self._training(turn, until)
                continue
            if not examples:
                examples = generated(self.manager, self.rng.randrange(1 << 30))
            self._paths(examples.pop(), until)
        if self.hang:
            faulthandler.cancel_dump_traceback_later()
        return self.report

    def _failed(self, what: str, one: Interrupter, text: str) -> None:
        line = f"{what}: {one.kind} at {one.where or 'line 0'}: {text}"
        self.report.failures.append(line)
        self.say(f"FAILED    {line}")

    def _interrupted(self, what: str, one: Interrupter, run: Callable[[], Any]) -> bool:
        """Run with an interruption; whether it happened. What came out is looked at."""
        came_out: BaseException | None = None
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always", BrokenPackWarning)
            try:
                with one.active():
                    run()
            except BaseException as error:
                came_out = error
        if one.error is None:
            if came_out is not None:
                raise came_out
            return False
        self.report.injected += 1
        if came_out is not one.error and not one.dropped:
            became = "nothing" if came_out is None else f"{type(came_out).__name__}: {came_out}"
            self._failed(what, one, f"{type(one.error).__name__} became {became.partition(chr(10))[0]}")
        for warning in seen:
            if issubclass(warning.category, BrokenPackWarning):
                self._failed(what, one, f"warned: {str(warning.message).partition(chr(10))[0]}")
        return True

    def _draw(self, lines: int, duration: float) -> Interrupter:
        kind = self.rng.choice(self.kinds)
        # The end of a step, where parameters change, is the more interesting half.
        part = 1 - self.rng.random() ** self.rng.choice((1, 3))
        return Interrupter(kind, max(int(lines * part), 1), part * duration)

    # Training ---------------------------------------------------------------------------------------------------------
    def _training(self, turn: int, until: float) -> None:
        try:
            subject = Training(self.rng, self.manager)
        except OprackError:
            return  # an optimizer that writes no programs
        begin = subject.scope()
        if not _same(subject.states(begin)[-1], subject.states(begin)[-1]):
            return  # it draws random numbers
        for prepared in (True, False):
            what = f"{subject.name}, {'plan' if prepared else 'reference'} (seed {self.seed}, turn {turn})"
            executor, scope = subject.executor(prepared), subject.scope()
            for _ in range(_WARM if self.rng.random() < 0.9 else self.rng.randint(0, 1)):
                subject.step(executor, scope)
            lines, duration = _measured(partial(_step_on_a_copy, subject, executor, scope))
            for _ in range(6):
                if time.monotonic() > until:
                    return
                self._one_step(what, subject, executor, scope, self._draw(lines, duration))

    def _one_step(self, what: str, subject: Training, executor: Executor, scope: State, one: Interrupter) -> None:
        before = scope.copy()
        if self.rng.random() < 0.2:
            states = subject.states(before)
            with suppress(OprackError):
                subject.step(executor, scope, fails=True)
            if not _same(scope.arrays(), states[-1]):
                self._failed(what, one, f"an op failed: {_difference(scope.arrays(), states[-1])}")
                scope.set(states[-1])
        elif self._interrupted(what, one, lambda: subject.step(executor, scope)):
            states = subject.states(before)
            now = scope.arrays()
            if not any(_same(now, state) for state in states):
                nearest = min((_difference(now, state) for state in states), key=len)
                self._failed(what, one, f"the state is that behind no op: {nearest}")
                scope.set(states[-1])
        expected = scope.copy()
        want, got = subject.step(subject.reference, expected), subject.step(executor, scope)
        if not _same({"loss": got, **scope.arrays()}, {"loss": want, **expected.arrays()}):
            self._failed(what, one, f"the step after it: {_difference(scope.arrays(), expected.arrays())}")
            scope.set(expected.arrays())

    # Other ways to run ------------------------------------------------------------------------------------------------
    def _paths(self, example: Example, until: float) -> None:
        if not self.ends(example):  # on the reference path, which notes what paths need to know of the example
            return
        names = ("plan", "eager", "jit", "predictor with passes", "predictor with passes and libraries, 1 thread")
        for path in (p for p in self.paths.all() if p.name in names):
            what = f"{example.label}, {path.name} (seed {self.seed})"
            with suppress(OprackError):
                expected = path.run(example)
                if expected is None or any(o.raised for o in expected):
                    continue
                lines, duration = _measured(partial(path.run, example))
                for _ in range(3):
                    if time.monotonic() > until:
                        return
                    one = self._draw(lines, duration)
                    if self._interrupted(what, one, partial(path.run, example)):
                        self._compare(what, one, path, example, expected)

    def ends(self, example: Example) -> bool:
        """Whether a program comes to an end: loops of generated ones may not, and nobody stops this process."""
        with patch.dict(os.environ, OPRACK_LOOP_LIMIT=str(_ROUNDS)):
            return all(outcome.refused != "LoopLimitError" for outcome in self.paths.reference(example))

    def _compare(self, what: str, one: Interrupter, path: Path, example: Example, expected: Sequence[Any]) -> None:
        for number, (want, got) in enumerate(zip(expected, path.run(example) or (), strict=True)):
            difference = differing(path.name, number, want, got) or compared(want.values, got.values, path.tolerance)
            if difference is not None:
                self._failed(what, one, f"the run after it: {difference}")


def _measured(run: Callable[[], Any]) -> tuple[int, float]:
    """(lines of oprack and packs, seconds) of a run that nothing interrupts."""
    start = time.perf_counter()
    run()
    duration, one = time.perf_counter() - start, Interrupter("interrupt")
    with one.active():
        run()
    return one.lines, duration


def generated(manager: PackManager, seed: int, count: int = 8) -> list[Example]:
    """Nets of the blocks that packs bring."""
    h, found = hypothesis(), list[Example]()
    settings = h.settings(
        max_examples=count,
        database=None,
        deadline=None,
        suppress_health_check=list(h.HealthCheck),
        phases=[h.Phase.generate],
    )

    def take(example: Example) -> None:
        found.append(example)

    h.seed(seed)(settings(h.given(net_examples(manager))(take)))()
    return found


# Training programs ----------------------------------------------------------------------------------------------------
class State(Scope):
    """The persistable variables of a training program."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Copies of the values."""
        values = {name: self.get_var(name).value for name in sorted(self.local_var_names())}
        return {name: np.array(value.array) for name, value in values.items() if isinstance(value, LoDTensor)}

    def set(self, arrays: dict[str, np.ndarray]) -> None:
        """Give the variables copies of these values."""
        for name, array in arrays.items():
            self.var(name).value = LoDTensor(array.copy())

    def copy(self) -> State:
        """A scope with copies of the values."""
        twin = State()
        twin.set(self.arrays())
        return twin


class Training:
    """A training program of a few layers, whose last op fails when it is told to.

    Attributes:
        name: Says what it is.
        reference: An executor without plans, by the same kernels.
    """

    def __init__(self, rng: random.Random, manager: PackManager) -> None:
        self.program, self._startup = Program(), Program()
        self._manager = manager
        chosen = rng.choice(_optimizers(manager))
        widths = [rng.choice((3, 16, 40)) for _ in range(rng.randint(1, 3))]
        if rng.random() < 0.15:
            widths = [520, 520]  # large ones are updated in blocks
        with layers.program_guard(self.program, self._startup):
            x, label = layers.data("x", [None, 8]), layers.data("label", [None, 1])
            h = x
            for width in widths:
                h = layers.tanh(layers.fc(h, width))
                if rng.random() < 0.3:
                    h = layers.batch_norm(h)
            loss = layers.mean(layers.square(layers.fc(h, 1) - label))
            self._loss = loss.name
            manager.layer("optimizer", chosen)(learning_rate=0.05).minimize(loss)
            ids = layers.data("ids", [None], "int64")
            self._last = layers.gather(label, ids).name
        self.excluded = rng.choice(((), tuple(manager.extensions.libraries())))
        self.name = f"{chosen} of {widths}" + (" without libraries" if self.excluded else "")
        self.reference = self.executor(prepared=False)
        data = np.random.default_rng(rng.randrange(1 << 30))
        self._feed = {"x": data.normal(size=(6, 8)).astype("f4"), "label": data.normal(size=(6, 1)).astype("f4")}

    def executor(self, prepared: bool) -> Executor:
        """One for plans, or for the reference path."""
        return Executor(seed=1, prepared=prepared, manager=self._manager, excluded_libraries=self.excluded)

    def scope(self) -> State:
        """The state before the first step."""
        scope = State()
        self.reference.run(self._startup, scope=scope)
        return scope

    def step(self, executor: Executor, scope: State, fails: bool = False) -> np.ndarray:
        """One step; the loss."""
        feed = self._feed | {"ids": np.array([99 if fails else 0])}
        return np.array(executor.run(self.program, feed, [self._loss, self._last], scope)[0])

    def states(self, before: State) -> list[dict[str, np.ndarray]]:
        """The state before the first op of a step and behind each op of it, on the reference path."""
        scope, found = before.copy(), [before.arrays()]
        written = {v.name for v in self.program.desc.blocks[0].vars.values() if v.persistable}

        class Observer:
            def before_op(self, op: Any, _: Scope) -> None:
                pass

            def after_op(self, op: Any, _: Scope) -> None:
                if written.intersection(op.desc.output_arg_names()):
                    found.append(scope.arrays())

        prepared = self.reference.prepare(self.program)
        feeds = self._feed | {"ids": np.array([0])}
        PreparedFunction(self.reference, prepared, list(feeds), ())(list(feeds.values()), None, scope, [Observer()])
        return found


def _step_on_a_copy(subject: Training, executor: Executor, scope: State) -> None:
    subject.step(executor, scope.copy())


def _optimizers(manager: PackManager) -> list[str]:
    """Names of the optimizers that take a learning rate and no more."""
    found = []
    for name in manager.layer_names("optimizer"):
        made = manager.layer("optimizer", name)
        if isinstance(made, type) and hasattr(made, "minimize") and name.endswith("Optimizer") and name != "Optimizer":
            with suppress(Exception):
                made(learning_rate=0.05)
                found.append(name)
    return found


def _same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return not _difference(one, other)


def _difference(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> str:
    """The variables that differ."""
    return ", ".join(sorted(n for n, a in one.items() if n not in other or not _close(a, other[n])))


def _close(one: np.ndarray, other: np.ndarray) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    largest = max(float(np.abs(other).max(initial=0.0)), 1e-3)
    return bool(np.allclose(one, other, rtol=_CLOSE, atol=_CLOSE * largest * 0.1, equal_nan=True))
