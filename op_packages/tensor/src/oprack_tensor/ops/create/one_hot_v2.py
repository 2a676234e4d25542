"""one_hot_v2: all of the op but its kernel."""

from __future__ import annotations

from oprack.op.sbp import leading

from oprack_tensor.ops.create._one_hot import OneHotOf


class OneHotV2(OneHotOf, type="one_hot_v2"):
    r"""$$Out_{..., k} = 1$$ where $$X_{...} = k$$, else 0."""

    sbp = leading(("X",), ("Out",), lambda ctx: len(ctx.dim("Out")) - 1)
