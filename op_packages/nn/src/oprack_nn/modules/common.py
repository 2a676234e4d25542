"""Linear, Embedding, dropout, Flatten and the like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oprack import functional as F
from oprack import initializer
from oprack.nn import Module

from oprack_nn.functional import common as C

if TYPE_CHECKING:
    from oprack import Tensor
    from oprack.layers import ParamAttrLike


class Identity(Module):
    """Returns its input; it accepts any arguments, so that it can stand for another module.

    Args:
        args: Ignored.
        kwargs: Ignored.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return x


class Linear(Module):
    """Applies an affine map to the last dim, x @ weight + bias: ops matmul_v2 (mul for sequences) and elementwise_add.

    x is [..., in_features], the result [..., out_features]; its rows are the sequences of x, where x has LoD.

    Args:
        in_features: Size of the last dim of the input.
        out_features: Size of the last dim of the result.
        weight_attr: Attributes of the parameter weight [in_features, out_features].
        bias_attr: Attributes of the parameter bias [out_features]; False: no bias.
    """

    def __init__(
        self, in_features: int, out_features: int, weight_attr: ParamAttrLike = None, bias_attr: ParamAttrLike = None
    ) -> None:
        super().__init__()
        self.weight = self.create_parameter([in_features, out_features], weight_attr)
        self.bias = None if bias_attr is False else self.create_parameter([out_features], bias_attr, is_bias=True)

    def forward(self, x: Tensor) -> Tensor:
        return C.linear(x, self.weight, self.bias)


class Embedding(Module):
    """Looks up rows of a learned table by integer: op lookup_table_v2.

    ids are int32 or int64 of any shape, the result [*ids.shape, embedding_dim].

    Args:
        num_embeddings: Number of rows.
        embedding_dim: Size of a row.
        padding_idx: A row number that reads as zeros and gets no gradient; None: there is none.
        sparse: Whether the gradient of the table is SelectedRows of the rows that a batch reads, rather than a dense
            tensor.
        weight_attr: Attributes of the parameter weight [num_embeddings, embedding_dim]; it starts from N(0, 1).
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        sparse: bool = False,
        weight_attr: ParamAttrLike = None,
    ) -> None:
        super().__init__()
        self.padding_idx, self.sparse = -1 if padding_idx is None else padding_idx, sparse
        shape = [num_embeddings, embedding_dim]
        self.weight = self.create_parameter(shape, weight_attr, default_initializer=initializer.Normal(0.0, 1.0))

    def forward(self, ids: Tensor) -> Tensor:
        return F.lookup_table_v2(ids, self.weight, padding_idx=self.padding_idx, is_sparse=self.sparse)


class Dropout(Module):
    """Sets elements to 0 at random in training, each with probability p.

    Args:
        p: Probability of 0, from 0 to 1.
        mode: "upscale_in_train" divides the kept elements by 1 - p in training; "downscale_in_infer" instead multiplies
            by 1 - p in evaluation.
        axis: Dims along which to draw independently; along the others the drawn mask is shared. None: all dims.
    """

    def __init__(self, p: float = 0.5, mode: str = "upscale_in_train", axis: int | Sequence[int] | None = None) -> None:
        super().__init__()
        self.p, self.axis = p, axis
        self.mode = "downscale_in_infer" if mode == "downgrade_in_infer" else mode

    def forward(self, x: Tensor) -> Tensor:
        drops_nothing = self.p == 0 or (not self.training and self.mode == "upscale_in_train")
        if drops_nothing and hasattr(x, "lod_level"):
            return x  # as Identity does; an array becomes a tensor
        return C.dropout(x, self.p, self.axis, self.training, self.mode)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class Dropout2D(Dropout):
    """Sets whole channels of images [N, C, H, W] to 0 at random in training.

    Args:
        p: Probability of 0, from 0 to 1.
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p, axis=[0, 1])


class Dropout3D(Dropout):
    """Sets whole channels of volumes [N, C, D, H, W] to 0 at random in training.

    Args:
        p: Probability of 0, from 0 to 1.
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p, axis=[0, 1])


class Flatten(Module):
    """Merges neighbouring dims into one: op flatten_contiguous_range.

    Args:
        start_axis: The first dim; 1 keeps the batch.
        stop_axis: The last dim.
    """

    def __init__(self, start_axis: int = 1, stop_axis: int = -1) -> None:
        super().__init__()
        self.start_axis, self.stop_axis = start_axis, stop_axis

    def forward(self, x: Tensor) -> Tensor:
        return F.flatten_contiguous_range(x, start_axis=self.start_axis, stop_axis=self.stop_axis)


class CosineSimilarity(Module):
    r"""Computes the cosine of the angle between vectors along a dim.

    $$\frac{x_1 \cdot x_2}{\max(\|x_1\| \|x_2\|, \epsilon)}$$

    Args:
        axis: The dim along which vectors lie.
        eps: The least product of norms by which to divide.
    """

    def __init__(self, axis: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.axis, self.eps = axis, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return C.cosine_similarity(x1, x2, self.axis, self.eps)
