"""What interrupts code is told from what the code raised."""

import functools
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oprack import Executor, Scope
from oprack.errors import PackImportError
from oprack.kernel import kernel
from oprack.kernel.commit import Commit
from oprack.packs.installed.resolve import import_module
from oprack.packs.manager import PackManager
from oprack.python.interruption import is_interruption, let_interruptions_pass


class StoppedError(Exception):
    """Of a handler."""


def stop(*_: Any) -> None:
    raise StoppedError


class Handler:
    def method(self, *_: Any) -> None:
        raise StoppedError

    def __call__(self, *_: Any) -> None:
        raise StoppedError


@pytest.fixture
def handle() -> Iterator[Callable[[Any], Any]]:
    before = signal.getsignal(signal.SIGUSR1)
    yield functools.partial(signal.signal, signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


def caught(raising: Callable[[], Any]) -> BaseException:
    try:
        raising()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize("handler", [stop, Handler().method, Handler(), functools.partial(stop, 1)])
def test_what_the_handler_of_a_signal_raises_is_an_interruption(handle: Any, handler: Any) -> None:
    handle(handler)
    assert is_interruption(caught(lambda: signal.raise_signal(signal.SIGUSR1)))


def test_what_code_raises_is_none(handle: Any) -> None:
    handle(Handler().method)
    assert not is_interruption(caught(stop))
    assert not is_interruption(caught(lambda: 1 / 0))
    assert is_interruption(KeyboardInterrupt())
    assert not is_interruption(SystemExit())


def test_an_interruption_passes_where_errors_are_caught(handle: Any) -> None:
    handle(stop)

    def run(raising: Callable[[], Any]) -> str:
        try:
            raising()
        except Exception:
            let_interruptions_pass()
            return "caught"
        return ""

    assert run(lambda: 1 / 0) == "caught"
    with pytest.raises(StoppedError):
        run(lambda: signal.raise_signal(signal.SIGUSR1))


def test_a_module_whose_import_was_interrupted_is_imported_the_next_time(
    handle: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle(stop)
    code = (
        "import os, signal\nif os.environ.pop('STOP_ONCE', ''):\n    signal.raise_signal(signal.SIGUSR1)\nvalue = 3\n"
    )
    (tmp_path / "stopped_once.py").write_text(code)
    (tmp_path / "always_wrong.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("STOP_ONCE", "1")
    with pytest.raises(StoppedError):
        import_module("stopped_once", "a test")
    assert import_module("stopped_once", "a test").value == 3
    with pytest.raises(PackImportError, match=r"always_wrong.*ZeroDivisionError"):
        import_module("always_wrong", "a test")


@pytest.mark.parametrize("prepared", [True, False], ids=["plan", "reference"])
def test_what_a_handler_raises_within_a_kernel_is_no_failure_of_the_op(
    rack: PackManager, build: Callable[..., Any], handle: Any, prepared: bool
) -> None:
    @kernel("double", priority=1)
    def stopped(X: Any, *, factor: Any) -> Any:
        if X.any():
            signal.raise_signal(signal.SIGUSR1)
        return X * X.dtype.type(factor)

    handle(stop)
    rack.register_kernel(stopped)
    program = build({"x": np.zeros(2, "f4")}, [("double", {"X": "x"}, {"Out": "y"})])
    executor = Executor(prepared=prepared)

    def run(value: float) -> np.ndarray:
        result: np.ndarray = executor.run(program, {"x": np.full(2, value, "f4")}, ["y"], Scope())[0]
        return result

    for _ in range(3):
        np.testing.assert_array_equal(run(0), [0, 0])
        with pytest.raises(StoppedError) as caught:
            run(1)
        assert caught.value.__cause__ is None
    handle(signal.SIG_IGN)
    np.testing.assert_array_equal(run(1), [2, 2])


def test_a_commit_is_found_behind_its_last_write_alone() -> None:
    def kernel(stop_before: bool) -> None:
        done: list[int] = []
        commit = Commit("the result")
        if stop_before:
            raise KeyboardInterrupt
        commit(done.append, 1)
        assert done == [1]
        raise KeyboardInterrupt

    assert Commit.result_of(caught(lambda: kernel(True))) is None
    assert Commit.result_of(caught(lambda: kernel(False))) == "the result"


def test_a_commit_whose_write_fails_is_not_done() -> None:
    def kernel() -> None:
        Commit("the result")(int, "no number")

    error = caught(kernel)
    assert isinstance(error, ValueError)
    assert Commit.result_of(error) is None
