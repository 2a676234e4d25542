"""angle and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, dtype_of
from oprack.op.families import Unary

from oprack_math.ops.complex._family import part_of_x


class Angle(Unary, type="angle"):
    r"""$$Out = \operatorname{atan2}(\operatorname{Im} X, \operatorname{Re} X)$$ of a real number 0 or $\pi$."""

    use_mkldnn = Attr(False, "Paddle: prefer the oneDNN kernel.", extra=True)
    infer_var_type = part_of_x


class AngleGrad(GradOpDef, of=Angle, reads="X"):
    r"""$$X@GRAD = Out@GRAD \cdot i X / |X|^2$$ where X is complex and not 0, else 0."""

    expected_kernel_type = dtype_of("X")
