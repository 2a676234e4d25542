"""allclose: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import InferShapeContext, OpVersion, Output

from oprack_math.ops.compare._close import Close


class Allclose(Close, type="allclose"):
    r"""$$Out = \bigwedge [|Input - Other| \le atol + rtol \cdot |Other|]$$"""

    Out = Output("bool, 0-D.")
    versions = (
        OpVersion("allclose")
        .checkpoint("Tolerances may be tensors.", ("new_input", "Rtol", None), ("new_input", "Atol", None))
        .checkpoint("Tolerances are texts.", ("new_attr", "rtol", "1e-5"), ("new_attr", "atol", "1e-5"))
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("Input", "Other")
        ctx.set_dim("Out", ())
