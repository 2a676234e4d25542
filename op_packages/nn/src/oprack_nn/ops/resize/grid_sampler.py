"""grid_sampler and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, GradOpDef, InferShapeContext, OpDef, OpVersion
from oprack.op.sbp import leading


class GridSampler(OpDef, type="grid_sampler"):
    r"""$$Output_{n,c,y,x} = X_{n,c}(Grid_{n,y,x})$$: X interpolated at points in [-1, 1], x first, then y (and z)."""

    X = op.Input("[N, C, H, W] or [N, C, D, H, W].")
    Grid = op.Input("[N, H', W', 2] or [N, D', H', W', 3].")
    Output = op.Output("[N, C, H', W'] or [N, C, D', H', W'].")
    mode = Attr("bilinear", "bilinear (also trilinear, for volumes) or nearest.").in_set(("bilinear", "nearest"))
    padding_mode = Attr("zeros", "What lies outside: zeros, border (the edge) or reflection.").in_set(
        ("zeros", "border", "reflection")
    )
    align_corners = Attr(True, "-1 and 1 are the centres of the corner pixels, not their outer edges.")
    use_cudnn = Attr(True, "Paddle: prefer the cuDNN kernel.", extra=True)
    versions = OpVersion("grid_sampler").checkpoint("New attribute mode.", ("new_attr", "mode", "bilinear"))
    sbp = leading(("X", "Grid"), ("Output",))

    def infer_shape(ctx: InferShapeContext) -> None:
        x = ctx.require_rank("X", 4, 5)
        grid = ctx.require_rank("Grid", len(x))
        ctx.require(
            grid[-1] in (-1, len(x) - 2) and (x[0] == grid[0] or -1 in (x[0], grid[0])),
            f"Grid has shape {list(grid)}; expected [{x[0]}, ..., {len(x) - 2}] for X {list(x)}",
        )
        ctx.set_dim("Output", (*x[:2], *grid[1:-1]))
        ctx.share_lod("X", "Output")


class GridSamplerGrad(GradOpDef, of=GridSampler, reads="X Grid", grads_of="X? Grid?"):
    """X@GRAD collects the weights of the samples; Grid@GRAD is the slope of X there, zero for nearest."""
