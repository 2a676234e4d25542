"""Bilinear: a product of two inputs and a weight for each feature."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import functional as F
from oprack.nn import Module

if TYPE_CHECKING:
    from oprack import Tensor
    from oprack.layers import ParamAttrLike


class Bilinear(Module):
    """Applies a bilinear form to two inputs, $$out_k = x_1^T W_k x_2 + b_k$$: op bilinear_tensor_product.

    x1 is [N, in1_features], x2 [N, in2_features], the result [N, out_features].

    Args:
        in1_features: Size of the first input.
        in2_features: Size of the second input.
        out_features: Size of the result.
        weight_attr: Attributes of the parameter weight [out_features, in1_features, in2_features].
        bias_attr: Attributes of the parameter bias [1, out_features]; False: no bias.
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        weight_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
    ) -> None:
        super().__init__()
        self.weight = self.create_parameter([out_features, in1_features, in2_features], weight_attr)
        self.bias = None if bias_attr is False else self.create_parameter([1, out_features], bias_attr, is_bias=True)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.bilinear_tensor_product(x1, x2, self.weight, self.bias)
