"""affine_grid and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, GradOpDef, InferShapeContext, OpDef, OpVersion, dtype_of
from oprack.op.sbp import leading
from oprack.types import AttrType


def _sizes(ctx: InferShapeContext, rank: int) -> tuple[int, ...]:
    """The spatial sizes of the output, -1 where they are not known yet."""
    if ctx.has_input("OutputShape"):
        ctx.require_dims("OutputShape", (rank + 2,))
        value = ctx.value("OutputShape")
        if value is None:
            return (-1,) * rank
        sizes = [int(v) for v in value]
    else:
        sizes = list(ctx.attr("output_shape"))
    ctx.require(
        len(sizes) == rank + 2 and all(s >= 0 or not ctx.is_runtime for s in sizes[2:]),
        f"the output's shape is given as {sizes}; expected {rank + 2} sizes, N, C and the {rank} spatial ones, by "
        "output_shape or OutputShape",
    )
    return tuple(sizes[2:])


def _output_dims(ctx: InferShapeContext) -> tuple[int, ...]:
    theta = ctx.require_rank("Theta", 3)
    ctx.require(
        theta[1:] in ((2, 3), (3, 4)) or -1 in theta[1:],
        f"Theta has shape {list(theta)}; expected [N, 2, 3] for images or [N, 3, 4] for volumes",
    )
    rank = _rank(ctx, theta)
    return theta[0], *_sizes(ctx, rank), rank


def _rank(ctx: InferShapeContext, theta: tuple[int, ...]) -> int:
    """2 for images, 3 for volumes: Theta tells, or else how many sizes the output is asked to have."""
    if max(theta[1:]) > 0:
        return theta[1] if theta[1] > 0 else theta[2] - 1
    count = ctx.dim("OutputShape")[0] if ctx.has_input("OutputShape") else len(ctx.attr("output_shape"))
    ctx.require(
        count in (4, 5),
        f"Theta has shape {list(theta)} and the output {count} sizes (-1 = unknown); expected a known size in dim 1 or "
        "2 of Theta, or 4 or 5 sizes of the output",
    )
    return count - 2


class AffineGrid(OpDef, type="affine_grid"):
    r"""$$Output_{n,y,x} = Theta_n (p_x, p_y, 1)^T$$ with p the place of pixel (y, x) in [-1, 1]: $$p_x = \frac{2 x}{W -
    1} - 1$$ with align_corners, else $$p_x = \frac{2 x + 1}{W} - 1$$

    The points at which grid_sampler reads an image that an affine map moves. A dim of one pixel lies at 0.
    """

    Theta = op.Input("[N, 2, 3], or [N, 3, 4] for volumes.")
    OutputShape = op.Input(
        "[N, C, H, W] or [N, C, D, H, W] as a tensor, int32; wins over output_shape.", dispensable=True
    )
    Output = op.Output("[N, H, W, 2] or [N, D, H, W, 3]: x first.")
    output_shape = Attr([], "[N, C, H, W] or [N, C, D, H, W]; N and C are not used.", type=AttrType.INTS)
    align_corners = Attr(True, "-1 and 1 are the centres of the corner pixels, not their outer edges.")
    use_cudnn = Attr(True, "Paddle: prefer the cuDNN kernel.", extra=True)
    expected_kernel_type = dtype_of("Theta")
    versions = OpVersion("affine_grid").checkpoint("New attribute align_corners.", ("new_attr", "align_corners", True))
    sbp = leading(("Theta",), ("Output",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Output", _output_dims(ctx))


class AffineGridGrad(
    GradOpDef,
    of=AffineGrid,
    reads="Theta OutputShape",
    shape_of="Theta",
    grads_of="Theta",
    dims={"Output@GRAD": _output_dims},
):
    r"""$$Theta@GRAD_n = \sum_{y,x} Output@GRAD_{n,y,x} (p_x, p_y, 1)$$"""

    expected_kernel_type = dtype_of("Output@GRAD")
