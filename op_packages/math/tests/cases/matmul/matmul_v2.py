"""Cases of matmul_v2."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import empty, f32, x, y
from .._gradients import draw

M, N, MDOUT, MDDX, MDDY = draw(4, 2, 3), draw(3, 5), draw(4, 2, 5), draw(4, 2, 3, seed=1), draw(3, 5, seed=1)
MA, MB, MC = draw(4, 2, 3, seed=2), draw(3, 5, seed=2), draw(4, 2, 5, seed=1)


def turned(array):
    return array.swapaxes(-1, -2)


CASES = [
    OpCase(
        "matmul_v2",
        {"X": y, "Y": x},
        outputs={"Out": np.einsum("k,bkn->bn", y, x)},
        grads=["X", "Y"],
        name="vector_batch",
    ),
    OpCase("matmul_v2", {"X": x, "Y": x[0, 0]}, outputs={"Out": x @ x[0, 0]}, grads=["X", "Y"], name="batch_vector"),
    OpCase(
        "matmul_v2",
        {"X": x[:, None], "Y": x},
        {"trans_y": True},
        {"Out": x[:, None] @ x.swapaxes(1, 2)},
        ["X", "Y"],
        name="batch_broadcast",
    ),
    OpCase(
        "matmul_v2",
        {"X": empty, "Y": np.ones((3, 2), f32)},
        outputs={"Out": np.zeros((0, 2), f32)},
        grads=["X", "Y"],
        name="empty",
    ),
    OpCase(
        "matmul_v2_grad_grad",
        {"X": M, "Y": N, "grad_out": MDOUT, "grad_x@GRAD": MDDX, "grad_y@GRAD": MDDY},
        outputs={
            "grad_out@GRAD": MDDX @ N + M @ MDDY,
            "X@GRAD": MDOUT @ MDDY.T,
            "Y@GRAD": (turned(MDDX) @ MDOUT).sum(0),
        },
        grads=["X", "Y", "grad_out", "grad_x@GRAD", "grad_y@GRAD"],
    ),
    OpCase(
        "matmul_v2_grad_grad",
        {"X": draw(3, 2), "Y": draw(4, 5, 3), "grad_out": draw(4, 2, 5), "grad_x@GRAD": draw(3, 2, seed=1)},
        {"trans_x": True, "trans_y": True},
        grads=["X", "Y", "grad_out", "grad_x@GRAD"],
        name="transposed",
    ),
    OpCase(
        "matmul_v2_triple_grad",
        {
            "X": M,
            "Y": N,
            "grad_out": MDOUT,
            "grad_grad_x": MDDX,
            "grad_grad_y": MDDY,
            "grad_x@GRAD": MA,
            "grad_y@GRAD": MB,
            "grad_grad_out@GRAD": MC,
        },
        outputs={
            "X@GRAD": MC @ MDDY.T,
            "Y@GRAD": (turned(MDDX) @ MC).sum(0),
            "grad_out@GRAD": MA @ MDDY + MDDX @ MB,
            "grad_grad_x@GRAD": MC @ N.T + MDOUT @ MB.T,
            "grad_grad_y@GRAD": (turned(M) @ MC + turned(MA) @ MDOUT).sum(0),
        },
    ),
]
