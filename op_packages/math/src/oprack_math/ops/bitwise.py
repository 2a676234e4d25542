"""Definitions of ops on the bits of integers."""

from __future__ import annotations

from oprack.op import Attr, Input, OpDef, Output, empty_grad
from oprack.op.families import out_like_x
from oprack.op.sbp import unary

from oprack_math.ops._broadcast import AlignedBinary


# What bitwise ops of two inputs share.
class Bitwise(AlignedBinary):
    """An op on the bits of two inputs that broadcast at their last dims; of bools it is the logical op."""

    X = Input("Tensor of integers or bools, of any shape.")
    Y = Input("Tensor of X's dtype whose shape broadcasts with X's.")
    Out = Output("dtype of X, the broadcast shape, LoD of X.")


class Shift(AlignedBinary):
    """An op that moves the bits of integers; the inputs broadcast at their last dims."""

    X = Input("Tensor of integers, of any shape.")
    Y = Input("By how many bits, not negative: tensor of X's dtype whose shape broadcasts with X's.")
    Out = Output("dtype of X, the broadcast shape, LoD of X.")
    is_arithmetic = Attr(True, "The sign bit comes in from the left, so that negative numbers stay negative.")


class BitwiseAnd(Bitwise, type="bitwise_and"):
    r"""$$Out_i = X_i \mathbin{\&} Y_i$$ bit by bit."""


class BitwiseLeftShift(Shift, type="bitwise_left_shift"):
    r"""$$Out_i = X_i \cdot 2^{Y_i}$$ cut to the bits of the dtype; 0 for a Y of at least their number."""


class BitwiseNot(OpDef, type="bitwise_not"):
    r"""$$Out_i = \neg X_i$$ bit by bit: -X - 1 of signed integers, the logical op of bools."""

    X = Input("Tensor of integers or bools, of any shape.")
    Out = Output("dtype, shape and LoD of X.")
    inplace = {"X": "Out"}
    make_grad = empty_grad
    sbp = unary
    infer_shape = out_like_x


class BitwiseOr(Bitwise, type="bitwise_or"):
    r"""$$Out_i = X_i \mathbin{|} Y_i$$ bit by bit."""


class BitwiseRightShift(Shift, type="bitwise_right_shift"):
    r"""$$Out_i = \lfloor X_i / 2^{Y_i} \rfloor$$ or, without `is_arithmetic`, with zeros for the bits that come in."""


class BitwiseXor(Bitwise, type="bitwise_xor"):
    r"""$$Out_i = X_i \oplus Y_i$$ bit by bit."""
