"""The optimizer pack against the conformance suite; SelectedRows gradients against dense ones."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from oprack.kernel import Candidate, bind_signature
from oprack.kernel.invoke import call_arrays
from oprack.packs.manager import default_manager
from oprack.tensor import SelectedRows
from oprack.testing import Conformance, collect_cases

ROWS = [4, 1, 4]
"""Rows of the gradients here: not sorted, and one of them twice."""


def _state(seed=0):
    rng = np.random.default_rng(seed)
    table = {name: rng.random((6, 3)) for name in ("Param", "Moment1", "Moment2", "Moment", "Velocity", "MeanSquare")}
    one = {"LearningRate": np.array([0.1]), "Beta1Pow": np.array([0.81]), "Beta2Pow": np.array([0.99])}
    return table | one, SelectedRows(ROWS, rng.standard_normal((3, 3)), 6)


def _run(op, names, grad, attrs):
    """Outputs by slot of the pack's kernel for this gradient, called without the framework."""
    state, _ = _state()
    info = default_manager().op_info(op)
    sparse = isinstance(grad, SelectedRows)
    own = [k for k in default_manager().kernel_map(op, "cpu") if k.library == "plain"]
    spec = next(k for k in own if ("rows" in k.function.__name__) == sparse)
    candidate = Candidate(spec, bind_signature(spec.function, info.proto))
    inputs = {n: state[n] for n in names} | {"Grad": grad}
    found = call_arrays(op, candidate, inputs, SimpleNamespace(attrs=info.checker.check(attrs)))
    found = found if isinstance(found, tuple) else (found,)
    return dict(zip(info.proto.outputs, found, strict=False))


ADAM = ("Param", "LearningRate", "Moment1", "Moment2", "Beta1Pow", "Beta2Pow")
AS_DENSE = [
    ("sgd", ("Param", "LearningRate"), {}),
    ("momentum", ("Param", "Velocity", "LearningRate"), {"mu": 0.9, "use_nesterov": True}),
    ("adagrad", ("Param", "Moment", "LearningRate"), {}),
    ("rmsprop", ("Param", "MeanSquare", "Moment", "LearningRate"), {"momentum": 0.5}),
    ("adam", ADAM, {}),
    ("adamw", ADAM, {"with_decay": True, "coeff": 0.1}),
    ("lamb", ADAM, {"weight_decay": 0.1}),
]


@pytest.mark.parametrize(("op", "names", "attrs"), AS_DENSE, ids=[op for op, _, _ in AS_DENSE])
def test_rows_count_as_a_dense_gradient(op, names, attrs):
    """Rows listed twice are added, rows not listed have a gradient of 0."""
    _, grad = _state()
    sparse, dense = _run(op, names, grad, attrs), _run(op, names, grad.to_dense(), attrs)
    assert sparse.keys() == dense.keys()
    for slot, value in dense.items():
        if value is not None:
            np.testing.assert_allclose(sparse[slot], value, rtol=1e-12, err_msg=slot)


def test_lazy_adam_leaves_other_rows_alone():
    state, grad = _state()
    lazy = _run("adam", ADAM, grad, {"lazy_mode": True})
    full = _run("adam", ADAM, grad, {})
    for slot in ("Param", "Moment1", "Moment2"):
        new, old = lazy[slot + "Out"], state[slot]
        np.testing.assert_array_equal(new[[0, 2, 3, 5]], old[[0, 2, 3, 5]])
        np.testing.assert_allclose(new[[1, 4]], full[slot + "Out"][[1, 4]], rtol=1e-12)


class TestOptimizer(Conformance):
    pack = "optimizer"
    case_files = Path(__file__).parents[3] / "tests" / "data" / "cases"
    cases = collect_cases(Path(__file__).parent / "cases")
