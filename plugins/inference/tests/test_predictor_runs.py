"""A run of a predictor knows nothing of the runs before it, whatever the settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from oprack.inference import Config, Predictor, PredictorPool, create_predictor
from oprack.io import save_inference_model
from oprack.op import InferShapeFacet, Input, OpMaker, Output
from oprack.packs.manager import PackManager
from oprack.program import Program
from oprack.runtime.operator import OperatorBase
from oprack.tensor import LoDTensor, LoDTensorArray, Scope
from oprack.types import VarType

X = np.array([[1, 2], [3, 4], [5, 6]], np.float32)


class Append(OpMaker):
    """Each row of X appended to the array Out, which may hold some already; Sum = the sum of all its elements."""

    X = Input("[n, d].")
    Out = Output("Array of rows.")
    Sum = Output("[1].")


class AppendRule(InferShapeFacet):
    """The shape rule of append_rows."""

    def __call__(self, ctx: Any) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.set_dim("Sum", (1,))


class AppendOp(OperatorBase):
    """append_rows."""

    def run_impl(self, scope: Scope, run: Any) -> None:
        var = scope.find_var(self.output("Out")) or scope.var(self.output("Out"))
        if var.value is None:
            var.value = LoDTensorArray()
        var.value += [LoDTensor(row) for row in self.get_input(scope, self.input("X")).array]
        total = sum(t.array.sum() for t in var.value)
        self.set_output(scope, self.output("Sum"), LoDTensor(np.array([total], np.float32)))


@pytest.fixture
def prefix(build: Callable[..., Program], rack: PackManager, tmp_path: Any) -> Any:
    """sum = the sum of an array that x is appended to; rows = w[ids], scaled by s, which is written afterwards."""
    rack.register_operator("append_rows", Append, AppendRule, AppendOp)
    w = np.ones((3, 1), np.float32)
    program = build(
        {"x": X, "ids": np.array([0, 1]), "w": w, "s": w[0]},
        [
            ("append_rows", {"X": "x"}, {"Out": "array", "Sum": "sum"}),
            ("pick", {"Ids": "ids", "W": "w", "Scale": "s"}, {"Out": "rows"}),
            ("double", {"X": "sum"}, {"Out": "s"}),
        ],
    )
    block = program.global_block()
    block.vars["array"].type = VarType.LOD_TENSOR_ARRAY
    block.vars["w"].shape, block.vars["w"].persistable = w.shape, True
    scope = Scope()
    scope.var("w").set(w)
    save_inference_model(tmp_path / "m", program, ["x", "ids"], ["sum", "rows", "s"], scope)
    return tmp_path / "m"


@pytest.fixture(params=[(ir, memory, many) for ir in (0, 1) for memory in (0, 1) for many in ("one", "clone", "pool")])
def predictors(prefix: Any, request: pytest.FixtureRequest) -> Iterator[list[Predictor]]:
    ir, memory, many = request.param
    config = Config(f"{prefix}.pdmodel", f"{prefix}.pdiparams")
    config.switch_ir_optim(bool(ir))
    config.enable_memory_optim(bool(memory))
    if many == "pool":
        pool = PredictorPool(config, 2)
        yield [pool.retrive(0), pool.retrive(1)]
    else:
        first = create_predictor(config)
        yield [first, first.clone()] if many == "clone" else [first]


def test_runs_start_afresh(predictors: list[Predictor]) -> None:
    for n in (3, 1, 2, 3):
        for predictor in predictors:
            total, rows, scale = predictor.run([X[:n], np.array([0, 1])])  # type: ignore[misc]
            assert total.tolist() == [X[:n].sum()], "the array holds the rows of this run"
            assert rows.tolist() == [[1], [1]], "s is absent where it is read before it is written"
            assert scale.tolist() == [2 * X[:n].sum()]
