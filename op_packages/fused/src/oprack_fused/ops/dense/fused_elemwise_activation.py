"""fused_elemwise_activation and its gradient."""

from __future__ import annotations

from oprack_fused.ops.dense._elemwise import Pair, PairGrad, pair_grad


class FusedElemwiseActivation(Pair, type="fused_elemwise_activation"):
    r"""$$Out = u(b(X, Y)) \quad\text{or}\quad Out = b(X, u(Y))$$ for a unary $u$ and a binary $b$ of `functor_list`."""

    make_grad = pair_grad


class FusedElemwiseActivationGrad(PairGrad, type="fused_elemwise_activation_grad"):
    r"""$$X@GRAD = b_X\,u'\,Out@GRAD,\quad Y@GRAD = b_Y\,u'\,Out@GRAD$$ summed where Y was broadcast."""
