"""Training programs that oprack's layers build, serialized, train in Paddle with the same losses.

    PADDLE_ENV/bin/python tests/oracle/check_trained.py .venv/bin/python

The Python given builds each program and trains it for ten steps with oprack; Paddle 2.6.2 then does the same.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

STEPS = 10
BUILD = r"""
import json, sys
from pathlib import Path
import numpy as np
import oprack
from oprack import Executor, LoDTensor, Scope, layers, optimizer
from oprack.layers import program_guard

folder, rng = Path(sys.argv[1]), np.random.default_rng(0)

def mlp():
    x, y = layers.data("x", [-1, 8]), layers.data("y", [-1, 1])
    h = layers.dropout(layers.fc(x, 16, act="tanh"), 0.0)
    loss = layers.mean(layers.square_error_cost(layers.fc(h, 1), y))
    return loss, {"x": rng.standard_normal((16, 8)), "y": rng.standard_normal((16, 1))}, optimizer.Adam(0.01)

def cnn():
    x, y = layers.data("x", [-1, 1, 12, 12]), layers.data("y", [-1, 1], "int64")
    h = layers.pool2d(layers.batch_norm(layers.conv2d(x, 4, 3), act="relu"), 2, "max", 2)
    loss = layers.mean(layers.softmax_with_cross_entropy(layers.fc(h, 5), y))
    feed = {"x": rng.standard_normal((8, 1, 12, 12)), "y": rng.integers(0, 5, (8, 1))}
    return loss, feed, optimizer.Momentum(0.05, 0.9)

def lod():
    w, y = layers.data("w", [-1, 1], "int64", lod_level=1), layers.data("y", [-1, 1], "int64", lod_level=1)
    h = layers.embedding(w, [30, 12], is_sparse=True)
    h = layers.dynamic_gru(layers.fc(h, 36), 12)
    cost = layers.linear_chain_crf(layers.fc(h, 5), y, param_attr=oprack.ParamAttr(name="crf"))
    lod = [[0, 3, 4, 9]]
    feed = {"w": (rng.integers(0, 30, (9, 1)), lod), "y": (rng.integers(0, 5, (9, 1)), lod)}
    return layers.mean(cost), feed, optimizer.SGD(0.1)

def branches():
    x = layers.data("x", [-1, 6])
    h = layers.fc(x, 6)
    flag = layers.less_than(layers.mean(x), layers.fill_constant([1], "float32", 0.0))
    h = layers.cond(flag, lambda: layers.fc(h, 4, act="tanh"), lambda: layers.fc(h, 4, act="sigmoid"))
    return layers.mean(layers.square(h)), {"x": rng.standard_normal((5, 6))}, optimizer.SGD(0.1)

def loop():
    x = layers.data("x", [-1, 6])
    h, i, n = layers.fc(x, 6), layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    step = lambda i, h: [i + 1, layers.fc(h, 6, act="tanh", param_attr=oprack.ParamAttr(name="w"), bias_attr=False)]
    i, h = layers.while_loop(lambda i, h: layers.less_than(i, n), step, [i, h])
    return layers.mean(layers.square(h)), {"x": rng.standard_normal((5, 6))}, optimizer.Adam(0.01)

for build in (mlp, cnn, lod, branches, loop):
    main, startup, scope = oprack.Program(), oprack.Program(), Scope()
    with program_guard(main, startup):
        loss, feed, opt = build()
        opt.minimize(loss)
    lods, arrays = {}, {}
    for name, value in feed.items():
        value, lods[name] = value if isinstance(value, tuple) else (value, [])
        arrays[name] = value.astype("float32") if value.dtype == np.float64 else value
    exe = Executor(seed=1)
    exe.run(startup, scope=scope)
    init = {n: np.array(scope.find_var(n).get()) for n in scope.local_var_names()}
    given = {n: LoDTensor(a, lods[n]) for n, a in arrays.items()}
    losses = [float(np.reshape(exe.run(main, given, [loss], scope)[0], -1)[0]) for _ in range(STEPS)]
    here = folder / build.__name__
    here.mkdir()
    (here / "main.pdmodel").write_bytes(main.serialize())
    np.savez(here / "init.npz", **init)
    np.savez(here / "feeds.npz", **arrays)
    (here / "meta.json").write_text(json.dumps({"loss": loss.name, "lods": lods, "losses": losses}))
"""


def losses_of(folder: Path, meta: dict) -> list[float]:
    """Ten steps of the program in Paddle."""
    import paddle

    paddle.enable_static()
    program = paddle.static.Program.parse_from_string((folder / "main.pdmodel").read_bytes())
    scope, place = paddle.static.Scope(), paddle.CPUPlace()
    with np.load(folder / "init.npz") as init:
        for name in init.files:
            scope.var(name).get_tensor().set(init[name], place)
    feed = {}
    with np.load(folder / "feeds.npz") as feeds:
        for name in feeds.files:
            feed[name] = paddle.base.LoDTensor()
            feed[name].set(feeds[name], place)
            feed[name].set_lod(meta["lods"][name])
    executor = paddle.static.Executor(place)
    with paddle.static.scope_guard(scope):
        steps = [executor.run(program, feed=feed, fetch_list=[meta["loss"]]) for _ in range(STEPS)]
    return [float(np.reshape(s[0], -1)[0]) for s in steps]


def main() -> int:
    """Print the largest relative difference of the losses for each program; 1 when one is above 1e-4."""
    worst = 0.0
    with tempfile.TemporaryDirectory() as scratch:
        code = BUILD.replace("range(STEPS)", f"range({STEPS})")
        subprocess.run([sys.argv[1], "-c", code, scratch], check=True)
        for folder in sorted(Path(scratch).iterdir()):
            meta = json.loads((folder / "meta.json").read_text())
            try:
                got = np.array(losses_of(folder, meta))
            except Exception as error:
                print(f"{folder.name}: Paddle fails: {str(error).strip().splitlines()[-1]}")
                worst = np.inf
                continue
            want = np.array(meta["losses"])
            gap = float((np.abs(got - want) / np.abs(want)).max())
            print(f"{folder.name}: losses {want[0]:.6f} to {want[-1]:.6f}, largest relative difference {gap:.2g}")
            worst = max(worst, gap)
    return int(worst > 1e-4)


if __name__ == "__main__":
    sys.exit(main())
