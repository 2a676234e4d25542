"""3x3 convolutions with many channels by Winograd's algorithm: a quarter of the products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from oprack.ir import Graph, Match, NewVar, OpNode, PatternBuilder, fusion
from oprack.op.families import resolve_pads
from oprack_nn.ops.precision import BFLOAT16, NAME
from oprack_nn.passes.post_ops import with_extras

from oprack_onednn.kernels.winograd_conv2d import NativeTransforms, pays
from oprack_onednn.ops.winograd_conv2d import RESULTS, TILE, matrices

# Without the compiled transforms: fewer channels, and they cost what the products save; fewer tiles, and reading the
# larger filter does. With them a vector of channels is enough.
_CHANNELS, _TILES = 64, 9
_LEAST_CHANNELS = 16
# Networks that take images of any size are made for large ones; with more channels than this images are small.
_MOST_CHANNELS = 256
_OPEN = 40  # rows and columns that such an image is taken to have


def _suits(op: OpNode) -> bool:
    """Whether a convolution moves 3x3 windows pixel by pixel; in bfloat16 the products that this saves cost less."""
    w = op.inputs["Filter"][0].shape
    if op.attr(NAME) == BFLOAT16 or w is None or len(w) != 4 or tuple(w[2:]) != (3, 3) or min(w[:2]) < _LEAST_CHANNELS:
        return False
    if op.attr("groups", 1) != 1 or op.attr("data_format", "NCHW") == "NHWC":
        return False
    return all(v == 1 for name in ("strides", "dilations") for v in op.attr(name, [1, 1]))


def _is_faster(post_ops: tuple[str, ...], n: int, c: int, k: int, high: int, wide: int) -> bool:
    """Whether n images of c channels are better computed so into results [k, high, wide]."""
    if NativeTransforms.serves(min(c, k), post_ops):
        return pays(n, c, k, high, wide)
    return min(c, k) >= _CHANNELS and -(-high // RESULTS) * -(-wide // RESULTS) >= _TILES


@fusion("onednn_winograd")
def winograd(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    """conv(x, w)  ->  onednn_winograd_conv2d(x, G w G^T), where x is large, or its size not known"""
    convs = with_extras(p, "x", _suits)

    def build(m: Match) -> NewVar | None:
        op, x, w = m.root, m["x"].expected_shape, m.value("w")
        if x is None or len(x) != 4 or w.dtype != np.float32:
            return None
        sizes = resolve_pads(m.attr(op, "padding_algorithm"), m.attr(op, "paddings"), x[2:], (3, 3), (1, 1))
        paddings = [side for pair in sizes for side in pair]
        is_open = min(x[2:]) < 0
        if min(paddings) < 0 or (is_open and max(w.shape[:2]) > _MOST_CHANNELS):
            return None
        results = [_OPEN if is_open else s + a + b - 2 for s, (a, b) in zip(x[2:], sizes, strict=True)]
        if not _is_faster(tuple(op.attr("post_ops", [])), max(x[0], 1), *w.shape[1::-1], *results):
            return None
        _, g, _ = matrices()
        # one product of matrices: einsum takes ten times as long, which was half of the time that a ResNet took to load
        k, c = w.shape[:2]
        tiles = np.kron(g, g) @ w.transpose(2, 3, 1, 0).reshape(-1, c * k).astype(np.float64)
        u = m.new_param(tiles.reshape(TILE * TILE, c, k), like="w")
        attrs = {"paddings": paddings, "post_ops": op.attr("post_ops", [])}
        more: dict[str, Any] = {slot: op.input(slot) for slot in ("Bias", "Residual")}
        return m.op("onednn_winograd_conv2d", Input=m["x"], Filter=u, **more, attrs=attrs)

    return p.either(*convs), build


def fuse_winograd(graph: Graph) -> int:
    """Large convolutions by Winograd's algorithm."""
    return winograd(graph)
