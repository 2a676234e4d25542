"""The engines that take part, each behind one function: load(workload, threads) -> run() -> outputs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from workloads import Workload

Run = Callable[[], list[np.ndarray]]


def _paddle_interface(module: object, workload: Workload, threads: int, onednn: bool) -> Run:
    """Paddle and oprack share this interface."""
    inference = module
    if workload.model.is_dir():
        config = inference.Config(str(workload.model))
    else:
        params = workload.model.with_name(workload.model.name + ".pdiparams")
        config = inference.Config(str(workload.model) + ".pdmodel", str(params))
    config.disable_gpu()
    config.set_cpu_math_library_num_threads(threads)
    config.switch_ir_optim(True)
    config.enable_memory_optim()
    if onednn:
        config.enable_mkldnn()
    else:
        config.disable_mkldnn()
    if hasattr(config, "disable_glog_info"):
        config.disable_glog_info()
    predictor = inference.create_predictor(config)
    handles = [predictor.get_input_handle(n) for n in predictor.get_input_names()]
    outputs = [predictor.get_output_handle(n) for n in predictor.get_output_names()]

    def run() -> list[np.ndarray]:
        for i, (handle, value) in enumerate(zip(handles, workload.feeds, strict=True)):
            handle.copy_from_cpu(value)
            if i in workload.lods:
                handle.set_lod(workload.lods[i])
        predictor.run()
        return [out.copy_to_cpu() for out in outputs]

    return run


def _training_files(workload: Workload) -> tuple[bytes, dict[str, np.ndarray], list[str], str]:
    """Program, initial parameters, names of the feeds and of the loss."""
    with np.load(workload.model / "init.npz", allow_pickle=False) as archive:
        init = dict(archive)
    with np.load(workload.model / "feeds.npz", allow_pickle=False) as archive:
        names = archive.files
    loss = json.loads((workload.model / "meta.json").read_text())["loss"]
    return (workload.model / "main.pdmodel").read_bytes(), init, names, loss


def _train_oprack(workload: Workload, excluded: tuple[str, ...]) -> Run:
    from oprack import Executor, LoDTensor, Program, Scope

    data, init, names, loss = _training_files(workload)
    program, scope = Program.parse(data), Scope()
    for name, value in init.items():
        scope.var(name).set(value)
    feed = {n: LoDTensor(v, workload.lods.get(i)) for i, (n, v) in enumerate(zip(names, workload.feeds, strict=True))}
    executor = Executor(excluded_libraries=excluded)
    return lambda: executor.run(program, feed, [loss], scope)


def _train_paddle(workload: Workload) -> Run:
    import paddle

    paddle.enable_static()
    data, init, names, loss = _training_files(workload)
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


def oprack(workload: Workload, threads: int) -> Run:
    """oprack's predictor or executor, with every installed plugin."""
    if workload.training:
        return _train_oprack(workload, ())
    import warnings

    from oprack import inference

    warnings.simplefilter("ignore", inference.NoEffectWarning)
    return _paddle_interface(inference, workload, threads, onednn=True)


def oprack_numpy(workload: Workload, threads: int) -> Run:
    """oprack with NumPy kernels alone."""
    if workload.training:
        return _train_oprack(workload, ("onednn",))
    import warnings

    from oprack import inference

    warnings.simplefilter("ignore", inference.NoEffectWarning)
    return _paddle_interface(inference, workload, threads, onednn=False)


def paddle(workload: Workload, threads: int) -> Run:
    """Paddle 2.6.2; inference with its passes and oneDNN, the fastest of its settings on all these models."""
    if workload.training:
        return _train_paddle(workload)
    from paddle import inference

    return _paddle_interface(inference, workload, threads, onednn=True)


def onnxruntime(workload: Workload, threads: int) -> Run:
    """ONNX Runtime on the CPU."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = ort.InferenceSession(str(workload.onnx), options, providers=["CPUExecutionProvider"])
    feed = {i.name: v for i, v in zip(session.get_inputs(), workload.feeds, strict=True)}
    return lambda: session.run(None, feed)


def torch(workload: Workload, threads: int) -> Run:
    """PyTorch, where a workload is written for it (torch_models.py)."""
    import torch as module
    from torch_models import build

    module.set_num_threads(threads)
    model = build(workload.name)
    feeds = [module.from_numpy(v) for v in workload.feeds]

    def run() -> list[np.ndarray]:
        with module.inference_mode():
            return [model(*feeds).numpy()]

    return run


ENGINES = {
    "oprack": oprack,
    "oprack (NumPy)": oprack_numpy,
    "paddle": paddle,
    "onnxruntime": onnxruntime,
    "torch": torch,
}


def serves(engine: str, workload: Workload) -> bool:
    """Whether an engine can take part in a workload."""
    if engine == "onnxruntime":
        return workload.onnx is not None and Path(workload.onnx).exists()
    if engine == "torch":
        return workload.name.endswith("tiny ops")
    return True
