"""An op in all the ways to write one down, and packs and managers of packs made by tests."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.op import Attr, GradOp, GradOpMaker, InferShapeFacet, Input, OpDef, OpMaker, Output
from oprack.packs import PackManager


def infer(ctx):
    ctx.set_dim("Out", ctx.dim("X"))


class Plain(OpDef, type="plain"):
    """Out = X."""

    X = Input("Any tensor.")
    Out = Output("As X.")
    offset = Attr(0.0, "Added.")
    infer_shape = infer


class PlainMaker(OpMaker):
    """Out = X."""

    X = Input("Any tensor.")
    Out = Output("As X.")


class PlainShape(InferShapeFacet):
    def __call__(self, ctx):
        infer(ctx)


class PlainGrad(GradOpMaker):
    def __call__(self, fwd):
        return GradOp("plain_grad", Out_grad=fwd.output_grad("Out"), X_grad=fwd.input_grad("X"))


@kernel("plain")
def plain(X, *, offset):
    return X + offset


@kernel("plain", place="cuda")
def plain_cuda(X):
    return X.copy()


def manager_of(*packs, **environ):
    return PackManager(packs, environ=environ)
