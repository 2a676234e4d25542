"""grad_add: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import empty_grad
from oprack.op.sbp import binary

from oprack_math.ops.elementwise._family import Elementwise


class GradAdd(Elementwise, type="grad_add"):
    r"""$$Out = X + Y$$ as a backward pass adds gradients up; nothing flows back through it."""

    make_grad = empty_grad
    sbp = binary(linear=(("X", "Y"),))
