"""uniform_random_inplace and its gradient."""

from __future__ import annotations

from oprack.op import Attr

from oprack_random.ops._draw_like import SEED, DrawLike, ZeroGrad


class UniformRandomInplace(DrawLike, type="uniform_random_inplace"):
    r"""$$Out \sim U[min, max)$$; the diag attributes then put a constant at regular places of a matrix."""

    min = Attr(-1.0, "Lower bound.")
    max = Attr(1.0, "Upper bound.")
    seed = SEED
    diag_num = Attr(0, "How many elements to set to `diag_val`.").at_least(0)
    diag_step = Attr(0, "From one of them to the next: row i, column i of the matrix moves on by this.").at_least(0)
    diag_val = Attr(1.0, "Value of those elements.")
    inplace = {"X": "Out"}


class UniformRandomInplaceGrad(ZeroGrad, of=UniformRandomInplace):
    r"""$$X@GRAD = 0$$"""
