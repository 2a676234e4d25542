"""Plans recorded over strict arrays: the same numbers, fresh inputs and results, parameters in place, no stale data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import oprack_cuda
import pytest
from oprack.desc import OpDesc
from oprack.packs.manager import default_manager
from oprack.testing.cases import load_cases
from oprack.testing.conformance import STAGES
from oprack.testing.runner import missing_ops, run_case
from oprack_cuda import graphs
from oprack_cuda.testing import OpWatch, StrictArray, strict_executor

CASES = Path(__file__).parents[3] / "tests/data/cases"
FILES = sorted(CASES.rglob("*.npz"))


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[graphs.RecordedPlan]]:
    """Every plan that is made, with recording switched on."""
    made: list[graphs.RecordedPlan] = []
    default_manager().op_types()  # packs are known, so that no program is prepared twice
    init = graphs.RecordedPlan.__init__

    def remember(self: graphs.RecordedPlan, *args: Any) -> None:
        init(self, *args)
        made.append(self)

    monkeypatch.setattr(graphs.RecordedPlan, "__init__", remember)
    oprack_cuda.use_graphs(True)
    yield made
    oprack_cuda.use_graphs(False)


def _program(*ops: tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]], persistable: Any = ()) -> Any:
    program = oprack.Program()
    block = program.global_block()
    for _, inputs, outputs, _ in ops:
        for name in (n for names in (*inputs.values(), *outputs.values()) for n in names):
            if not block.has_var(name):
                block.create_var(name, dtype="float32", shape=[-1, 3], persistable=name in persistable)
    for op_type, inputs, outputs, attrs in ops:
        block.append_op(OpDesc(op_type, inputs, outputs, attrs))
    return program


def _feed(i: int, rows: int = 2) -> dict[str, np.ndarray]:
    return {"x": np.arange(3 * rows, dtype=np.float32).reshape(rows, 3) + i}


AFFINE = (
    ("elementwise_add", {"X": ["x"], "Y": ["w"]}, {"Out": ["y"]}, {}),
    ("relu", {"X": ["y"]}, {"Out": ["z"]}, {}),
)


def _weights(value: float) -> oprack.Scope:
    scope = oprack.Scope()
    scope.var("w").set(oprack.LoDTensor(np.full((1, 3), value, np.float32)))
    return scope


def test_results_follow_the_inputs(recorded: list[graphs.RecordedPlan]) -> None:
    executor, scope = strict_executor(), _weights(-1.0)
    program = _program(*AFFINE, persistable="w")
    kept = []
    for i in range(7):
        (z,) = executor.run(program, _feed(i), ["z"], scope)
        kept.append((z, np.maximum(_feed(i)["x"] - 1, 0)))
    assert all(np.array_equal(z, want) for z, want in kept)
    assert [p.recordings() for p in recorded] == [["recorded"]]


def test_each_shape_is_recorded_for_itself(recorded: list[graphs.RecordedPlan]) -> None:
    executor, scope, program = strict_executor(), _weights(0.0), _program(*AFFINE, persistable="w")
    for i in range(12):
        rows = 2 + i % 2
        (z,) = executor.run(program, _feed(i, rows), ["z"], scope)
        assert np.array_equal(z, _feed(i, rows)["x"])
    assert [p.recordings() for p in recorded] == [["recorded", "recorded"]]


def test_another_parameter_is_recorded_anew(recorded: list[graphs.RecordedPlan]) -> None:
    executor, scope, program = strict_executor(), _weights(1.0), _program(*AFFINE, persistable="w")
    for _ in range(5):
        executor.run(program, _feed(0), ["z"], scope)
    scope.var("w").set(oprack.LoDTensor(np.full((1, 3), 100.0, np.float32)))
    for _ in range(3):
        (z,) = executor.run(program, _feed(0), ["z"], scope)
        assert np.array_equal(z, _feed(0)["x"] + 100)
    assert [p.recordings() for p in recorded] == [["recorded"]]


def test_parameters_change_in_place_once_per_run(recorded: list[graphs.RecordedPlan]) -> None:
    program = _program(("scale", {"X": ["w"]}, {"Out": ["w"]}, {"scale": 2.0}), persistable="w")
    executor, scope = strict_executor(), _weights(1.0)
    for i in range(8):
        (w,) = executor.run(program, {}, ["w"], scope)
        assert (w == 2.0 ** (i + 1)).all()
    assert [p.recordings() for p in recorded] == [["recorded"]]


def test_random_and_waiting_ops_are_not_recorded(recorded: list[graphs.RecordedPlan]) -> None:
    dropout = ("dropout", {"X": ["x"]}, {"Out": ["y"], "Mask": ["m"]}, {"dropout_prob": 0.5})
    where = ("where_index", {"Condition": ["x"]}, {"Out": ["y"]}, {})
    executor = strict_executor()
    for program in (_program(dropout), _program(where)):
        for i in range(5):
            executor.run(program, _feed(i), ["y"], oprack.Scope())
    assert [p.recordings() for p in recorded] == [[], []]


def test_what_cant_be_recorded_runs_op_by_op(recorded: list[graphs.RecordedPlan], monkeypatch: Any) -> None:
    """relu made to wait, as an op that does so for some attributes only."""
    spec = next(s for s in default_manager().kernel_map("scale", "cuda") if s.library == "plain")
    executor, scope, program = strict_executor(), _weights(1.0), _program(*AFFINE, persistable="w")

    def waits(self: Any, function: Any, arguments: Any) -> Any:
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr("oprack_cuda.testing.context.StrictDeviceContext.capture", waits)
    for i in range(5):
        (z,) = executor.run(program, _feed(i), ["z"], scope)
        assert np.array_equal(z, _feed(i)["x"] + 1) and spec.place == "cuda"
    assert [p.recordings() for p in recorded] == [["RuntimeError: operation not permitted when stream is capturing"]]


def test_graphs_are_off_until_they_are_switched_on() -> None:
    executor, scope, program = strict_executor(), _weights(1.0), _program(*AFFINE, persistable="w")
    assert not graphs.graphs_used()
    for _ in range(4):
        executor.run(program, _feed(0), ["z"], scope)
    assert StrictArray is type(scope.find_var("w").get().array)


@pytest.mark.parametrize("file", FILES[::4], ids=lambda f: f"{f.parent.name}-{f.stem}")
def test_cases_give_the_same_numbers_recorded(file: Path, recorded: list[graphs.RecordedPlan], emulated: None) -> None:
    for case in list(load_cases(file))[:2]:
        for stage in (s for s in STAGES if case.has(s) and not missing_ops(case, s, default_manager())):
            executor = strict_executor()
            try:
                first = run_case(case, stage, executor)
            except oprack.errors.OprackError:
                continue  # a limitation of its pack
            for _ in range(4):
                again = run_case(case, stage, executor)
            if not case.stochastic:
                assert all(_same(first[n], again[n]) for n in first), f"{case.id} {stage}"


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, oprack.SelectedRows):
        return np.array_equal(a.to_dense(), b.to_dense(), equal_nan=True)
    if isinstance(a, list):
        return all(map(_same, a, b))
    x, y = np.asarray(a), np.asarray(b)
    return a.lod == b.lod and x.dtype == y.dtype and np.array_equal(x, y, equal_nan=x.dtype.kind in "fc")


@pytest.mark.parametrize("file", FILES[::2], ids=lambda f: f"{f.parent.name}-{f.stem}")
def test_capturable_ops_copy_nothing(file: Path, emulated: None) -> None:
    """capturable.txt is current: python -m oprack_cuda.testing.survey tests/data/cases writes it."""
    watch = OpWatch()
    for case in list(load_cases(file))[:4]:
        for stage in (s for s in STAGES if case.has(s) and not missing_ops(case, s, default_manager())):
            try:
                run_case(case, stage, strict_executor(prepared=False, watch=watch))
            except oprack.errors.OprackError:
                continue  # a limitation of its pack
    assert [op for op in watch.ran if watch.copied[op] and op in graphs.capturable_ops()] == []
