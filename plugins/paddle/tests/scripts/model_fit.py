# the trainer paddle.Model
import json

import numpy as np
import paddle
from paddle.static import InputSpec


class Data(paddle.io.Dataset):
    def __init__(self, n, seed):
        r = np.random.RandomState(seed)
        self.x = r.uniform(-1, 1, [n, 1, 8, 8]).astype("float32")
        self.y = (self.x.sum((1, 2, 3)) > 0).astype("int64")[:, None]

    def __getitem__(self, i):
        return self.x[i], self.y[i]

    def __len__(self):
        return len(self.x)


net = paddle.nn.Sequential(
    paddle.nn.Conv2D(1, 4, 3, padding=1, bias_attr=False),
    paddle.nn.BatchNorm2D(4),
    paddle.nn.ReLU(),
    paddle.nn.MaxPool2D(2, 2),
    paddle.nn.Flatten(),
    paddle.nn.Linear(64, 2),
)
r = np.random.RandomState(3)
for _, p in net.named_parameters():
    p.set_value(r.uniform(-0.3, 0.3, p.shape).astype("float32"))
model = paddle.Model(net, InputSpec([None, 1, 8, 8], "float32", "x"), InputSpec([None, 1], "int64", "y"))
model.prepare(
    paddle.optimizer.Adam(learning_rate=0.01, parameters=model.parameters()),
    paddle.nn.CrossEntropyLoss(),
    paddle.metric.Accuracy(),
)
losses = []


class Keep(paddle.callbacks.Callback):
    def on_train_batch_end(self, step, logs=None):
        losses.append(float(np.ravel(logs["loss"])[0]))


model.fit(Data(48, 0), epochs=3, batch_size=12, shuffle=False, verbose=0, callbacks=[Keep()])
result = model.evaluate(Data(24, 1), batch_size=12, verbose=0)
losses += [float(np.ravel(result["loss"])[0]), float(result["acc"])]
predicted = model.predict(Data(12, 2), batch_size=6, stack_outputs=True, verbose=0)
losses.append(float(predicted[0].sum()))
print(json.dumps(losses))
