"""autocast, with the ops that gain from half precision and those that it hurts."""

from __future__ import annotations

from collections.abc import Collection

from oprack import interpreter
from oprack.errors import InvalidArgumentError

# Products and convolutions, whose inputs may be rounded; and what needs range or adds up many terms.
HALF_OPS = frozenset("bmm conv2d conv2d_transpose conv3d depthwise_conv2d matmul matmul_v2 mul".split())
SINGLE_OPS = frozenset(
    "batch_norm cross_entropy cross_entropy2 cumsum exp group_norm instance_norm layer_norm log log_softmax mean "
    "p_norm pow reduce_mean reduce_prod reduce_sum softmax softmax_with_cross_entropy square sum".split()
)


class autocast(interpreter.autocast):
    """Mixed precision: `with oprack.amp.autocast("bfloat16"):`; parameters stay float32 and so do their gradients.

    As paddle.amp.auto_cast at level O1. An op that has no kernel for the dtype where its inputs are, as convolutions on
    a CPU, stays in float32. Of blocks within each other the innermost counts.

    Args:
        dtype: "bfloat16" or "float16".
        half: Types of the ops whose floating arguments are cast to it.
        single: Types of those whose are cast to float32; others get theirs in the widest of their dtypes.
        enable: False casts nothing inside, also within another autocast.
        custom_white_list: Further types for `half`, which `single` then lacks.
        custom_black_list: Further types for `single`, which `half` then lacks.
        level: "O1"; "O0" casts nothing.

    Raises:
        InvalidArgumentError: The dtype is not half, a type is in both lists, or the level is another one.
    """

    def __init__(
        self,
        dtype: object = "bfloat16",
        half: Collection[str] = HALF_OPS,
        single: Collection[str] = SINGLE_OPS,
        *,
        enable: bool = True,
        custom_white_list: Collection[str] | None = None,
        custom_black_list: Collection[str] | None = None,
        level: str = "O1",
    ) -> None:
        if level not in ("O0", "O1"):
            raise InvalidArgumentError(
                f'autocast: level is {level!r}; expected "O1", or "O0" for none; for a net that is all in half '
                "precision write net.to(dtype)"
            )
        white, black = frozenset(custom_white_list or ()), frozenset(custom_black_list or ())
        if both := sorted(white & black):
            raise InvalidArgumentError(
                f"autocast: {', '.join(both)} in custom_white_list and in custom_black_list; expected one of them"
            )
        super().__init__(
            dtype, frozenset(half) - black | white, frozenset(single) - white | black, enable and level != "O0"
        )
