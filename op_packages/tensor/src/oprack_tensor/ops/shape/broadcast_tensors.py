"""broadcast_tensors and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of


class BroadcastTensors(OpDef, type="broadcast_tensors"):
    r"""$$Out[k]_i = X[k]_{i \text{, 0 where the dim is 1}}$$ all tensors in the one shape to which they broadcast."""

    X = Input("Tensors whose shapes broadcast.", duplicable=True)
    Out = Output("As many tensors of one shape.", duplicable=True)

    def infer_shape(ctx: InferShapeContext) -> None:
        shapes = ctx.dims("X")
        rank = max(map(len, shapes))
        out = []
        for sizes in zip(*((1,) * (rank - len(s)) + tuple(s) for s in shapes), strict=True):
            wide = {n for n in sizes if n != 1}
            ctx.require(
                len(wide - {-1}) <= 1,
                f"X has tensors of shapes {[list(s) for s in shapes]}; expected dims that are equal or 1, the last "
                "ones aligned",
            )
            out.append(max(wide, default=1))
        ctx.set_dims("Out", [out] * len(shapes))


class BroadcastTensorsGrad(GradOpDef, of=BroadcastTensors, shape_of="X"):
    """X@GRAD[k] sums the gradient of Out[k] over the dims along which X[k] was repeated."""

    expected_kernel_type = dtype_of("Out@GRAD")
