"""grid_sampler and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, GradOp, GradOpDef, OpDef, OpVersion


class _Attrs(OpDef):
    mode = Attr("bilinear", "bilinear (also trilinear, for volumes) or nearest.").in_set(("bilinear", "nearest"))
    padding_mode = Attr("zeros", "What lies outside: zeros, border (the edge) or reflection.").in_set(
        ("zeros", "border", "reflection")
    )
    align_corners = Attr(True, "-1 and 1 are the centres of the corner pixels, not their outer edges.")
    use_cudnn = Attr(True, "Paddle: prefer the cuDNN kernel.", extra=True)


class GridSampler(_Attrs, type="grid_sampler"):
    r"""$$Output_{n,c,y,x} = X_{n,c}(Grid_{n,y,x})$$: X interpolated at points in [-1, 1], x first, then y (and z)."""

    X = op.Input("[N, C, H, W] or [N, C, D, H, W].")
    Grid = op.Input("[N, H', W', 2] or [N, D', H', W', 3].")
    Output = op.Output("[N, C, H', W'] or [N, C, D', H', W'].")
    versions = OpVersion("grid_sampler").checkpoint("New attribute mode.", ("new_attr", "mode", "bilinear"))

    def infer_shape(ctx):
        x = ctx.require_rank("X", 4, 5)
        grid = ctx.require_rank("Grid", len(x))
        ctx.require(
            grid[-1] in (-1, len(x) - 2) and (x[0] == grid[0] or -1 in (x[0], grid[0])),
            f"Grid has shape {list(grid)}; expected [{x[0]}, ..., {len(x) - 2}] for X {list(x)}",
        )
        ctx.set_dim("Output", (*x[:2], *grid[1:-1]))
        ctx.share_lod("X", "Output")

    def make_grad(fwd):
        return GradOp(
            "grid_sampler_grad",
            X=fwd.input("X"),
            Grid=fwd.input("Grid"),
            Output_grad=fwd.output_grad("Output"),
            X_grad=fwd.input_grad("X"),
            Grid_grad=fwd.input_grad("Grid"),
            attrs=fwd.attrs,
        )


class GridSamplerGrad(_Attrs, GradOpDef, type="grid_sampler_grad"):
    """X@GRAD collects the weights of the samples; Grid@GRAD is the slope of X there, zero for nearest."""

    X = op.Input("X of the forward op.")
    Grid = op.Input("Grid of the forward op.")
    Output_grad = op.Input("Shape of Output.")
    X_grad = op.Output("Shape of X.", dispensable=True)
    Grid_grad = op.Output("Shape of Grid.", dispensable=True)

    def infer_shape(ctx):
        ctx.set_dim("X@GRAD", ctx.dim("X"))
        ctx.share_lod("X", "X@GRAD")
        ctx.set_dim("Grid@GRAD", ctx.dim("Grid"))
