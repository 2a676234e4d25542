# batches by worker processes
import json
import os
import tempfile

import numpy as np
import paddle
from paddle.io import BatchSampler, DataLoader, Dataset


class Rows(Dataset):
    def __getitem__(self, i):
        r = np.random.RandomState(i)
        x = r.uniform(-1, 1, [5]).astype("float32")
        return {"x": x, "y": np.array([x[0] * 2 - x[1]], "float32")}

    def __len__(self):
        return 40


def main():
    net = paddle.nn.Sequential(paddle.nn.Linear(5, 8), paddle.nn.GELU(), paddle.nn.LayerNorm(8), paddle.nn.Linear(8, 1))
    r = np.random.RandomState(5)
    for _, p in net.named_parameters():
        p.set_value(r.uniform(-0.4, 0.4, p.shape).astype("float32"))
    opt = paddle.optimizer.AdamW(
        learning_rate=paddle.optimizer.lr.CosineAnnealingDecay(0.02, T_max=10),
        parameters=net.parameters(),
        weight_decay=0.01,
    )
    loader = DataLoader(Rows(), batch_sampler=BatchSampler(Rows(), batch_size=8, shuffle=False), num_workers=2)
    losses = []
    for _ in range(3):
        for batch in loader:
            loss = paddle.nn.functional.smooth_l1_loss(net(batch["x"]), batch["y"])
            loss.backward()
            opt.step()
            opt.clear_grad()
            losses.append(loss.item())
        opt._learning_rate.step()
    folder = tempfile.mkdtemp()
    paddle.save(net.state_dict(), os.path.join(folder, "net.pdparams"))
    again = paddle.load(os.path.join(folder, "net.pdparams"))
    losses.append(float(sum(np.asarray(v).sum() for v in again.values())))
    print(json.dumps(losses))


if __name__ == "__main__":
    main()
