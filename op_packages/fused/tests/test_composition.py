"""A fused op is its parts: the plain ops give the same, and so do their gradients."""

from __future__ import annotations

import numpy as np
import oprack
import pytest
from oprack import functional as F


def test_a_fused_op_runs_the_kernels_that_the_run_may_choose() -> None:
    """Whatever library computes mul and softmax computes fc and fused_softmax_mask as well: bit for bit the same."""
    x, w, b = (
        oprack.to_tensor(np.random.default_rng(0).standard_normal(s).astype("f4")) for s in ((96, 80), (80, 64), 64)
    )
    plain = F.relu(F.elementwise_add(F.mul(x, w), b))
    np.testing.assert_array_equal(F.fc(x, w, b, activation_type="relu").numpy(), plain.numpy())


def test_what_paddle_can_not_differentiate_is_an_error() -> None:
    x = oprack.to_tensor(np.ones((2, 3), np.float32), requires_grad=True)
    out = F.fc(x, oprack.to_tensor(np.ones((3, 4), np.float32)))
    with pytest.raises(oprack.errors.NotDifferentiableError, match="op fc"):
        out.sum().backward()


def test_functions_that_make_no_pair_are_refused() -> None:
    x = oprack.to_tensor(np.ones((2, 3), np.float32))
    for functors in (["relu", "tanh"], ["relu"], ["relu", "elementwise_pow"]):
        with pytest.raises(oprack.errors.OprackError, match="one of elementwise_add, elementwise_mul"):
            F.fused_elemwise_activation(x, x, functor_list=functors)


def test_sequences_that_do_not_match_are_refused() -> None:
    a = oprack.to_tensor(np.ones((3, 2), np.float32), lod=[[0, 1, 3]])
    b = oprack.to_tensor(np.ones((3, 2), np.float32), lod=[[0, 3]])
    with pytest.raises(oprack.errors.OprackError, match=r"have \[2, 1\] sequences; expected as many in each"):
        F.fusion_seqpool_concat([a, b])
