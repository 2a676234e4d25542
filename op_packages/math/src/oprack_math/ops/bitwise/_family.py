"""What bitwise ops of two inputs share."""

from __future__ import annotations

from oprack.op import Attr, Input, Output

from oprack_math.ops._broadcast import AlignedBinary


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
