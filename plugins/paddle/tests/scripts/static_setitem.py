"""paddle.static.setitem beside NumPy's assignment."""

import numpy as np
import paddle

paddle.enable_static()
a = np.arange(24, dtype="float32").reshape(2, 3, 4)
x = paddle.static.data("x", [2, 3, 4], "float32")
places = [
    0, slice(0, 2), (0, 1), (slice(None), slice(1, 3)), (..., -1), (1, slice(None, None, -1)), (slice(-1, None),), ...,
    (slice(None), -2, slice(0, 4, 2)), slice(5, 0, -1), (slice(None), slice(2, None, -2)),
]  # fmt: skip
values = [7.5] * len(places) + [np.float32([1, 2, 3, 4])]
places.append((0, slice(0, 2)))
outs = [paddle.static.setitem(x, place, value) for place, value in zip(places, values, strict=True)]
results = paddle.static.Executor().run(feed={"x": a}, fetch_list=outs)
for place, value, found in zip(places, values, results, strict=True):
    expected = a.copy()
    expected[place] = value
    assert (found == expected).all(), place
print("done")
