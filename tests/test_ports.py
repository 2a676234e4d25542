"""Scripts of PyTorch and Paddle run here after few changes: each as it is there, and the lines that change.

A changed line is one of the port that the script does not have; imports count as well.
"""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

PYTORCH = """
import math
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import Dataset, DataLoader


class Blobs(Dataset):
    def __init__(self, n, seed):
        r = np.random.default_rng(seed)
        self.y = r.integers(0, 3, n)
        self.x = r.normal(0, 0.3, (n, 1, 8, 8)).astype("float32")
        for i, c in enumerate(self.y):
            self.x[i, 0, 2 * c : 2 * c + 3, 2 * c : 2 * c + 3] += 1.0

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], int(self.y[i])


class Net(nn.Module):
    def __init__(self, width=8, classes=3):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(2 * width)
        self.pool = nn.MaxPool2d(2)
        self.drop = nn.Dropout(0.1)
        self.fc = nn.Linear(2 * width, classes)
        nn.init.xavier_uniform_(self.fc.weight)

    def forward(self, x):
        x = self.pool(F.relu(self.bn1(self.conv1(x))))
        x = F.relu(self.bn2(self.conv2(x)))
        x = x.mean(dim=3).mean(dim=2)
        return self.fc(self.drop(x.view(x.size(0), -1)))


torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
train = DataLoader(Blobs(192, 0), batch_size=32, shuffle=True)
test = DataLoader(Blobs(96, 1), batch_size=32)
net = Net().to(device)
optimizer = torch.optim.AdamW(net.parameters(), lr=0.02, weight_decay=0.01)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
criterion = nn.CrossEntropyLoss()
for epoch in range(4):
    net.train()
    for x, y in train:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimizer.step()
    scheduler.step()
    net.eval()
    right = 0
    with torch.no_grad():
        for x, y in test:
            found = net(x.to(device)).argmax(dim=1)
            right += (found == y.to(device)).float().sum().item()
    accuracy = right / 96
    print(epoch, f"{loss.item():.3f}", optimizer.param_groups[0]["lr"], accuracy)
torch.save(net.state_dict(), "net.pt")
again = Net()
again.load_state_dict(torch.load("net.pt"))
again.eval()
difference = (again(x) - net(x)).abs().max().item()
"""
PYTORCH_CHANGES = {
    "import torch": "import oprack as torch",
    "import torch.nn as nn": "from oprack import nn",
    "import torch.nn.functional as F": "import oprack.nn.functional as F",
    "from torch.utils.data import Dataset, DataLoader": "from oprack.utils.data import Dataset, DataLoader",
    # A schedule is the optimizer's learning rate, as in Paddle, so it is made first
    "optimizer = torch.optim.AdamW(net.parameters(), lr=0.02, weight_decay=0.01)": (
        "scheduler = torch.optim.lr_scheduler.CosineAnnealingDecay(0.02, T_max=4)"
    ),
    "scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)": (
        "optimizer = torch.optim.AdamW(net.parameters(), lr=scheduler, weight_decay=0.01)"
    ),
}

PADDLE = """
import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F
from paddle.io import DataLoader, Dataset


class Words(Dataset):
    def __init__(self, n, seed):
        r = np.random.default_rng(seed)
        self.y = r.integers(0, 2, (n, 1))
        self.x = r.integers(2, 40, (n, 12))
        self.x[np.arange(n), r.integers(0, 12, n)] = self.y[:, 0]

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Net(nn.Layer):
    def __init__(self, words=40, width=16):
        super().__init__()
        self.table = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, direction="bidirect")
        self.norm = nn.LayerNorm(2 * width)
        self.drop = nn.Dropout(0.1)
        self.fc = nn.Linear(2 * width, 2, weight_attr=paddle.ParamAttr(initializer=nn.initializer.XavierUniform()))

    def forward(self, ids):
        rows, _ = self.lstm(self.table(ids))
        return self.fc(self.drop(self.norm(paddle.max(rows, axis=1))))


paddle.seed(1)
train = DataLoader(Words(256, 0), batch_size=32, shuffle=True, drop_last=True)
test = DataLoader(Words(96, 1), batch_size=32)
net = Net()
schedule = paddle.optimizer.lr.CosineAnnealingDecay(learning_rate=0.02, T_max=64)
clip = nn.ClipGradByGlobalNorm(1.0)
adam = paddle.optimizer.Adam(
    learning_rate=schedule, parameters=net.parameters(), grad_clip=clip, weight_decay=paddle.regularizer.L2Decay(1e-4)
)
metric = paddle.metric.Accuracy()
for epoch in range(8):
    net.train()
    for ids, label in train():
        loss = F.cross_entropy(net(ids), label)
        loss.backward()
        adam.step()
        adam.clear_grad()
        schedule.step()
    net.eval()
    metric.reset()
    with paddle.no_grad():
        for ids, label in test():
            metric.update(metric.compute(net(ids), label))
    accuracy = metric.accumulate()
    print(epoch, float(loss), accuracy)
paddle.save(net.state_dict(), "net.pdparams")
net.set_state_dict(paddle.load("net.pdparams"))
static = paddle.jit.to_static(net, input_spec=[paddle.static.InputSpec([None, 12], "int64")])
paddle.jit.save(static, "net")
difference = float((static(ids) - net(ids)).abs().max())
"""
PADDLE_CHANGES = {
    "import paddle": "import oprack as paddle",
    "import paddle.nn as nn": "from oprack import nn",
    "import paddle.nn.functional as F": "import oprack.nn.functional as F",
    "from paddle.io import DataLoader, Dataset": "from oprack.io import DataLoader, Dataset",
}


@pytest.mark.parametrize(
    ("script", "changes", "most"), [(PYTORCH, PYTORCH_CHANGES, 8), (PADDLE, PADDLE_CHANGES, 4)], ids=["torch", "paddle"]
)
def test_a_port_changes_few_lines(
    script: str, changes: dict[str, str], most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = script.splitlines()
    assert all(lines.count(line) == 1 for line in changes)
    port = [changes.get(line, line) for line in lines]
    changed = [line for line in difflib.ndiff(lines, port) if line.startswith("+ ")]
    assert len(changed) <= most
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "port"}
    exec(compile("\n".join(port), "port.py", "exec"), names)
    assert float(names["accuracy"]) > 0.9  # type: ignore[arg-type]
    assert float(names["difference"]) < 1e-5  # type: ignore[arg-type]
