"""multi_dot and its gradient."""

from __future__ import annotations

from functools import reduce

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output

from oprack_math.ops.matmul._family import product_dims


class MultiDot(OpDef, type="multi_dot"):
    r"""$$Out = X_1 X_2 \cdots X_k$$ in the order that takes the fewest multiplications."""

    X = Input("k matrices; the first and the last one may be vectors, a row and a column.", duplicable=True)
    Out = Output("[rows of the first, columns of the last], without those of vectors; no LoD.")

    def infer_shape(ctx: InferShapeContext) -> None:
        shapes = ctx.dims("X")
        wrong = [s for i, s in enumerate(shapes) if len(s) not in ((1, 2) if i in (0, len(shapes) - 1) else (2,))]
        ctx.require(
            len(shapes) > 1 and not wrong,
            f"X has tensors of shapes {[list(s) for s in shapes]}; expected two matrices or more, where the first and "
            "the last one may be vectors",
        )
        full = [(1, *s) if not i and len(s) == 1 else s for i, s in enumerate(shapes)]
        dims = reduce(lambda x, y: product_dims(ctx, x, y, False, False), full)
        ctx.set_dim("Out", dims[1:] if len(shapes[0]) == 1 else dims)


class MultiDotGrad(GradOpDef, of=MultiDot, reads="X"):
    r"""$$X_i@GRAD = (X_1 \cdots X_{i-1})^T Out@GRAD (X_{i+1} \cdots X_k)^T$$"""
