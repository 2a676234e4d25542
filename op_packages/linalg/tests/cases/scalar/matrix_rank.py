"""Cases of matrix_rank."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import NONE, SINGULAR, floats


def case(name: str, x: np.ndarray, rank: object, tolerance: object = None, **attrs: object) -> OpCase:
    inputs = {"X": x} if tolerance is None else {"X": x, "TolTensor": np.asarray(tolerance, "f4")}
    return OpCase("matrix_rank", inputs, attrs, {"Out": np.array(rank, np.int32)}, name=name)


DIAGONAL = np.diag(floats(-4, 2, 0.5))

CASES = [
    case("singular", SINGULAR, 2),
    case("tall", SINGULAR[:, :1], 1),
    case("tolerance", DIAGONAL, 2, use_default_tol=False, tol=1.0),
    case("tolerances", DIAGONAL, [3, 2, 1, 0], [0.1, 1, 3, 5], use_default_tol=False),
    case("both_tolerances", np.diag(floats(1e8, 2, 0.5)), [1, 1], [1, 3]),
    case("hermitian", DIAGONAL, 2, hermitian=True, use_default_tol=False, tol=1.0),
    case("no_matrix", NONE, np.zeros(0)),
]
