"""onnxruntime_engine: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad
from oprack.types import DTYPE_NAMES, AttrType


class OnnxRuntimeEngine(OpDef, type="onnxruntime_engine"):
    r"""$$Ys = f(Xs)$$ with the function $f$ that a model of ONNX is; made by a pass, for inference."""

    Xs = Input("What the model reads, in its order.", duplicable=True)
    Params = Input("Its large parameters, which it reads behind Xs.", duplicable=True, dispensable=True)
    Model = Input("The bytes of the model, uint8 [size].")
    Ys = Output("What it gives, in its order.", duplicable=True)
    dtypes = Attr([], "The dtype of each of Ys, by its number.", type=AttrType.INTS)
    dtypes = dtypes.each(lambda n: n in DTYPE_NAMES, "the number of a dtype")
    shapes = Attr([], "Of each of Ys the number of dims, and these; -1: a run knows.", type=AttrType.INTS)
    shapes = shapes.each(lambda n: n >= -1, ">= -1")
    lods = Attr([], "Of each of Ys which of Xs has its LoD; -1: it has none.", type=AttrType.INTS)
    lods = lods.each(lambda n: n >= -1, ">= -1")
    expected_kernel_type = dtype_of("Model")
    make_grad = empty_grad

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for i, dtype in enumerate(ctx.attrs["dtypes"][: ctx.output_count("Ys")]):
            ctx.set_dtype("Ys", DTYPE_NAMES[dtype], i)

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_rank("Model", 1)
        count, shapes, lods = ctx.output_count("Ys"), list(ctx.attr("shapes")), ctx.attr("lods")
        ctx.require(
            len(ctx.attr("dtypes")) == len(lods) == count and max(lods, default=-1) < ctx.input_count("Xs"),
            f"dtypes and lods must have a number for each of {count} Ys, and lods less than the "
            f"{ctx.input_count('Xs')} Xs; got {ctx.attr('dtypes')} and {lods}",
        )
        for i, lod in enumerate(lods):
            rank = shapes[0] if shapes else -1
            ctx.require(0 <= rank < len(shapes), f"shapes must have a rank and as many dims for each of {count} Ys")
            ctx.set_dim("Ys", shapes[1 : rank + 1], i)
            del shapes[: rank + 1]
            if lod >= 0:
                ctx.share_lod("Xs", "Ys", lod, i)
