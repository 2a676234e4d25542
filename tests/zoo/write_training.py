"""Writes a step of training of one net with Paddle: `python write_training.py NAME FOLDER`.

FOLDER gets `forward.pdmodel`, the program up to the loss; `step.pdmodel`, with the gradient ops that Paddle appended;
the recipe of the parameters, and `training.npz` with the loss and the gradients of all parameters. Layers are in the
mode of training: batch norms take the statistics of the batch; dropout is off, since no two libraries draw alike.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import registry
import weights
from build import build

LOSS = "zoo_loss"


def without_dropout(layer: Any) -> None:
    """Switch off dropout, as a layer of its own and as an argument that another layer passes on."""
    for sub in layer.sublayers():
        if isinstance(sub, (paddle.nn.Dropout, paddle.nn.Dropout2D)):
            sub.p = 0.0
        for name in ("dropout", "attn_dropout", "act_dropout", "attention_probs_dropout_prob"):
            if isinstance(getattr(sub, name, None), float):
                setattr(sub, name, 0.0)


def loss_of(layer: Any, net: registry.Net) -> Any:
    """The mean square of what the net says less one half, over its first output that is a float."""
    inputs = [paddle.static.data(n, list(a.shape), a.dtype.name) for n, a in net.training_feeds().items()]
    outputs = [v for v in layer(*inputs) if v.dtype == paddle.float32]
    loss = paddle.mean(paddle.square(outputs[0] - 0.5))
    named = paddle.static.default_main_program().global_block().create_var(name=LOSS, dtype="float32", shape=[])
    return paddle.assign(loss, named)


def write(net: registry.Net, folder: Path) -> None:
    """Program, parameters, loss and gradients."""
    paddle.enable_static()
    main, startup = paddle.static.Program(), paddle.static.Program()
    executor = paddle.static.Executor(paddle.CPUPlace())
    with paddle.static.program_guard(main, startup):
        layer, _ = build(net)
        layer.train()
        without_dropout(layer)
        loss = loss_of(layer, net)
        drawn = [op.type for op in main.global_block().ops if op.type == "dropout" and op.attr("dropout_prob")]
        if drawn:
            raise ValueError(f"{net.name} draws {len(drawn)} masks of dropout, so that no two runs are alike")
        (folder / "forward.pdmodel").write_bytes(main.desc.serialize_to_string())
        pairs = paddle.static.append_backward(loss)
        (folder / "step.pdmodel").write_bytes(main.desc.serialize_to_string())
    executor.run(startup)
    recipe, consts = [], {}
    for name in sorted((v.name for v in main.list_vars() if v.persistable), key=str.encode):
        tensor = paddle.static.global_scope().find_var(name).get_tensor()
        value = np.array(tensor)
        trained = isinstance(main.global_block().var(name), paddle.base.framework.Parameter)
        gen = weights.generator(net.name, name, value) if trained and not name.endswith((".w_1", ".w_2")) else None
        if gen:
            tensor.set(weights.draw(gen, list(value.shape), "float32"), paddle.CPUPlace())
        else:
            consts[name] = value
        recipe.append({"name": name, "shape": list(value.shape), "dtype": str(value.dtype), "gen": gen})
    (folder / weights.RECIPE).write_text(json.dumps(recipe), "utf-8")
    np.savez_compressed(folder / weights.CONSTS, **consts)
    names = [LOSS, *(gradient.name for _, gradient in pairs)]
    found = executor.run(main, net.training_feeds(), names)
    np.savez_compressed(folder / "training.npz", **dict(zip(names, found, strict=True)))


def main(arguments: list[str] | None = None) -> None:
    name, folder = sys.argv[1:] if arguments is None else arguments
    Path(folder).mkdir(parents=True, exist_ok=True)
    write(registry.ALL[name], Path(folder))


if __name__ == "__main__":
    main()
