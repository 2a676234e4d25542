"""What definitions of update rules share: shapes, kinds, and the slots of mixed precision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad

PARAM = Input("Parameter.")
GRAD = Input("Gradient: shape of Param; a SelectedRows holds some rows of it.")
DENSE_GRAD = Input("Gradient, shape of Param.")
LEARNING_RATE = Input("One element.")
MASTER = Input("float32 copy of a 16-bit Param.", dispensable=True)
PARAM_OUT = Output("Updated Param, usually the same variable.")
MASTER_OUT = Output("Updated MasterParam.", dispensable=True)
MULTI_PRECISION = Attr(False, "Update MasterParam and round it to Param.")
SKIP = Input("One bool; true leaves everything as it is.", dispensable=True)


def infer_like(pairs: Mapping[str, str]) -> Callable[..., Any]:
    """infer_shape of a rule that updates the inputs `pairs[x]` from x; Grad must fit Param."""

    def infer_shape(ctx: InferShapeContext) -> None:
        for i in range(ctx.input_count("Param")):
            param, grad = ctx.dim("Param", i), ctx.dim("Grad", i)
            fits = len(param) == len(grad) and all(a == b or -1 in (a, b) for a, b in zip(param, grad, strict=True))
            ctx.require(fits, f"Param has shape {list(param)} and Grad {list(grad)}; expected equal shapes")
        for x, out in pairs.items():
            for i in range(min(ctx.input_count(x), ctx.output_count(out))):
                ctx.set_dim(out, ctx.dim(x, i), i)

    return infer_shape


def infer_dtypes(pairs: Mapping[str, str]) -> Callable[..., Any]:
    """infer_var_type of such a rule: each output is like its input."""

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for x, out in pairs.items():
            for i in range(min(ctx.input_count(x), ctx.output_count(out))):
                ctx.set_dtype(out, ctx.dtype(x, i), i)
                ctx.set_kind(out, ctx.kind(x, i), i)

    return infer_var_type


class UpdateRule(OpDef):
    """Base of rules that update Param and its state: `inplace` says which output is the update of which input.

    Shapes, dtypes and containers of the outputs follow from it, unless a definition has rules of its own. Nothing flows
    back through an update, and kernels compute in the dtype of Param.
    """

    make_grad = empty_grad
    expected_kernel_type = dtype_of("Param")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "inplace" in vars(cls):
            for name, rule in (("infer_shape", infer_like), ("infer_var_type", infer_dtypes)):
                if name not in vars(cls):
                    setattr(cls, name, rule(cls.inplace))
        super().__init_subclass__(**kwargs)
