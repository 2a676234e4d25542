"""Methods of variables of programs: dtype, shape and sum of what each gives."""

import numpy as np
import paddle

paddle.enable_static()
x = paddle.static.data("x", [2, 3], "float32")
outs = [
    x.reshape([3, 2]),
    x.sum(axis=1),
    x.mean(),
    x.cast("int64"),
    x.unsqueeze(0),
    x.transpose([1, 0]),
    x.clip(0.2, 0.8),
    x.matmul(x.T),
    x.exp(),
    x.astype("float64"),
    x.max(axis=0, keepdim=True),
    x.flatten(),
    x.tile([2, 1]),
    x.abs().sqrt(),
    x.broadcast_to([2, 2, 3]),
    x.split(3, axis=1)[1],
    x.argmax(axis=1),
    x.square().sum(),
    x.norm(),
    x.std(),
    x.cumsum(axis=0),
    x.squeeze(),
    x.expand([4, 2, 3]),
    x.topk(2)[0],
    x.sort(axis=1),
    x.add(x),
    x[0:1, 1:],
    x.index_select(paddle.full([1], 1, "int64"), axis=0),
]
exe = paddle.static.Executor()
exe.run(paddle.static.default_startup_program())
r = exe.run(feed={"x": np.arange(6, dtype="float32").reshape(2, 3) / 5}, fetch_list=outs)
for a in r:
    print(a.dtype, a.shape, np.asarray(a).astype("f8").sum().round(4))
