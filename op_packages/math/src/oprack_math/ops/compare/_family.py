"""What comparisons of two tensors share."""

from __future__ import annotations

from oprack.op import Attr, InferVarTypeContext, OpVersion, empty_grad

from oprack_math.ops._broadcast import Binary


def force_cpu_checkpoint(op_type: str) -> OpVersion:
    """versions of a comparison."""
    return OpVersion(op_type).checkpoint(
        "force_cpu became an attribute of every comparison.", ("modify_attr", "force_cpu", False)
    )


class Compare(Binary):
    """A comparison; Out is bool."""

    force_cpu = Attr(False, "Keep Out in host memory on a GPU run; the scope of oprack decides, so it has no effect.")
    make_grad = empty_grad

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "bool")
