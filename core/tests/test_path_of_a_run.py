"""How many functions and files a later run passes: who reads the code goes the same way."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np
import pytest
from oprack.program import Program
from oprack.runtime import Executor, prepared_function
from oprack.tensor import LoDTensor, Scope
from passed_calls import PassedCalls

_GENERATED = ("<plan of", "<eager", "<oprack.functional")


class Path:
    """What a call passes of our code: modules and comprehensions left out.

    Attributes:
        functions: Different functions.
        files: Different files.
        switches: How often the next function stands in another file.
    """

    def __init__(self, call: Callable[[], Any]) -> None:
        self.functions: set[tuple[str, int, str]] = set()
        self.switches = 0
        self._last = ""
        with PassedCalls() as passed:
            call()
        for code in passed:
            self._note(code)
        self.files = {file for file, _, _ in self.functions}

    def _note(self, code: CodeType) -> None:
        file, name = code.co_filename, code.co_name
        ours = "/src/oprack" in file or "/site-packages/oprack" in file or file.startswith(_GENERATED)
        if not ours or (name.startswith("<") and name != "<lambda>"):
            return
        self.functions.add((file, code.co_firstlineno, name))
        self.switches += bool(self._last) and file != self._last
        self._last = file


def _is_short(path: Path) -> None:
    assert "segment" in {name for _, _, name in path.functions}, "the generated code ran"
    counts = len(path.functions), len(path.files), path.switches
    assert counts[0] <= 25 and counts[1] <= 12 and counts[2] <= 20, counts


def test_a_later_run_of_one_op(build: Callable[..., Program]) -> None:
    x = np.ones((2, 3), np.float32)
    program, executor, scope = build({"x": x}, [("double", {"X": "x"}, {"Out": "y"})]), Executor(), Scope()

    def run() -> Any:
        return executor.run(program, {"x": x}, ["y"], scope)

    for _ in range(4):
        run()
    _is_short(Path(run))
    assert (run()[0] == 2 * x).all()


def test_a_later_run_of_ops_with_a_parameter(build: Callable[..., Program]) -> None:
    w, ids = np.arange(8, dtype=np.float32).reshape(4, 2), np.array([3, 1])
    ops = [("pick", {"Ids": "ids", "W": "w"}, {"Out": "y"}), ("double", {"X": "y"}, {"Out": "z"})]
    program, executor, scope = build({"ids": ids, "w": w}, ops), Executor(), Scope()
    program.global_block().vars["w"].persistable = True
    scope.var("w").value = LoDTensor(w)
    for _ in range(4):
        executor.run(program, {"ids": ids}, ["z"], scope)
    _is_short(Path(lambda: executor.run(program, {"ids": ids}, ["z"], scope)))
    assert (executor.run(program, {"ids": ids[:1]}, ["z"], scope)[0] == 2 * w[[3]]).all()


@pytest.mark.parametrize("found", [True, False], ids=["by a context variable", "by np.errstate"])
def test_infinities_are_values_like_others(found: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not found:
        monkeypatch.setattr(prepared_function, "copy_context", dict)
    begin, end = prepared_function._error_state()
    with np.errstate(all="raise"):
        before = begin()
        assert set(np.geterr().values()) == {"ignore"}
        assert np.isinf(np.ones(1) / np.zeros(1)).all()
        end(before)
        assert set(np.geterr().values()) == {"raise"}
