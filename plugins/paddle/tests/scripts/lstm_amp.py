# dygraph: LSTM with AMP
import json

import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F

paddle.seed(1)


class Net(nn.Layer):
    def __init__(self, vocab=50, dim=16, hidden=24, classes=3):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim)
        self.lstm = nn.LSTM(dim, hidden, num_layers=2, direction="bidirect")
        self.fc = nn.Linear(2 * hidden, classes)

    def forward(self, ids):
        out, _ = self.lstm(self.embedding(ids))
        return self.fc(out.mean(axis=1))


net = Net()
r = np.random.RandomState(0)
for _, p in net.named_parameters():
    p.set_value((r.uniform(-0.2, 0.2, p.shape)).astype("float32"))
scheduler = paddle.optimizer.lr.StepDecay(learning_rate=0.02, step_size=5, gamma=0.5)
clip = nn.ClipGradByGlobalNorm(1.0)
opt = paddle.optimizer.Adam(
    learning_rate=scheduler, parameters=net.parameters(), weight_decay=paddle.regularizer.L2Decay(1e-4), grad_clip=clip
)
scaler = paddle.amp.GradScaler(init_loss_scaling=1024)
losses = []
for _ in range(12):
    ids = paddle.to_tensor(r.randint(0, 50, [8, 7]).astype("int64"))
    label = paddle.to_tensor(r.randint(0, 3, [8, 1]).astype("int64"))
    with paddle.amp.auto_cast(enable=True, level="O1"):
        logits = net(ids)
        loss = F.cross_entropy(logits, label)
    scaled = scaler.scale(loss)
    scaled.backward()
    scaler.step(opt)
    scaler.update()
    opt.clear_grad()
    scheduler.step()
    losses.append(float(loss))
net.eval()
with paddle.no_grad():
    p = F.softmax(net(ids), axis=-1)
losses.append(float(p.max()))
print(json.dumps(losses))
