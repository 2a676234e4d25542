"""Tests for finite numbers, infinities and NaN."""

from __future__ import annotations

from oprack.op import Input, OpDef, Output, empty_grad


class _Test(OpDef):
    """An element-wise test; Out is bool."""

    X = Input("Tensor or SelectedRows of any shape.")
    Out = Output("bool, shape of X; it has no LoD.")
    make_grad = empty_grad

    def infer_shape(ctx):
        ctx.set_dim("Out", ctx.dim("X"))

    def infer_var_type(ctx):
        ctx.set_kind("Out", ctx.kind("X"))
        ctx.set_dtype("Out", "bool")


class IsfiniteV2(_Test, type="isfinite_v2"):
    r"""$$Out = [X \text{ is neither infinite nor NaN}]$$"""


class IsinfV2(_Test, type="isinf_v2"):
    r"""$$Out = [X = \pm\infty]$$"""


class IsnanV2(_Test, type="isnan_v2"):
    r"""$$Out = [X \text{ is NaN}]$$"""
