"""elementwise_mod: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import empty_grad

from oprack_math.ops.elementwise._family import Elementwise


class ElementwiseMod(Elementwise, type="elementwise_mod"):
    r"""$$Out = X - \lfloor X / Y \rfloor Y$$ with the sign of Y, as in Python. An integer divisor of 0 is an error."""

    inplace = {"X": "Out"}
    make_grad = empty_grad
