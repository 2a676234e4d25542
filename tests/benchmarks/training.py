"""One training step of a program of make_training.py, by each engine: load(workload, threads) -> run() -> [loss]."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
from workloads import Workload

Run = Callable[[], list[np.ndarray]]
WRITTEN = tuple(f"train {name}" for name in ("lenet", "resnet18", "bert_small", "lstm"))
"""Workloads that are written with oprack's modules as well (oprack_training.py)."""


def _files(workload: Workload) -> tuple[bytes, dict[str, np.ndarray], list[str], str]:
    """Program, initial parameters, names of the feeds and of the loss."""
    with np.load(workload.model / "init.npz", allow_pickle=False) as archive:
        init = dict(archive)
    with np.load(workload.model / "feeds.npz", allow_pickle=False) as archive:
        names = archive.files
    loss = json.loads((workload.model / "meta.json").read_text())["loss"]
    return (workload.model / "main.pdmodel").read_bytes(), init, names, loss


def oprack(workload: Workload, excluded: tuple[str, ...]) -> Run:
    """oprack's executor. excluded: kernel libraries that stay out."""
    from oprack import Executor, LoDTensor, Program, Scope

    data, init, names, loss = _files(workload)
    program, scope = Program.parse(data), Scope()
    for name, value in init.items():
        scope.var(name).set(value)
    feed = {n: LoDTensor(v, workload.lods.get(i)) for i, (n, v) in enumerate(zip(names, workload.feeds, strict=True))}
    executor = Executor(excluded_libraries=excluded)
    return lambda: executor.run(program, feed, [loss], scope)


def oprack_eager(workload: Workload, threads: int) -> Run:
    """The same model written with oprack's modules, call by call, with random weights of its own."""
    return _written(workload, jit=False)


def oprack_jit(workload: Workload, threads: int) -> Run:
    """The same model through oprack.jit."""
    return _written(workload, jit=True)


def _written(workload: Workload, jit: bool) -> Run:
    from oprack_training import STEPS

    names = _files(workload)[2]
    feeds = dict(zip(names, workload.feeds, strict=True))
    step = STEPS[workload.name.removeprefix("train ")](feeds, jit)
    return lambda: [step().numpy()]


def paddle(workload: Workload) -> Run:
    """Paddle's executor."""
    import paddle

    paddle.enable_static()
    data, init, names, loss = _files(workload)
    program, scope = paddle.static.Program.parse_from_string(data), paddle.static.Scope()
    place = paddle.CPUPlace()
    for name, value in init.items():
        scope.var(name).get_tensor().set(value, place)
    feed = {}
    for i, (name, value) in enumerate(zip(names, workload.feeds, strict=True)):
        tensor = paddle.base.LoDTensor()
        tensor.set(value, place)
        if i in workload.lods:
            tensor.set_lod(workload.lods[i])
        feed[name] = tensor
    executor = paddle.static.Executor(place)
    target = program.global_block().var(loss)

    def run() -> list[np.ndarray]:
        with paddle.static.scope_guard(scope):
            return executor.run(program, feed=feed, fetch_list=[target])

    return run


def torch(workload: Workload) -> Run:
    """The same model written for PyTorch (torch_training.py), with random weights of its own."""
    from torch_training import STEPS

    names = _files(workload)[2]
    step = STEPS[workload.name.removeprefix("train ")](dict(zip(names, workload.feeds, strict=True)), workload.lods)
    return lambda: [step().detach().numpy()]
