"""Ops whose output has the shape of their input."""

from __future__ import annotations

from oprack.op import Input, OpDef, Output, empty_grad
from oprack.op.families import out_like_x


class Like(OpDef):
    """Out has the shape of X."""

    X = Input("Tensor of any shape; the same shape on every rank.")
    Out = Output("Shape and LoD of X.")
    make_grad = empty_grad
    infer_shape = out_like_x
