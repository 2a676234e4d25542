"""Gradients that records can't check: of symmetric matrices, and through some of an op's outputs alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import Executor, Program, layers, program_guard
from oprack import functional as F
from oprack.autodiff import gradients

X = np.random.default_rng(0).standard_normal((2, 4, 4))


def symmetric(x: Any) -> Any:
    return x + F.transpose(x, axis=[0, 2, 1])


def positive(x: Any) -> Any:
    return F.matmul_v2(x, x, trans_y=True) + oprack.to_tensor(np.eye(4))


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "cholesky": (lambda x: F.cholesky(positive(x)), X),
    "cholesky of the upper triangle": (lambda x: F.cholesky(positive(x), upper=True), X),
    "eigenvalues of eigh": (lambda x: F.eigh(symmetric(x)).eigenvalues, X),
    "projection on an eigenvector": (lambda x: F.square(F.eigh(symmetric(x), UPLO="U").eigenvectors), X),
    "eigvalsh": (lambda x: F.eigvalsh(symmetric(x)).eigenvalues, X),
    "lengths of eigenvalues": (lambda x: F.abs(F.eig(x).eigenvalues), X),
    "lengths in eigenvectors": (lambda x: F.abs(F.eig(x * 2).eigenvectors), X),
    "singular values": (lambda x: F.svd(x, full_matrices=True).s, X[:, :3]),
    "left singular vectors": (lambda x: F.square(F.svd(x, full_matrices=True).u), X[:, :3]),
    "right singular vectors": (lambda x: F.square(F.svd(x, full_matrices=True).vh), X[..., :3]),
    "triangle of qr": (lambda x: F.qr(x).r, X),
    "upper triangle of lu": (lambda x: F.lu_unpack(*F.lu(x)[:2]).u, X),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradient_is_the_slope(name: str) -> None:
    function, x = FUNCTIONS[name]
    assert oprack.gradcheck(function, [x]) == []


@pytest.mark.parametrize("output", ["Eigenvalues", "Eigenvectors"])
def test_gradient_of_eig_of_a_real_matrix_is_real_and_the_slope(output: str) -> None:
    """Lengths alone count: a vector may be turned by any complex number of length 1."""
    program = Program()
    with program_guard(program):
        x = layers.data("x", [4, 4], "float64")
        x.stop_gradient = False
        values, vectors = layers.eig(x)
        weights = layers.data("weights", [4, 4], "float64")
        loss = layers.reduce_sum(layers.abs(values if output == "Eigenvalues" else vectors) * weights)
    (name,) = gradients([loss.name], ["x"], block=program.global_block())
    rng = np.random.default_rng(1)
    feed = {"x": rng.standard_normal((4, 4)), "weights": rng.standard_normal((4, 4))}
    (gradient,) = Executor().run(program, feed, [name])
    assert gradient.dtype == np.float64

    def value(matrix: np.ndarray) -> float:
        values, vectors = np.linalg.eig(matrix)
        return float((np.abs(values if output == "Eigenvalues" else vectors) * feed["weights"]).sum())

    direction = rng.standard_normal((4, 4))
    slope = (value(feed["x"] + 1e-6 * direction) - value(feed["x"] - 1e-6 * direction)) / 2e-6
    assert (gradient * direction).sum() == pytest.approx(slope, rel=1e-5)


def test_a_singular_matrix_is_refused_by_op_and_input() -> None:
    with pytest.raises(oprack.errors.OprackError, match="op inverse: a matrix of Input is singular; expected"):
        F.inverse(oprack.to_tensor(np.ones((2, 3, 3))))
    with pytest.raises(oprack.errors.OprackError, match="op cholesky: a matrix of X is not positive definite"):
        F.cholesky(oprack.to_tensor(-np.eye(2)))
    large = np.triu(np.ones((70, 70)))
    large[3, 3] = 0
    with pytest.raises(oprack.errors.OprackError, match="X has 0 on its diagonal, in row 3"):
        F.triangular_solve(oprack.to_tensor(large), oprack.to_tensor(np.ones((70, 1))))
