"""autocast, with the ops that gain from half precision and those that it hurts."""

from __future__ import annotations

from collections.abc import Collection

from oprack import interpreter

# Products and convolutions, whose inputs may be rounded; and what needs range or adds up many terms.
HALF_OPS = frozenset("bmm conv2d conv2d_transpose conv3d depthwise_conv2d matmul matmul_v2 mul".split())
SINGLE_OPS = frozenset(
    "batch_norm cross_entropy cross_entropy2 cumsum exp group_norm instance_norm layer_norm log log_softmax mean "
    "p_norm pow reduce_mean reduce_prod reduce_sum softmax softmax_with_cross_entropy square sum".split()
)


class autocast(interpreter.autocast):
    """Mixed precision: `with oprack.amp.autocast("bfloat16"):`; parameters stay float32 and so do their gradients.

    dtype: "bfloat16" or "float16". half, single: types of the ops whose floating arguments are cast to it, and to
    float32; others get theirs in the widest of their dtypes. Raises InvalidArgumentError for a dtype that is not half.
    As paddle.amp.auto_cast at level O1.
    """

    def __init__(
        self, dtype: object = "bfloat16", half: Collection[str] = HALF_OPS, single: Collection[str] = SINGLE_OPS
    ) -> None:
        super().__init__(dtype, half, single)
