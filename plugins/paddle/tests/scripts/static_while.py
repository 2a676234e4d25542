# static program with a while loop
import json

import numpy as np
import paddle

paddle.enable_static()
main, startup = paddle.static.Program(), paddle.static.Program()
with paddle.static.program_guard(main, startup):
    x = paddle.static.data(name="x", shape=[None, 6], dtype="float32")
    y = paddle.static.data(name="y", shape=[None, 1], dtype="float32")
    x.stop_gradient = False
    init = paddle.nn.initializer.Assign(np.linspace(-0.3, 0.3, 36).reshape(6, 6).astype("float32"))
    w = paddle.static.create_parameter([6, 6], "float32", name="w", default_initializer=init)
    i = paddle.full([1], 0, dtype="int64")
    n = paddle.full([1], 3, dtype="int64")

    def cond(i, h):
        return paddle.less_than(i, n)

    def body(i, h):
        h = paddle.tanh(paddle.matmul(h, w)) + x
        i = i + 1
        return [i, h]

    i, h = paddle.static.nn.while_loop(cond, body, [i, paddle.assign(x)])
    out = paddle.static.nn.fc(
        h, size=1, weight_attr=paddle.ParamAttr(initializer=paddle.nn.initializer.Constant(0.1)), name="head"
    )
    loss = paddle.mean(paddle.nn.functional.square_error_cost(out, y))
    paddle.optimizer.Momentum(learning_rate=0.02, momentum=0.9).minimize(loss)
exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(startup)
r = np.random.RandomState(1)
losses = []
for _ in range(15):
    a = r.uniform(-1, 1, [16, 6]).astype("float32")
    b = a.sum(1, keepdims=True).astype("float32")
    (v,) = exe.run(main, feed={"x": a, "y": b}, fetch_list=[loss])
    losses.append(float(v))
print(json.dumps(losses))
