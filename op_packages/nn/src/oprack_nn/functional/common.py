"""linear, embedding, dropout, norms and similarities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from oprack import functional as F
from oprack.errors import InvalidArgumentError

if TYPE_CHECKING:
    from oprack import Tensor

_MODES = {"upscale_in_train": "upscale_in_train", "downscale_in_infer": "downgrade_in_infer"}


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """$$x W + b$$ over the last dim; weight: [in, out], PyTorch's transposed."""
    y = F.matmul_v2(x, weight)
    return y if bias is None else F.elementwise_add(y, bias)


def embedding(x: Tensor, weight: Tensor, padding_idx: int | None = None, sparse: bool = False) -> Tensor:
    """Rows of weight by number; padding_idx: a number whose row counts as zeros; sparse: SelectedRows as gradient."""
    return F.lookup_table_v2(x, weight, padding_idx=-1 if padding_idx is None else padding_idx, is_sparse=sparse)


def dropout(
    x: Tensor,
    p: float = 0.5,
    axis: int | Sequence[int] | None = None,
    training: bool = True,
    mode: str = "upscale_in_train",
) -> Tensor:
    """In training each element is 0 with probability p, and the others are divided by 1 - p.

    axis: the dims along which to draw; the others share what was drawn. mode: "downscale_in_infer" multiplies by 1 - p
    outside of training instead.
    """
    if mode not in _MODES:
        raise InvalidArgumentError(f"dropout: mode is {mode!r}; expected one of {', '.join(_MODES)}")
    attrs = {"dropout_prob": float(p), "is_test": not training, "dropout_implementation": _MODES[mode]}
    if axis is None:
        return F.dropout(x, **attrs)
    dims = [axis] if isinstance(axis, int) else list(axis)
    return F.dropout_nd(x, axis=[d % x.ndim for d in dims], **attrs)


def dropout2d(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Dropout of whole channels of images [N, C, H, W]."""
    return dropout(x, p, [0, 1], training)


def dropout3d(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Dropout of whole channels of volumes [N, C, D, H, W]."""
    return dropout(x, p, [0, 1], training)


def layer_norm(
    x: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    epsilon: float = 1e-5,
) -> Tensor:
    r"""$$\frac{x - \bar x}{\sqrt{var + \epsilon}} w + b$$ over the last dims, of sizes normalized_shape."""
    rank = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    flat = [v if v is None or v.ndim == 1 else v.reshape([-1]) for v in (weight, bias)]
    return F.layer_norm(x, *flat, begin_norm_axis=x.ndim - rank, epsilon=float(epsilon))


def normalize(x: Tensor, p: float = 2.0, axis: int = 1, epsilon: float = 1e-12) -> Tensor:
    r"""$$x / \max(\|x\|_p, \epsilon)$$ along a dim."""
    if p == 2.0:
        size = F.sqrt((x * x).sum(axis, keepdim=True))
    elif math.isinf(p):
        size = abs(x).max(axis, keepdim=True)
    else:
        size = (abs(x) ** float(p)).sum(axis, keepdim=True) ** (1.0 / p)
    return x / size.clip(min=epsilon)


def cosine_similarity(x1: Tensor, x2: Tensor, axis: int = 1, eps: float = 1e-8) -> Tensor:
    r"""$$\frac{x_1 \cdot x_2}{\max(\|x_1\| \|x_2\|, \epsilon)}$$ along a dim."""
    sizes = (x1 * x1).sum(axis) * (x2 * x2).sum(axis)
    return (x1 * x2).sum(axis) / F.sqrt(sizes.clip(min=eps * eps))


def label_smooth(label: Tensor, prior_dist: Tensor | None = None, epsilon: float = 0.1) -> Tensor:
    r"""$$(1 - \epsilon) y + \epsilon \mu$$ of one-hot labels; mu: a distribution [1, classes], default the even one."""
    return F.label_smooth(label, prior_dist, epsilon=float(epsilon))


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    training: bool = True,
) -> Tensor:
    r"""$$softmax(Q K^T / \sqrt d + mask) V$$ of [batch, length, heads, d].

    attn_mask: added to the scores, or bool with True where to look; is_causal: each place looks at those before it.
    """
    q, k, v = (F.transpose2(t, axis=[0, 2, 1, 3]) for t in (query, key, value))
    scores = F.matmul_v2(q, k, trans_y=True) * (1.0 / math.sqrt(query.shape[-1]))
    if is_causal:
        blocked = F.tril_triu(F.fill_any_like(scores, value=1.0), diagonal=1, lower=False)
        scores = scores - blocked * _FAR
    if attn_mask is not None:
        if attn_mask.dtype == "bool":
            attn_mask = (attn_mask.astype(scores.dtype) - 1.0) * _FAR
        scores = scores + attn_mask
    weights = F.softmax(scores, axis=-1)
    if dropout_p:
        weights = dropout(weights, dropout_p, training=training)
    return F.transpose2(F.matmul_v2(weights, v), axis=[0, 2, 1, 3])


_FAR = 1e9  # a score from which nothing is left after softmax
