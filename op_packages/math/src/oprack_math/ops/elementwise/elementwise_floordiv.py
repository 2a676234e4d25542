"""elementwise_floordiv: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import empty_grad

from oprack_math.ops.elementwise._family import Elementwise


class ElementwiseFloordiv(Elementwise, type="elementwise_floordiv"):
    r"""$$Out = \lfloor X / Y \rfloor$$ An integer divisor of 0 is an error."""

    make_grad = empty_grad
