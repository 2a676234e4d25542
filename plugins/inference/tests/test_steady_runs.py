"""Runs of a predictor whose inputs keep their form go straight to the plan's function, and say and see the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import threadpoolctl
from oprack.errors import (
    FeedDtypeError,
    FeedLoDError,
    FeedShapeError,
    InvalidArgumentError,
    OpError,
    PreconditionNotMetError,
)
from oprack.inference import Config, Predictor, create_predictor
from oprack.inference.predictor import ThreadLimits
from oprack.io import save_inference_model
from oprack.kernel import kernel
from oprack.packs.manager import PackManager
from oprack.program import Program
from oprack.runtime import Profiler
from oprack.runtime.prepared_function import PreparedFunction
from oprack.tensor import LoDTensor, Scope
from passed_calls import PassedCalls

W = np.arange(8, dtype=np.float32).reshape(4, 2)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by one with each run that makes a scope and looks everything up."""
    found: list[str] = []
    whole = PreparedFunction._run_in_scope

    def run_in_scope(self: PreparedFunction, *arguments: Any) -> Any:
        found.append("whole")
        return whole(self, *arguments)

    monkeypatch.setattr(PreparedFunction, "_run_in_scope", run_in_scope)
    return found


@pytest.fixture
def load(build: Callable[..., Program], tmp_path: Path) -> Callable[..., Predictor]:
    """load(feeds, ops, outputs, kept=()): a predictor of a program with the parameter w; `kept` lives on after runs."""

    def made(feeds: dict[str, Any], ops: list[Any], outputs: list[str], kept: tuple[str, ...] = ()) -> Predictor:
        values = {"w": W, **{name: np.ones(1, np.float32) for name in kept}}
        program = build({**feeds, **values}, ops)
        scope = Scope()
        for name, value in values.items():
            var = program.global_block().vars[name]
            var.shape, var.persistable = value.shape, True
            scope.var(name).set(value)
        save_inference_model(tmp_path / "m", program, list(feeds), outputs, scope)
        return create_predictor(Config(f"{tmp_path / 'm'}.pdmodel", f"{tmp_path / 'm'}.pdiparams"))

    return made


IDS, X = np.array([1, 3]), np.array([[1, 2], [3, 4]], np.float32)
PICKED = [("pick", {"Ids": "ids", "W": "w"}, {"Out": "y"}), ("double", {"X": "y"}, {"Out": "z"}, {"factor": 3.0})]


def test_from_the_second_run_on_nothing_is_looked_up(load: Callable[..., Predictor], runs: list[str]) -> None:
    predictor = load({"ids": IDS}, PICKED, ["z"])
    for n in range(6):
        ids = np.array([n % 4, 0, 2])
        assert (predictor.run([ids])[0] == 3 * W[ids]).all()
    assert len(runs) == 1
    for ids in (np.array([2]), np.array([3]), np.array([0]), np.array([1, 1, 3])):
        assert (predictor.run([ids])[0] == 3 * W[ids]).all()
    assert len(runs) == 1, "code is generated for dtypes and LoD levels, not for shapes"


def test_handles_and_clones_have_their_own(load: Callable[..., Predictor], runs: list[str]) -> None:
    first = load({"x": X, "ids": IDS}, [*PICKED, ("join", {"X": ["x", "z"]}, {"Out": "all"})], ["all", "z"])
    for predictor in (first, first.clone()):
        for n in range(4):
            ids = np.array([n, 0])
            predictor.get_input_handle("x").copy_from_cpu(X + n)
            predictor.get_input_handle("ids").copy_from_cpu(ids)
            predictor.run()
            z = predictor.get_output_handle("z")
            assert (z.copy_to_cpu() == 3 * W[ids]).all() and z.shape() == [2, 2]
            expected = np.concatenate([X + n, 3 * W[ids]])
            assert (predictor.get_output_handle("all").copy_to_cpu() == expected).all()
    assert len(runs) == 1, "a clone shares what was compiled"


def test_a_call_goes_past_the_handles(load: Callable[..., Predictor], runs: list[str]) -> None:
    predictor = load({"x": X}, [("double", {"X": "x"}, {"Out": "y"}, {"factor": 2.0})], ["y", "x"])
    predictor.run([X])
    before = predictor.get_output_handle("y").copy_to_cpu()
    for n in range(1, 5):
        x = X + n
        found = predictor.call([x])
        for got, factor in zip(found, (2, 1), strict=True):
            assert (got == factor * x).all() and not np.may_share_memory(got, x)
            got[...] = -1
        assert (x == X + n).all()
    (y, *_) = predictor.call([np.asfortranarray(X)])
    assert (y == 2 * X).all()
    assert (predictor.get_output_handle("y").copy_to_cpu() == before).all()
    assert (predictor.get_input_handle("x").copy_to_cpu() == X).all()
    for given, message in (([X, X], "got 2 arrays; the model has 1"), ([X.astype(np.float64)], "got float64")):
        with pytest.raises((InvalidArgumentError, FeedDtypeError), match=message):
            predictor.call(given)


def test_inputs_are_checked_in_every_run(load: Callable[..., Predictor]) -> None:
    predictor = load({"x": X}, [("double", {"X": "x"}, {"Out": "y"})], ["y"])
    for _ in range(3):
        predictor.run([X])
    with pytest.raises(FeedDtypeError, match=r"'x': got float64\[2, 2\]; the program expects float32"):
        predictor.run([X.astype(np.float64)])
    with pytest.raises(FeedShapeError, match="'x': got shape"):
        predictor.run([X[0]])
    predictor.get_input_handle("x").reshape([5])
    with pytest.raises(PreconditionNotMetError, match="'x' was not filled"):
        predictor.run()
    # memory that is shared is read as it is by the time of the run, whatever its strides
    wide = np.zeros((2, 4), np.float32)
    predictor.get_input_handle("x").share_external_data(wide[:, ::2])
    for n in range(3):
        wide[:] = n
        predictor.run()
        assert (predictor.get_output_handle("y").copy_to_cpu() == 2 * n).all() and (wide == n).all()


def test_offsets_come_with_each_run(load: Callable[..., Predictor], runs: list[str]) -> None:
    predictor = load({"ids": LoDTensor(np.array([0, 1, 2]), [[0, 1, 3]])}, PICKED, ["z"])
    handle, out = predictor.get_input_handle("ids"), predictor.get_output_handle("z")
    handle.copy_from_cpu(np.array([3, 2, 1]))
    for offsets in ([0, 1, 3], [0, 2, 3], [0, 0, 3], [0, 3, 3]):
        handle.set_lod([offsets])
        predictor.run()
        assert out.lod() == [offsets] and (out.copy_to_cpu() == 3 * W[[3, 2, 1]]).all()
    assert len(runs) == 1
    handle.set_lod([[0, 2]])
    with pytest.raises(FeedLoDError, match="level 0 ends at 2; expected 3"):
        predictor.run()
    handle.set_lod([])
    with pytest.raises(FeedLoDError, match="0 LoD levels; the program expects 1"):
        predictor.run()


def test_an_op_that_fails_says_so(load: Callable[..., Predictor]) -> None:
    predictor = load({"ids": IDS}, PICKED, ["z"])
    for _ in range(4):
        predictor.run([IDS])
    with pytest.raises(OpError, match=r"op pick .*failed: IndexError"):
        predictor.run([np.array([1, 9])])
    assert (predictor.run([IDS])[0] == 3 * W[IDS]).all()


def test_profilers_and_hooks_see_every_op(load: Callable[..., Predictor]) -> None:
    predictor = load({"ids": IDS}, PICKED, ["z"])
    for _ in range(4):
        predictor.run([IDS])
    with Profiler() as profiler:
        predictor.run([IDS])
    assert {"pick", "double"} <= {row["op"] for row in profiler.by_op()}
    seen: list[str] = []
    predictor.register_output_hook(lambda op, name, tensor: seen.append(op))
    predictor.run([IDS])
    assert "pick" in seen and "double" in seen


def test_a_kernel_that_is_registered_later_runs(load: Callable[..., Predictor], rack: PackManager) -> None:
    predictor = load({"ids": IDS}, PICKED, ["z"])
    for _ in range(4):
        predictor.run([IDS])

    @kernel("double", priority=9)
    def tripled(X: Any, *, factor: float) -> Any:
        return X * 100

    rack.register_kernel(tripled)
    for _ in range(4):
        assert (predictor.run([IDS])[0] == 100 * W[IDS]).all()


def test_what_lives_on_after_a_run_is_read_by_the_next(load: Callable[..., Predictor], runs: list[str]) -> None:
    ops = [("double", {"X": "total"}, {"Out": "total"}), ("join", {"X": ["total", "x"]}, {"Out": "both"})]
    predictor = load({"x": np.ones(1, np.float32)}, ops, ["both"], kept=("total",))
    for n in range(1, 6):
        assert predictor.run([np.full(1, n, np.float32)])[0].tolist() == [2**n, n]
    assert len(runs) == 1


def test_a_result_stays_when_the_next_run_computes(load: Callable[..., Predictor]) -> None:
    predictor = load({"x": X}, [("flat", {"X": "x"}, {"Out": "y"}), ("double", {"X": "y"}, {"Out": "z"})], ["y", "z"])
    found = []
    for n in range(5):
        x = X + n
        found.append((x, predictor.run([x])))
        assert (x == X + n).all(), "what is fed stays as it is"
    for x, (y, z) in found:
        assert (y == x.reshape(-1)).all() and (z == 2 * y).all()


def test_what_surrounds_a_later_run_is_little(load: Callable[..., Predictor]) -> None:
    """Calls of all Python functions, those of other libraries too: clients of small nets set a number of threads."""
    predictor = load({"x": X}, [("double", {"X": "x"}, {"Out": "y"}, {"factor": 3.0})], ["y"])
    libraries = len(threadpoolctl.ThreadpoolController().lib_controllers)  # as many as other tests have loaded
    for threads, most in ((None, 32), (1, 55 + 16 * libraries)):  # threadpoolctl has 16 calls for each
        if threads:
            predictor._threads = ThreadLimits(threads, predictor._executor.manager)
        for _ in range(5):
            predictor.run([X])
        with PassedCalls() as passed:
            predictor.run([X])
        assert len(passed) <= most, [f"{code.co_filename}:{code.co_name}" for code in passed]
