# data parallel on two ranks
import json
import os

import numpy as np
import paddle
import paddle.distributed as dist


def main():
    dist.init_parallel_env()
    rank = dist.get_rank()
    net = paddle.nn.Sequential(paddle.nn.Linear(6, 10), paddle.nn.Tanh(), paddle.nn.Linear(10, 1))
    r = np.random.RandomState(7)
    for _, p in sorted(net.named_parameters()):
        p.set_value(r.uniform(-0.4, 0.4, p.shape).astype("float32"))
    net = paddle.DataParallel(net)
    opt = paddle.optimizer.SGD(learning_rate=0.1, parameters=net.parameters())
    losses = []
    for step in range(10):
        r = np.random.RandomState(100 * step + rank)
        x = r.uniform(-1, 1, [8, 6]).astype("float32")
        y = x.sum(1, keepdims=True).astype("float32")
        loss = paddle.nn.functional.mse_loss(net(paddle.to_tensor(x)), paddle.to_tensor(y))
        loss.backward()
        opt.step()
        opt.clear_grad()
        total = loss.detach()
        dist.all_reduce(total)
        losses.append(float(total) / dist.get_world_size())
    if rank == 0:
        with open(os.environ["LOSSES"], "w") as f:
            json.dump(losses, f)


if __name__ == "__main__":
    dist.spawn(main, nprocs=2, backend="gloo") if "PADDLE_TRAINER_ID" not in os.environ else main()
