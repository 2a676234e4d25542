"""Records of what the case files do not reach: broadcasting, products, SelectedRows, tensor arrays."""

from __future__ import annotations

import numpy as np
from oprack.tensor import LoDTensor, LoDTensorArray, SelectedRows
from oprack.testing import OpCase

f32 = np.float32
x = np.arange(24, dtype=f32).reshape(2, 3, 4) / 8 + 0.25
y = np.array([1.5, -2.0, 0.5], f32)
empty = np.zeros((0, 3), f32)
rows = SelectedRows([3, 0, 3], np.array([[1, 4], [9, 16], [3, 12]], f32), 5)
none = SelectedRows([], np.zeros((0, 2), f32), 5)
lod = [[0, 0, 2, 2]]


def _rows(value, dtype=f32):
    return SelectedRows(rows.rows, np.asarray(value, dtype), rows.height)


def _merged(first, second):
    return SelectedRows([0, 3], np.array([first, second], f32), rows.height)


BROADCASTING = [
    OpCase("elementwise_add", {"X": x, "Y": y}, {"axis": 1}, {"Out": x + y[:, None]}, ["X", "Y"], name="axis"),
    OpCase(
        "elementwise_sub", {"X": y, "Y": x}, {"axis": 1}, {"Out": y[:, None] - x}, ["X", "Y"], name="x_of_lower_rank"
    ),
    OpCase(
        "elementwise_mul",
        {"X": x[0], "Y": y[:, None, None]},
        {"axis": 0},
        {"Out": x[0][:, :, None] * y[:, None, None]},
        ["X", "Y"],
        name="y_of_higher_rank",
    ),
    OpCase(
        "elementwise_div",
        {"X": x.swapaxes(1, 2).copy(), "Y": y.reshape(3, 1)},
        {"axis": 2},
        {"Out": x.swapaxes(1, 2) / y},
        ["X", "Y"],
        name="trailing_ones",
    ),
    OpCase("elementwise_add", {"X": f32(2), "Y": f32(3)}, outputs={"Out": f32(5)}, grads=["X", "Y"], name="0d"),
    OpCase("elementwise_add", {"X": empty, "Y": y}, outputs={"Out": empty}, grads=["X", "Y"], name="empty"),
    OpCase(
        "elementwise_add",
        {"X": LoDTensor(x[:, 0], lod), "Y": f32(1)},
        outputs={"Out": LoDTensor(x[:, 0] + 1, lod)},
        name="lod",
    ),
    OpCase("logical_and", {"X": x > 1, "Y": x[0] > 1}, outputs={"Out": (x > 1) & (x[0] > 1)}, name="broadcast"),
    OpCase("less_than", {"X": x, "Y": y}, {"axis": 1}, {"Out": x < y[:, None]}, name="axis"),
]

PRODUCTS = [
    OpCase(
        "matmul",
        {"X": x[0, 0], "Y": y},
        {"transpose_X": True, "transpose_Y": True},
        {"Out": np.outer(x[0, 0], y)},
        ["X", "Y"],
        name="outer",
    ),
    OpCase(
        "matmul",
        {"X": x[0], "Y": np.ones((4, 2), f32)},
        {"head_number": 2},
        {"Out": np.repeat(x[0].reshape(3, 2, 2).sum(-1), 2, -1)},
        name="heads",
    ),
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
        "mul",
        {"X": LoDTensor(x, lod), "Y": x[0].T.copy()},
        {"x_num_col_dims": 2},
        {"Out": LoDTensor(x @ x[0].T, lod)},
        ["X", "Y"],
        name="lod",
    ),
    OpCase(
        "einsum",
        {"Operands": [x[0][:, :3]]},
        {"equation": "ii->i"},
        {"Out": np.diag(x[0]).copy(), "InnerCache": [None]},
        ["Operands"],
        name="diagonal",
    ),
    OpCase(
        "einsum",
        {"Operands": [x, x[0], y]},
        {"equation": "bij,kj,k->bi"},
        {"Out": np.einsum("bij,kj,k->bi", x, x[0], y), "InnerCache": [None] * 3},
        ["Operands"],
        name="three",
    ),
    OpCase(
        "einsum",
        {"Operands": [x, y]},
        {"equation": "...ij,i"},
        {"Out": np.einsum("bij,i->bj", x, y), "InnerCache": [None] * 2},
        ["Operands"],
        name="ellipsis",
    ),
    OpCase("dot", {"X": x[0], "Y": x[1]}, outputs={"Out": (x[0] * x[1]).sum(-1)}, grads=["X", "Y"], name="batch"),
]

SELECTED_ROWS = [
    OpCase(
        "elementwise_mul", {"X": rows, "Y": np.array([2], f32)}, outputs={"Out": _rows(rows.value * 2)}, name="rows"
    ),
    OpCase("sqrt", {"X": rows}, outputs={"Out": _rows(np.sqrt(rows.value))}, name="rows"),
    OpCase("square", {"X": rows}, outputs={"Out": _rows(rows.value**2)}, name="rows"),
    OpCase("scale", {"X": rows}, {"scale": 0.5, "bias": 1.0}, {"Out": _rows(rows.value * 0.5 + 1)}, name="rows"),
    OpCase("clip", {"X": rows}, {"min": 3.0, "max": 10.0}, {"Out": _merged([9, 10], [4, 10])}, name="rows"),
    OpCase("clip_by_norm", {"X": rows}, {"max_norm": 1e3}, {"Out": _merged([9, 16], [4, 16])}, name="rows"),
    OpCase("clip_by_norm", {"X": none}, {"max_norm": 1.0}, {"Out": none}, name="no_rows"),
    OpCase("sum", {"X": [rows, none]}, outputs={"Out": _merged([9, 16], [4, 16])}, name="rows"),
    OpCase("sum", {"X": [rows, np.ones((5, 2), f32)]}, outputs={"Out": rows.to_dense() + 1}, name="rows_and_dense"),
    OpCase("sum", {"X": [np.ones((5, 2), f32), rows]}, outputs={"Out": rows.to_dense() + 1}, name="dense_and_rows"),
    OpCase("sum", {"X": [x, x, x]}, outputs={"Out": 3 * x}, grads=["X"], name="three"),
    OpCase(
        "sum",
        {
            "X": [
                LoDTensorArray([LoDTensor(y), LoDTensor(y)]),
                LoDTensorArray([LoDTensor(y + 1)]),
            ]
        },
        outputs={"Out": LoDTensorArray([LoDTensor(2 * y + 1), LoDTensor(y)])},
        name="arrays",
    ),
]

CASES = BROADCASTING + PRODUCTS + SELECTED_ROWS
