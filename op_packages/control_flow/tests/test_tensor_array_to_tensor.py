"""tensor_array_to_tensor."""

from __future__ import annotations

import numpy as np
import pytest
from oprack.errors import OprackError
from oprack.types import VarType


@pytest.mark.parametrize(("axis", "use_stack"), [(0, False), (1, False), (0, True), (1, True), (-1, True)])
def test_tensor_array_to_tensor(builder, axis, use_stack):
    b = builder().arrays([(0, 5), (1, 7)])
    b.var("array@GRAD", kind=VarType.LOD_TENSOR_ARRAY)
    b.op("tensor_array_to_tensor", X="array", Out="out", OutIndex="sizes", axis=axis, use_stack=use_stack)
    b.op("scale", X="out", Out="out@GRAD", scale=2.0)
    b.op(
        "tensor_array_to_tensor_grad",
        X="array",
        Out_grad="out@GRAD",
        X_grad="array@GRAD",
        axis=axis,
        use_stack=use_stack,
    )
    out, sizes, grads = b.run({}, ["out", "sizes", "array@GRAD"])
    parts = [np.full((2, 1), v, np.float32) for v in (5, 7)]
    assert np.array_equal(out.array, np.stack(parts, axis) if use_stack else np.concatenate(parts, axis))
    assert sizes.array.tolist() == ([1, 1] if use_stack or axis else [2, 2])
    assert all(np.array_equal(g.array, 2 * p) for g, p in zip(grads, parts, strict=True))


def test_an_array_with_a_hole_is_no_tensor(builder):
    b = builder().arrays([(1, 5)])
    b.op("tensor_array_to_tensor", X="array", Out="out", OutIndex="sizes")
    with pytest.raises(OprackError, match=r"nothing at places \[0\]"):
        b.run({}, ["out"])
