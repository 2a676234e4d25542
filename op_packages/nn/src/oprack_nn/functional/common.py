"""linear, embedding, dropout, norms and similarities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oprack import functional as F
from oprack.errors import InvalidArgumentError

if TYPE_CHECKING:
    from oprack import Tensor

__all__ = [
    "cosine_similarity",
    "dropout",
    "dropout2d",
    "dropout3d",
    "embedding",
    "label_smooth",
    "layer_norm",
    "linear",
    "normalize",
    "scaled_dot_product_attention",
]

_MODES = {"upscale_in_train": "upscale_in_train", "downscale_in_infer": "downgrade_in_infer"}


def lod_of(x: Tensor, found: Tensor) -> Tensor:
    """A result with the LoD of x where the ops that made it dropped it: op lod_reset.

    As in Paddle, many ops drop LoD though rows stay rows, conv2d and matmul_v2 among them: saved programs rely on it.
    Functions and modules, which are written for eager calls, pass the sequences on.

    Args:
        x: The input; arrays have no LoD.
        found: The result; its row i is made of row i of x.

    Returns:
        The result, under the LoD of x where it has none.
    """
    return F.lod_reset(found, x) if getattr(x, "lod_level", 0) and not found.lod_level else found


def is_rows(x: Tensor, rank: int = 2) -> bool:
    """Whether x has the rows of sequences, one after the other, in place of a batch and a length dim.

    Args:
        x: A tensor, or an array, which has no LoD.
        rank: The rank of rows [N, ...]; a batch has one more.

    Returns:
        Whether it has LoD and that rank.
    """
    return bool(getattr(x, "lod_level", 0)) and x.ndim == rank


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Applies an affine map to the last dim: $$x W + b$$, op matmul_v2, and of sequences mul, which keeps their LoD.

    Args:
        x: Tensor [..., in].
        weight: Matrix [in, out], as in Paddle; PyTorch has its transpose.
        bias: [out]; None: no bias.

    Returns:
        Tensor [..., out]; its rows are the sequences of x, where x has LoD.
    """
    # As in Paddle, matmul_v2 drops LoD; arrays have none
    y = F.mul(x, weight, x_num_col_dims=x.ndim - 1) if getattr(x, "lod_level", 0) else F.matmul_v2(x, weight)
    return y if bias is None else F.elementwise_add(y, bias)


def embedding(x: Tensor, weight: Tensor, padding_idx: int | None = None, sparse: bool = False) -> Tensor:
    """Looks up rows of a table by integer.

    Args:
        x: Row numbers, int32 or int64, any shape.
        weight: The table [rows, size].
        padding_idx: A row number, negative counting from the end, that reads as zeros and gets no gradient; None: there
            is none.
        sparse: Whether the gradient of weight is SelectedRows of the rows that were read, rather than a dense tensor.

    Returns:
        Tensor [*x.shape, size] of the dtype of weight.
    """
    return F.lookup_table_v2(x, weight, padding_idx=-1 if padding_idx is None else padding_idx, is_sparse=sparse)


def dropout(
    x: Tensor,
    p: float = 0.5,
    axis: int | Sequence[int] | None = None,
    training: bool = True,
    mode: str = "upscale_in_train",
) -> Tensor:
    """Sets elements to 0 at random in training, each with probability p.

    Args:
        x: Tensor of floats, any shape.
        p: Probability of 0, from 0 to 1.
        axis: Dims along which to draw independently; along the others the drawn mask is shared. None: all dims.
        training: Whether to drop; False returns x, scaled as mode says.
        mode: "upscale_in_train" divides the kept elements by 1 - p in training; "downscale_in_infer" instead multiplies
            by 1 - p outside of training.

    Returns:
        Tensor of the shape and dtype of x.

    Raises:
        InvalidArgumentError: mode is neither of the two.
    """
    if mode not in _MODES:
        raise InvalidArgumentError(f"dropout: mode is {mode!r}; expected one of {', '.join(_MODES)}")
    attrs = {"dropout_prob": float(p), "is_test": not training, "dropout_implementation": _MODES[mode]}
    if axis is None:
        return F.dropout(x, **attrs)
    dims = [axis] if isinstance(axis, int) else list(axis)
    return F.dropout_nd(x, axis=[d % x.ndim for d in dims], **attrs)


def dropout2d(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Sets whole channels of images to 0 at random in training, each with probability p.

    Args:
        x: Images [N, C, H, W].
        p: Probability of 0, from 0 to 1; the other channels are divided by 1 - p.
        training: Whether to drop; False returns x.

    Returns:
        Images of the shape and dtype of x.
    """
    return dropout(x, p, [0, 1], training)


def dropout3d(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Sets whole channels of volumes to 0 at random in training, each with probability p.

    Args:
        x: Volumes [N, C, D, H, W].
        p: Probability of 0, from 0 to 1; the other channels are divided by 1 - p.
        training: Whether to drop; False returns x.

    Returns:
        Volumes of the shape and dtype of x.
    """
    return dropout(x, p, [0, 1], training)


def layer_norm(
    x: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    epsilon: float = 1e-5,
) -> Tensor:
    r"""Normalizes over the last dims to mean 0 and variance 1, then scales and shifts.

    $$\frac{x - \bar x}{\sqrt{var + \epsilon}} w + b$$ with the biased variance (Ba et al., 2016).

    Args:
        x: Tensor of floats [..., *normalized_shape].
        normalized_shape: The sizes of the dims over which to normalize; one number: the last dim alone.
        weight: The scale w, as many elements as normalized_shape has; None: 1.
        bias: The shift b, as many elements as normalized_shape has; None: 0.
        epsilon: Added to the variance against division by zero.

    Returns:
        Tensor of the shape and dtype of x.
    """
    rank = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    flat = [v if v is None or v.ndim == 1 else v.reshape([-1]) for v in (weight, bias)]
    return F.layer_norm(x, *flat, begin_norm_axis=x.ndim - rank, epsilon=float(epsilon))


def normalize(x: Tensor, p: float = 2.0, axis: int = 1, epsilon: float = 1e-12) -> Tensor:
    r"""Divides vectors along a dim by their p-norm.

    $$x / \max(\|x\|_p, \epsilon)$$

    Args:
        x: Tensor of floats, any shape.
        p: Order of the norm; math.inf for the largest magnitude.
        axis: The dim along which vectors lie.
        epsilon: The least number by which to divide.

    Returns:
        Tensor of the shape and dtype of x.
    """
    if p == 2.0:
        size = F.sqrt((x * x).sum(axis, keepdim=True))
    elif math.isinf(p):
        size = abs(x).max(axis, keepdim=True)
    else:
        size = (abs(x) ** float(p)).sum(axis, keepdim=True) ** (1.0 / p)
    return x / size.clip(min=epsilon)


def cosine_similarity(x1: Tensor, x2: Tensor, axis: int = 1, eps: float = 1e-8) -> Tensor:
    r"""Computes the cosine of the angle between vectors along a dim.

    $$\frac{x_1 \cdot x_2}{\max(\|x_1\| \|x_2\|, \epsilon)}$$

    Args:
        x1: Tensor of floats.
        x2: Tensor that broadcasts with x1.
        axis: The dim along which vectors lie.
        eps: The least product of norms by which to divide.

    Returns:
        Tensor of the broadcast shape without axis, from -1 to 1.
    """
    sizes, products = (x1 * x1).sum(axis) * (x2 * x2).sum(axis), x1 * x2
    found = products.sum(axis) / F.sqrt(sizes.clip(min=eps * eps))
    return lod_of(products, found) if axis % products.ndim else found


def label_smooth(label: Tensor, prior_dist: Tensor | None = None, epsilon: float = 0.1) -> Tensor:
    r"""Mixes one-hot labels with a prior distribution (Szegedy et al., 2016).

    $$(1 - \epsilon) y + \epsilon \mu$$

    Args:
        label: One-hot labels or probabilities [N, classes], floats.
        prior_dist: The distribution mu, [1, classes]; None: 1 / classes for each class.
        epsilon: The weight of the prior, from 0 to 1.

    Returns:
        Tensor of the shape and dtype of label.
    """
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
    r"""Computes attention of queries to keys and values (Vaswani et al., 2017).

    $$softmax(Q K^T / \sqrt d + mask) V$$ for each head.

    Rows of sequences, [N, heads, d] with LoD, attend within their sequence, without padding: op sequence_attention of
    the pack sequence.

    Args:
        query: Queries [batch, queries, heads, d], or rows [N, heads, d] with LoD.
        key: Keys [batch, keys, heads, d], or rows [M, heads, d] with LoD of as many sequences.
        value: Values [batch, keys, heads, d_v], or rows [M, heads, d_v].
        attn_mask: Broadcast to [batch, heads, queries, keys]: floats are added to the scores; bools say where to look.
            None: everywhere.
        dropout_p: Probability with which an attention weight is dropped in training.
        is_causal: Whether a position attends to itself and those before it alone. In rows of sequences the last query
            of a sequence stands at its last key; of batches, the first query at the first key.
        training: Whether dropout is applied.

    Returns:
        Tensor [batch, queries, heads, d_v], or rows [N, heads, d_v] with the LoD of query.

    Raises:
        InvalidArgumentError: There is a mask for rows of sequences, which have no common length.
    """
    if is_rows(query, 3):
        if attn_mask is not None:
            raise InvalidArgumentError(
                f"scaled_dot_product_attention: query has shape {list(query.shape)} and LoD, and attn_mask has shape "
                f"{list(attn_mask.shape)}; expected no mask, as sequences without padding need none: leave it out, and "
                "say is_causal=True where a position looks at those before it alone"
            )
        settings: dict[str, Any] = {"causal": is_causal, "dropout_p": float(dropout_p), "is_test": not training}
        return F.sequence_attention(query, key, value, **settings)
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
    return lod_of(query, F.transpose2(F.matmul_v2(weights, v), axis=[0, 2, 1, 3]))


_FAR = 1e9  # a score from which nothing is left after softmax
