"""mode and its gradient."""

from __future__ import annotations

from oprack_math.ops._reduce import KEEP_DIM
from oprack_math.ops.statistics._pick import AXIS, Pick, PickGrad


class Mode(Pick, type="mode"):
    r"""$$Out = \operatorname{argmax}_v \#\{i : X_i = v\}$$ the commonest value along a dim, of several the smallest;
    Indices is its last place."""

    axis = AXIS
    keepdim = KEEP_DIM


class ModeGrad(PickGrad, of=Mode):
    r"""$$X@GRAD = Out@GRAD$$ at the place Indices, 0 elsewhere."""
