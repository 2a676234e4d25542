"""polygon_box_transform: all of the op but its kernel."""

from __future__ import annotations

from oprack import op
from oprack.op import InferShapeContext, OpDef, empty_grad
from oprack.op.sbp import leading


class PolygonBoxTransform(OpDef, type="polygon_box_transform"):
    r"""$$Output_{n,c,y,x} = 4 x - Input_{n,c,y,x}$$ for even channels c, $$4 y - Input_{n,c,y,x}$$ for odd ones

    Corners of polygons from their distances to each pixel, at a quarter of the image's size (EAST, Zhou et al., 2017).
    """

    Input = op.Input("Distances [N, numbers of the corners, H, W]: x and y in turn.")
    Output = op.Output("Corners, shape of Input.")
    make_grad = empty_grad
    sbp = leading(("Input",), ("Output",))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank("Input", 4)
        ctx.require(
            dims[1] < 0 or dims[1] % 2 == 0, f"Input has {dims[1]} channels; expected an x and a y for each corner"
        )
        ctx.set_dim("Output", dims)
