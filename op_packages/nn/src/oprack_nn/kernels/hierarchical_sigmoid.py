"""Kernels of hierarchical_sigmoid and its gradient."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import SelectedRows
from oprack.types import FLOATS

_MOST = 40.0


def _paths(
    label: Array, table: Array | None, code: Array | None, num_classes: int, nodes: int, op_type: str
) -> tuple[Array, Array, Array]:
    """(node, turn, whether it is on the path) of each level, [N, depth]."""
    if table is not None and code is not None:
        inside = (table >= 0).cumprod(axis=1).astype(bool)
        node = np.where(inside, table, 0)
        turn = code
    else:
        if label.size and (label.min() < 0 or label.max() >= num_classes):
            raise InvalidArgumentError(
                f"op {op_type}: Label holds {int(label.min())} to {int(label.max())}; expected 0 <= label < "
                f"{num_classes}, num_classes"
            )
        number = label.reshape(-1, 1).astype(np.int64) + num_classes
        level = np.arange((num_classes - 1).bit_length())
        ancestor = number >> (level + 1)
        inside = ancestor > 0
        node = np.where(inside, ancestor - 1, 0)
        turn = (number >> level) & 1
    if node.size and node.max() >= nodes:
        raise InvalidArgumentError(
            f"op {op_type}: the path of a label goes through node {int(node.max())}; expected nodes below {nodes}, the "
            "rows of W"
        )
    return node, turn * inside, inside


@kernel("hierarchical_sigmoid", dtypes=FLOATS)
def hierarchical_sigmoid(
    X: Array,
    W: Array,
    Label: Array,
    PathTable: Array | None = None,
    PathCode: Array | None = None,
    Bias: Array | None = None,
    *,
    num_classes: int,
    ctx: KernelContext,
) -> dict[str, Array]:
    node, turn, inside = _paths(Label, PathTable, PathCode, num_classes, len(W), ctx.op_type)
    z = np.einsum("ndk,nk->nd", W[node], X)
    if Bias is not None:
        z += Bias.reshape(-1)[node]
    z = np.clip(z, -_MOST, _MOST) * inside
    kept = np.maximum(z, 0) + np.log1p(np.exp(-abs(z)))
    loss = (kept - turn * z).sum(axis=1, keepdims=True)
    return {"Out": loss.astype(X.dtype), "PreOut": kept.astype(X.dtype), "W_Out": W.copy()}


@kernel("hierarchical_sigmoid_grad", dtypes=FLOATS)
def hierarchical_sigmoid_grad(
    X: Array,
    W: Array,
    Label: Array,
    PreOut: Array,
    Out_grad: Array,
    PathTable: Array | None = None,
    PathCode: Array | None = None,
    Bias: Array | None = None,
    *,
    num_classes: int,
    is_sparse: bool,
    ctx: KernelContext,
) -> dict[str, Array | SelectedRows]:
    node, turn, inside = _paths(Label, PathTable, PathCode, num_classes, len(W), ctx.op_type)
    if PreOut.shape != node.shape:
        raise InvalidArgumentError(
            f"op {ctx.op_type}: PreOut has shape {list(PreOut.shape)}; expected {list(node.shape)}, what the forward "
            "op gives"
        )
    dz = ((-np.expm1(-PreOut) - turn) * inside * Out_grad).astype(X.dtype)
    grads: dict[str, Array | SelectedRows] = {}
    if ctx.wants("X@GRAD"):
        grads["X@GRAD"] = np.einsum("nd,ndk->nk", dz, W[node])
    if ctx.wants("Bias@GRAD") and Bias is not None:
        sums = np.bincount(node[inside], dz[inside], len(W))
        grads["Bias@GRAD"] = sums.astype(X.dtype).reshape(Bias.shape)
    if ctx.wants("W@GRAD"):
        rows, at = np.unique(node[inside], return_inverse=True)
        values = np.zeros((len(rows), W.shape[1]), W.dtype)
        np.add.at(values, at.reshape(-1), (dz[..., None] * X[:, None])[inside])
        if is_sparse:
            grads["W@GRAD"] = SelectedRows(rows, values, len(W), place=ctx.place, check=False)
        else:
            dense = np.zeros_like(W)
            dense[rows] = values
            grads["W@GRAD"] = dense
    return grads
