"""Nets of paddle.vision.models with the same weights, by Paddle 2.6.2 and by oprack.

python net_calls.py OUT.npz                      # Paddle 2.6.2: writes nets.npz
python -m oprack_paddle net_calls.py OUT.npz     # oprack: test_nets.py compares
"""

from __future__ import annotations

import hashlib
import json
import sys

import numpy as np
import paddle

NETS = {
    "mobilenet_v3_small": 64, "mobilenet_v3_large": 64, "shufflenet_v2_x0_25": 64, "shufflenet_v2_swish": 64,
    "densenet121": 64, "googlenet": 224, "inception_v3": 80,
}  # fmt: skip
"""The size of the picture for each."""


def called(name: str, size: int) -> tuple[str, list[np.ndarray]]:
    """A digest of the names and shapes of parameters, and the scores of classes in evaluation."""
    net, draw = getattr(paddle.vision.models, name)(num_classes=10), np.random.default_rng(0)
    net.eval()
    names = []
    for path, p in net.named_parameters():
        array = draw.uniform(-0.5, 0.5, tuple(p.shape))
        if array.ndim > 1:
            array *= 6 / np.sqrt(array[0].size)
        elif path.endswith(("weight", "_variance")):
            array += 1
        p.set_value(paddle.to_tensor(array.astype("float32")))
        names.append([path, list(p.shape)])
    image = draw.uniform(-1, 1, (1, 3, size, size)).astype("float32")
    with paddle.no_grad():
        found = net(paddle.to_tensor(image))
    scores = found if isinstance(found, list | tuple) else [found]
    return hashlib.sha256(json.dumps(names).encode()).hexdigest(), [s.numpy() for s in scores]


if __name__ == "__main__":
    digests, arrays = {}, {}
    for name, size in NETS.items():
        digests[name], scores = called(name, size)
        arrays.update({f"{name} {i}": s for i, s in enumerate(scores)})
    np.savez_compressed(sys.argv[1], digests=np.array(json.dumps(digests)), **arrays)
