"""Layers of paddle.nn inside of a program, whose parameters are the program's."""

import json

import numpy as np
import paddle

paddle.enable_static()


def start(*shape):
    numbers = np.random.RandomState(sum(shape)).uniform(-0.3, 0.3, shape).astype("float32")
    return paddle.ParamAttr(initializer=paddle.nn.initializer.Assign(numbers))


main, startup = paddle.static.Program(), paddle.static.Program()
with paddle.static.program_guard(main, startup):
    x = paddle.static.data("x", [None, 1, 6, 6])
    y = paddle.static.data("y", [None, 1], "int64")
    conv = paddle.nn.Conv2D(1, 3, 3, weight_attr=start(3, 1, 3, 3))
    norm = paddle.nn.BatchNorm2D(3)
    fc = paddle.nn.Linear(12, 2, weight_attr=start(12, 2))
    h = paddle.nn.functional.relu(norm(conv(x)))
    h = paddle.nn.MaxPool2D(2, 2)(h)
    loss = paddle.nn.CrossEntropyLoss()(fc(paddle.flatten(h, 1)), y)
    paddle.optimizer.Adam(0.01).minimize(loss)
exe = paddle.static.Executor()
exe.run(startup)
r, losses = np.random.RandomState(0), []
for _ in range(6):
    a = r.uniform(-1, 1, [8, 1, 6, 6]).astype("float32")
    label = (a.sum((1, 2, 3)) > 0).astype("int64")[:, None]
    (value,) = exe.run(main, feed={"x": a, "y": label}, fetch_list=[loss])
    losses.append(float(value))
print(json.dumps(losses))
