"""SelectedRows at place cuda: sums of rows, sparse gradients, and tables of which only some rows are there."""

from __future__ import annotations

from typing import Any

import numpy as np
import oprack
import pytest
from oprack.desc import OpDesc
from oprack.device import dense_rows, merged_rows, row_totals
from oprack.types import VarType
from oprack_cuda.testing import LOG, strict_executor, xp

ROWS = [[3, 0, 3, 2, 3], [1], [], [4, 4]]


def _pair(rows: list[int]) -> tuple[oprack.SelectedRows, oprack.SelectedRows]:
    """The same at the host and at the device."""
    value = np.arange(2 * len(rows), dtype=np.float32).reshape(-1, 2) + 1
    host = oprack.SelectedRows(rows, value, 5)
    numbers = xp.asarray(np.asarray(rows, np.int64))
    return host, oprack.SelectedRows(numbers, xp.asarray(value), 5, place=oprack.CUDAPlace(0), check=False)


@pytest.mark.parametrize("rows", ROWS, ids=str)
def test_rows_are_summed_at_the_device(rows: list[int]) -> None:
    host, device = _pair(rows)
    LOG.clear()
    dense, totals = dense_rows(device, xp), row_totals(device, xp)
    assert not LOG.waits and not LOG.copies
    assert np.array_equal(dense._host, host.to_dense())
    table = xp.zeros((5, 2), "float32")
    table[totals.rows] = totals.value
    assert np.array_equal(table._host, host.to_dense())
    merged = merged_rows(device, xp)
    assert merged.rows._host.tolist() == host.merged().rows.tolist()
    assert np.array_equal(merged.value._host, host.merged().value) and merged.place == device.place
    assert dense_rows(host, np).tolist() == host.to_dense().tolist()
    assert row_totals(host, np).rows.tolist() == host.merged().rows.tolist()


def _copied(rows: oprack.SelectedRows) -> oprack.SelectedRows:
    return oprack.SelectedRows(rows.rows.copy(), rows.value.copy(), rows.height)


def _run(executor: Any, op: str, values: dict[str, Any], output: str, attrs: Any = None) -> Any:
    program, scope = oprack.Program(), oprack.Scope()
    block = program.global_block()
    for name, value in values.items():
        rows = isinstance(value, oprack.SelectedRows)
        kind = VarType.SELECTED_ROWS if rows else VarType.LOD_TENSOR
        dtype = value.dtype if rows else value.dtype.name
        block.create_var(name, type=kind, dtype=dtype, shape=list(value.shape), persistable=True)
        scope.var(name).set(_copied(value) if rows else oprack.LoDTensor(value.copy()))
    block.create_var("out")
    block.append_op(OpDesc(op, {n: [n] for n in values}, {output: ["out"]}, attrs or {}))
    (out,) = executor.run(program, {}, ["out"], scope, return_numpy=False)
    return out


def _table() -> oprack.SelectedRows:
    return oprack.SelectedRows([4, 1, 3], np.arange(6, dtype=np.float32).reshape(3, 2), 9)


def test_tables_of_some_rows() -> None:
    ids = np.array([[1], [4], [1]])
    grad = oprack.SelectedRows([3, 1, 3], np.ones((3, 2), np.float32), 9)
    for values, op, output in (
        ({"W": _table(), "Ids": ids}, "lookup_table", "Out"),
        ({"Param": _table(), "Grad": grad, "LearningRate": np.array([0.5], np.float32)}, "sgd", "ParamOut"),
    ):
        want, got = (_run(e, op, dict(values), output) for e in (oprack.Executor(), strict_executor()))
        assert type(got) is type(want)
        if isinstance(want, oprack.SelectedRows):
            assert np.array_equal(got.to_dense(), want.to_dense())
        else:
            assert np.array_equal(got.array, want.array)


def test_a_sparse_gradient_updates_without_waiting(emulated: None) -> None:
    host, _ = _pair([3, 0, 3])
    rate, table = np.array([0.5], np.float32), np.ones((5, 2), np.float32)
    executor = strict_executor()
    values = {"Param": table, "Grad": host, "LearningRate": rate}
    want = _run(oprack.Executor(), "sgd", dict(values), "ParamOut")
    LOG.clear()
    got = _run(executor, "sgd", dict(values), "ParamOut")
    np.testing.assert_allclose(got.array, want.array, rtol=1e-6)
    assert not [step for step in LOG.waits if "kernels" in step]


def _state(*names: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {n: np.array([0.9], np.float32) if "Pow" in n else rng.random((5, 2), np.float32) + 0.1 for n in names}


ADAM = _state("Moment1", "Moment2", "Beta1Pow", "Beta2Pow")
OPTIMIZERS = [
    ("adagrad", _state("Moment"), {}, ["ParamOut", "MomentOut"]),
    ("adam", ADAM, {"lazy_mode": True}, ["ParamOut", "Moment1Out", "Moment2Out"]),
    ("adam", ADAM, {}, ["ParamOut", "Moment1Out", "Moment2Out"]),
    ("adamw", ADAM, {}, ["ParamOut", "Moment1Out", "Moment2Out"]),
    ("ftrl", _state("SquaredAccumulator", "LinearAccumulator"), {}, ["ParamOut", "SquaredAccumOut", "LinearAccumOut"]),
    ("lamb", ADAM, {"weight_decay": 0.01}, ["ParamOut", "Moment1Out", "Moment2Out"]),
    ("momentum", _state("Velocity"), {"mu": 0.9}, ["ParamOut", "VelocityOut"]),
    ("rmsprop", _state("MeanSquare", "Moment"), {}, ["ParamOut", "MomentOut", "MeanSquareOut"]),
    ("sgd", {}, {}, ["ParamOut"]),
]


@pytest.mark.parametrize(("op", "state", "attrs", "outputs"), OPTIMIZERS, ids=lambda v: v if isinstance(v, str) else "")
def test_optimizers_take_sparse_gradients(op: str, state: Any, attrs: Any, outputs: list[str]) -> None:
    rng = np.random.default_rng(2)
    gradient = oprack.SelectedRows([3, 0, 3, 1], rng.random((4, 2), np.float32), 5)
    values = {"Param": rng.random((5, 2), np.float32), "Grad": gradient, "LearningRate": np.array([0.1], np.float32)}
    for output in outputs:
        want, got = (_run(e, op, values | state, output, attrs) for e in (oprack.Executor(), strict_executor()))
        np.testing.assert_allclose(got.array, want.array, rtol=1e-6, err_msg=output)
