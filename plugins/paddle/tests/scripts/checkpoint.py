"""Train for three steps, keep the state, and go on; or read a state that was kept, and go on from there."""

import json
import sys

import numpy as np
import paddle

mode, prefix = sys.argv[1:3]
paddle.seed(0)
net = paddle.nn.Sequential(paddle.nn.Linear(3, 4), paddle.nn.BatchNorm1D(4), paddle.nn.Linear(4, 2))
schedule = paddle.optimizer.lr.StepDecay(0.05, step_size=2, gamma=0.5)
adam = paddle.optimizer.AdamW(schedule, parameters=net.parameters(), weight_decay=0.01)
draw = np.random.default_rng(1)
images = draw.normal(size=(6, 8, 3)).astype("float32")
labels = draw.integers(0, 2, (6, 8)).astype("int64")


def train(first, last):
    losses = []
    for i in range(first, last):
        loss = paddle.nn.functional.cross_entropy(net(paddle.to_tensor(images[i])), paddle.to_tensor(labels[i]))
        loss.backward()
        adam.step()
        adam.clear_grad()
        schedule.step()
        losses.append(float(loss))
    return losses


if mode == "keep":
    train(0, 3)
    paddle.save(net.state_dict(), prefix + ".pdparams")
    paddle.save(adam.state_dict(), prefix + ".pdopt")
    paddle.save(
        {"epoch": 3, "best": [paddle.to_tensor([1.0, 2.0]), {"x": paddle.to_tensor(5)}], "note": "é"}, prefix + ".pd"
    )
else:
    net.set_state_dict(paddle.load(prefix + ".pdparams"))
    adam.set_state_dict(paddle.load(prefix + ".pdopt"))
    told = paddle.load(prefix + ".pd")
    assert told["epoch"] == 3 and told["note"] == "é" and told["best"][0].numpy().tolist() == [1.0, 2.0]
print(json.dumps(train(3, 6)))
