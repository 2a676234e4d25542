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
from oprack.testing import Conformance, OpCase

ROWS = [4, 1, 4]
"""Rows of the gradients here: not sorted, and one of them twice."""


def _state(seed=0):
    rng = np.random.default_rng(seed)
    table = {name: rng.random((6, 3)) for name in ("Param", "Moment1", "Moment2", "Moment", "Velocity", "MeanSquare")}
    one = {"LearningRate": np.array([0.1]), "Beta1Pow": np.array([0.81]), "Beta2Pow": np.array([0.99])}
    return table | one, SelectedRows(ROWS, rng.standard_normal((3, 3)), 6)


def _run(op, names, grad, attrs):
    """Outputs by slot of the kernel for this gradient, called without the framework."""
    state, _ = _state()
    info = default_manager().op_info(op)
    sparse = isinstance(grad, SelectedRows)
    spec = next(k for k in default_manager().kernel_map(op, "cpu") if ("rows" in k.function.__name__) == sparse)
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


def _cases():
    """What the case files do not show: tables of rows, and attributes that Paddle's CPU kernels ignore."""
    table = SelectedRows([2, 5, 1], np.arange(6.0).reshape(3, 2), 8)
    grad = SelectedRows([5, 1, 5], np.ones((3, 2)), 8)
    updated = SelectedRows([2, 5, 1], np.array([[0.0, 1.0], [1.0, 2.0], [3.5, 4.5]]), 8)
    rate = np.array([0.5])
    yield OpCase(
        "sgd", {"Param": table, "LearningRate": rate, "Grad": grad}, {}, {"ParamOut": updated}, name="rows of rows"
    )
    p, g, v = np.array([1.0, -2.0]), np.array([4.0, 2.0]), np.array([1.0, 1.0])
    yield OpCase(
        "momentum",
        {"Param": p, "Grad": g, "Velocity": v, "LearningRate": rate},
        {"mu": 0.5, "rescale_grad": 0.5},
        {"ParamOut": p - 0.5 * (0.5 * v + 0.5 * g), "VelocityOut": 0.5 * v + 0.5 * g},
        name="rescaled",
    )
    moments = {"Moment1": np.zeros(2), "Moment2": np.zeros(2)}
    powers = {"Beta1Pow": np.array([0.9]), "Beta2Pow": np.array([0.999])}
    # the first step of adam moves by the learning rate in the direction of the gradient
    expected = p * (1 - 0.5 * 0.2 * 0.1) - 0.5 * 0.2 * np.sign(g)
    yield OpCase(
        "adamw",
        {"Param": p, "Grad": g, "LearningRate": rate, **moments, **powers},
        {"lr_ratio": 0.2, "coeff": 0.1, "with_decay": True},
        {"ParamOut": expected},
        name="lr_ratio",
    )


class TestOptimizer(Conformance):
    pack = "optimizer"
    case_files = Path(__file__).parents[3] / "tests" / "data" / "cases"
    cases = [*_cases()]
