"""Functions that Paddle 3 added, against NumPy's formulas."""

from __future__ import annotations

import json
import subprocess
import sys

CODE = """
import json
import numpy as np
import oprack_paddle as paddle

r, T = np.random.default_rng(0), paddle.to_tensor
x, y, m = (r.normal(size=s).astype("float32") for s in ((3, 4), (3, 4), (3, 4)))
b, c = r.normal(size=(2, 3, 4)).astype("float32"), r.normal(size=(2, 4, 5)).astype("float32")
odd = np.float32([1, -np.inf, np.inf, np.nan, -0.0])
silu = lambda v: v / (1 + np.exp(-v))
pairs = {
    "argwhere": (paddle.argwhere(T(x) > 0), np.argwhere(x > 0)),
    "isin": (paddle.isin(T([1, 2, 3]), T([2, 5])), [False, True, False]),
    "isneginf": (paddle.isneginf(T(odd)), np.isneginf(odd)),
    "isposinf": (paddle.isposinf(T(odd)), np.isposinf(odd)),
    "signbit": (paddle.signbit(T(odd)), np.signbit(odd)),
    "msort": (paddle.msort(T(x)), np.sort(x, 0)),
    "ravel": (paddle.ravel(T(x)), x.ravel()),
    "narrow": (paddle.narrow(T(x), 1, -3, 2), x[:, 1:3]),
    "matrix_transpose": (paddle.linalg.matrix_transpose(T(b)), b.swapaxes(1, 2)),
    "baddbmm": (paddle.baddbmm(T(np.ones((2, 3, 5), "float32")), T(b), T(c), 0.5, 2.0), 0.5 + 2 * b @ c),
    "block_diag": (paddle.block_diag([T(x[:2, :1]), T(x[0, :2])]),
                   np.block([[x[:2, :1], np.zeros((2, 2))], [np.zeros((1, 1)), x[:1, :2]]])),
    "sinc": (paddle.sinc(T(x)), np.sinc(x)),
    "masked_scatter": (paddle.masked_scatter(T(x), T(x > 0), T(y)), None),
    "take_along_dim": (paddle.take_along_dim(T(x), T([[0], [1], [2]]), 1), x[[0, 1, 2], [0, 1, 2]][:, None]),
    "reduce_as": (paddle.reduce_as(T(b), T(np.ones((3, 1), "float32"))), b.sum((0, 2))[:, None]),
    "swiglu": (paddle.nn.functional.swiglu(T(x)), silu(x[:, :2]) * x[:, 2:]),
    "rms_norm": (paddle.nn.functional.rms_norm(T(x), [4], T(y[0])),
                 x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * y[0]),
}
placed = x.copy()
placed[x > 0] = y.ravel()[: (x > 0).sum()]
pairs["masked_scatter"] = (pairs["masked_scatter"][0], placed)
wrong = [n for n, (a, e) in pairs.items() if np.shape(a) != np.shape(e) or not np.allclose(np.asarray(a), e, atol=1e-5)]
print(json.dumps(wrong))
"""


def test_functions_of_paddle_3_are_their_formulas() -> None:
    found = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=60)
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout) == []
