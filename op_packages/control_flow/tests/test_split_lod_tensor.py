"""split_lod_tensor, and merge_lod_tensor, which undoes it."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from oprack.tensor import LoDTensor, lod_from_lengths


@given(st.lists(st.booleans(), min_size=1, max_size=6), st.booleans(), st.data())
@settings(deadline=None, max_examples=40)
def test_split_and_merge(builder, mask, with_lod, data):
    lengths = data.draw(st.lists(st.integers(0, 3), min_size=len(mask), max_size=len(mask))) if with_lod else None
    rows = sum(lengths) if with_lod else len(mask)
    x = LoDTensor(np.arange(rows * 2.0).reshape(rows, 2), lod_from_lengths([lengths]) if with_lod else [])
    b = builder()
    b.var("x", "m")
    b.op("split_lod_tensor", X="x", Mask="m", OutTrue="yes", OutFalse="no", level=0)
    for kind in ("merge_lod_tensor", "merge_lod_tensor_infer"):
        b.op(kind, X="x", Mask="m", InTrue="yes", InFalse="no", Out=kind, level=0)
    feed = {"x": x, "m": np.array(mask)[:, None]}
    yes, merged, inferred = b.run(feed, ["yes", "merge_lod_tensor", "merge_lod_tensor_infer"])
    keep = np.repeat(mask, lengths) if with_lod else np.array(mask)
    assert np.array_equal(yes.array, x.array[keep])
    for again in (merged, inferred):
        assert np.array_equal(again.array, x.array) and again.lod == x.lod
