"""onednn_winograd_conv2d: all of the op but its kernels, and the matrices of the algorithm.

Winograd's F(4x4, 3x3) computes 4 x 4 results of a 3 x 3 convolution with 36 products per channel instead of 144. Both
the 6 x 6 pixels that these results see and the filter are taken for polynomials, whose product is known by its values
at six points. The points 0, 5/8, -5/8, 3/2, -3/2 and infinity keep rounding errors near those of the convolution
itself; the usual 0, 1, -1, 2, -2 are three times worse.
"""

from __future__ import annotations

from functools import cache

from oprack import op
from oprack.op import Attr, InferShapeContext, OpDef, empty_grad
from oprack.types import AttrType
from oprack_nn.ops.post_ops import post_ops_attr, require_residual

RESULTS, TAPS = 4, 3
TILE = RESULTS + TAPS - 1
_POINTS = (0.0, 5 / 8, -5 / 8, 3 / 2, -3 / 2)


@cache
def matrices() -> tuple[list[list[float]], ...]:
    """(A^T [4, 6], G [6, 3], B^T [6, 6]): results = A^T ((G filter) * (B^T pixels)) along one dim.

    Sums and products of the points have few bits, so nothing is rounded but the quotients.
    """

    def powers(count: int) -> list[list[float]]:
        return [*([p**j for j in range(count)] for p in _POINTS), [0.0] * (count - 1) + [1.0]]

    def polynomial(roots: list[float]) -> list[float]:
        """Coefficients of the product of (x - root), the constant one first."""
        found = [1.0]
        for root in roots:
            found = [a - root * b for a, b in zip([0.0, *found], [*found, 0.0], strict=True)]
        return found

    others = [[q for q in _POINTS if q != p] for p in _POINTS]
    scales = []
    for p, rest in zip(_POINTS, others, strict=True):
        scale = 1.0
        for q in rest:
            scale *= p - q
        scales.append(scale)
    evaluate = [list(column) for column in zip(*powers(RESULTS), strict=True)]
    weigh = [[v / s for v in row] for row, s in zip(powers(TAPS), [*scales, 1.0], strict=True)]
    interpolate = [*([*polynomial(rest), 0.0] for rest in others), polynomial(list(_POINTS))]
    return evaluate, weigh, interpolate


class OneDNNWinogradConv2D(OpDef, type="onednn_winograd_conv2d"):
    r"""$$Output = p_n(... p_1(conv2d(Input, w) + Bias))$$ for w [K, C, 3, 3]; the filter is given as it is multiplied.

    $$Filter[6 i + j, c, k] = \sum_{a, b} G_{ia} G_{jb} w_{kcab}$$ p are the post-ops. Made by passes, for inference.
    """

    Input = op.Input("Images [N, C, H, W].")
    Filter = op.Input("[36, C, K].")
    Bias = op.Input("[K].", dispensable=True)
    Residual = op.Input('What the post-op "residual" adds; the shape of Output.', dispensable=True)
    Output = op.Output("Feature maps [N, K, H', W'].")
    paddings = Attr([0, 0, 0, 0], "Zeros above, below, left and right.", type=AttrType.INTS).size(4)
    post_ops = post_ops_attr()
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        n, c, h, w = ctx.require_rank("Input", 4)
        tile, inputs, k = ctx.require_rank("Filter", 3)
        ctx.require(
            tile == TILE * TILE and (c < 0 or c == inputs),
            f"Filter [36, C, K] fits Input with {c} channels; got {[tile, inputs, k]}",
        )
        top, bottom, left, right = ctx.attr("paddings")
        sizes = ((h, top + bottom), (w, left + right))
        out = (n, k, *(-1 if size < 0 else size + pads + 1 - TAPS for size, pads in sizes))
        ctx.require_dims("Bias", [k])
        require_residual(ctx)
        ctx.require_dims("Residual", out)
        ctx.set_dim("Output", out)
