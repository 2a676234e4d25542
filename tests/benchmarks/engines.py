"""The engines that take part, each behind one function: load(workload, threads) -> run() -> outputs."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pipeline
import training
from workloads import Workload

Run = Callable[[], list[np.ndarray]]


def _predictor(
    inference: Any,
    model: Path,
    threads: int,
    onednn: bool,
    passes: bool = True,
    precision: str = "float32",
    kept: Path | None = None,
) -> Any:
    """Paddle and oprack share this interface. kept: for oprack.

    precision: "float32", "bfloat16", "int8" or "int8+bfloat16".
    """
    if model.is_dir():
        config = inference.Config(str(model))
    else:
        config = inference.Config(f"{model}.pdmodel", f"{model}.pdiparams")
    config.disable_gpu()
    config.set_cpu_math_library_num_threads(threads)
    config.switch_ir_optim(passes)
    config.enable_memory_optim()
    if onednn:
        config.enable_mkldnn()
        if precision == "bfloat16":
            config.enable_mkldnn_bfloat16()
        elif precision == "int8":
            config.enable_mkldnn_int8()
        elif precision == "int8+bfloat16":
            config.enable_mkldnn_int8()
            config.enable_mkldnn_bfloat16()
    else:
        config.disable_mkldnn()
    config.disable_glog_info()
    if kept is not None:
        config.set_optim_cache_dir(str(kept))
    return inference.create_predictor(config)


def _session(model: Any) -> Callable[..., list[np.ndarray]]:
    """A predictor as a function of its inputs and their LoD."""
    handles = [model.get_input_handle(n) for n in model.get_input_names()]
    outputs = [model.get_output_handle(n) for n in model.get_output_names()]

    def run(feeds: list[np.ndarray], lods: dict[int, list[list[int]]]) -> list[np.ndarray]:
        for i, (handle, value) in enumerate(zip(handles, feeds, strict=True)):
            handle.copy_from_cpu(value)
            if i in lods:
                handle.set_lod(lods[i])
        model.run()
        return [out.copy_to_cpu() for out in outputs]

    return run


def _paddle_interface(
    inference: Any,
    workload: Workload,
    threads: int,
    onednn: bool,
    is_paddle: bool = False,
    precision: str = "float32",
) -> Run:
    if workload.kind == "pipeline":

        def load(part: str) -> pipeline.Model:
            model = _session(_predictor(inference, pipeline.paddle_files(part), threads, onednn, precision=precision))
            return lambda x: model([x], {})

        return pipeline.pipeline(load, threads, is_paddle)
    # the time that Paddle's passes need grows with the square of the ops, which is minutes for 10,000
    passes = not (is_paddle and workload.chain > 1000)
    kept = None if is_paddle else workload.kept  # Paddle 2.6 keeps nothing of a model for the CPU
    return _over(workload, _session(_predictor(inference, workload.model, threads, onednn, passes, precision, kept)))


def _over(workload: Workload, model: Callable[..., list[np.ndarray]]) -> Run:
    """A model over the inputs of a workload, one after the other."""
    inputs = workload.inputs()
    return lambda: model(*next(inputs))


def _oprack(workload: Workload, threads: int, onednn: bool, precision: str = "float32") -> Run:
    if workload.kind == "training":
        return training.oprack(workload, () if onednn else ("onednn",))
    import warnings

    from oprack import inference

    warnings.simplefilter("ignore", inference.NoEffectWarning)
    return _paddle_interface(inference, workload, threads, onednn, precision=precision)


def oprack(workload: Workload, threads: int) -> Run:
    """oprack's predictor or executor, with every installed plugin."""
    return _oprack(workload, threads, onednn=True)


def oprack_bfloat16(workload: Workload, threads: int) -> Run:
    """oprack's predictor, whose convolutions and products with weights round their factors to bfloat16."""
    return _oprack(workload, threads, onednn=True, precision="bfloat16")


def oprack_int8(workload: Workload, threads: int) -> Run:
    """oprack's predictor in int8, of a model that oprack quantises by the workload's own inputs."""
    import quantised

    return _oprack(replace(workload, model=quantised.by_oprack(workload)), threads, onednn=True, precision="int8")


def oprack_mixed(workload: Workload, threads: int) -> Run:
    """The same, with what stays float in bfloat16."""
    import quantised

    model = replace(workload, model=quantised.by_oprack(workload))
    return _oprack(model, threads, onednn=True, precision="int8+bfloat16")


def oprack_numpy(workload: Workload, threads: int) -> Run:
    """oprack with NumPy kernels alone."""
    os.environ["OPRACK_BLOCK"] = "numba,onnxruntime"  # before packs are looked for
    return _oprack(workload, threads, onednn=False)


def oprack_numba(workload: Workload, threads: int) -> Run:
    """oprack as on a machine without oneDNN, with the plugin numba."""
    os.environ["OPRACK_BLOCK"] = "onnxruntime"
    return _oprack(workload, threads, onednn=False)


def oprack_onnxruntime(workload: Workload, threads: int) -> Run:
    """oprack as on a machine without oneDNN, with the plugin onnxruntime."""
    os.environ["OPRACK_BLOCK"] = "numba"
    return _oprack(workload, threads, onednn=False)


def bare_kernels(workload: Workload, threads: int) -> Run:
    """The kernels of oprack (NumPy) without a plan: what is left is the plan's own cost."""
    from bare_kernels import chain

    return chain(workload)


def paddle(workload: Workload, threads: int) -> Run:
    """Paddle 2.6.2; inference with its passes and oneDNN, the fastest of its settings on all these models."""
    if workload.kind == "training":
        return training.paddle(workload)
    from paddle import inference

    return _paddle_interface(inference, workload, threads, onednn=True, is_paddle=True)


def paddle_bfloat16(workload: Workload, threads: int) -> Run:
    """Paddle 2.6.2 with enable_mkldnn_bfloat16."""
    from paddle import inference

    return _paddle_interface(inference, workload, threads, onednn=True, is_paddle=True, precision="bfloat16")


def onnxruntime_int8(workload: Workload, threads: int) -> Run:
    """ONNX Runtime with a model that its own tool quantises by the workload's own inputs."""
    import quantised

    return onnxruntime(replace(workload, onnx=quantised.by_onnxruntime(workload)), threads)


def openvino_int8(workload: Workload, threads: int) -> Run:
    """OpenVINO with the model that ONNX Runtime's tool quantised."""
    import quantised

    return _openvino(replace(workload, model=quantised.by_onnxruntime(workload)), threads, "f32")


def onnxruntime(workload: Workload, threads: int) -> Run:
    """ONNX Runtime on the CPU."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1

    def session(path: Path | None) -> Any:
        return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    if workload.kind == "pipeline":

        def load(part: str) -> pipeline.Model:
            model = session(pipeline.onnx_file(workload, part))
            (name,) = (i.name for i in model.get_inputs())
            return lambda x: model.run(None, {name: x})

        return pipeline.pipeline(load, threads, False)
    model = session(workload.onnx if workload.kept is None else _optimised(workload, options))
    names = [i.name for i in model.get_inputs()]

    return _over(workload, lambda feeds, lods: model.run(None, dict(zip(names, feeds, strict=True))))


def _optimised(workload: Workload, options: Any) -> Path:
    """The model that ONNX Runtime wrote after its own passes; where there is none, it is written while it is loaded."""
    import onnxruntime as ort

    assert workload.onnx is not None
    assert workload.kept is not None
    file = workload.kept / "model.onnx"
    if file.exists():
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        return file
    workload.kept.mkdir(parents=True)
    options.optimized_model_filepath = str(file)
    return workload.onnx


def openvino(workload: Workload, threads: int) -> Run:
    """OpenVINO, which reads Paddle's files itself, in float32."""
    return _openvino(workload, threads, "f32")


def openvino_bfloat16(workload: Workload, threads: int) -> Run:
    """OpenVINO in bfloat16, its own choice where the CPU has instructions for it."""
    return _openvino(workload, threads, "bf16")


_COMPILED: dict[Path, Any] = {}


def _openvino(workload: Workload, threads: int, precision: str) -> Run:
    import openvino as ov

    # requests of one compiled model run side by side, on a stream each, where there are more CPUs than threads
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else threads
    settings = {
        "INFERENCE_NUM_THREADS": cpus,
        "INFERENCE_PRECISION_HINT": precision,
        "NUM_STREAMS": max(1, cpus // threads),
    }

    def session(path: Path) -> Callable[[list[np.ndarray]], list[np.ndarray]]:
        if path not in _COMPILED:
            core = ov.Core()
            file = path if path.suffix == ".onnx" else f"{path}.pdmodel"
            if workload.kept is None:
                _COMPILED[path] = core.compile_model(core.read_model(str(file)), "CPU", settings)
            else:  # given the file, it reads no model that it has kept
                core.set_property({"CACHE_DIR": str(workload.kept)})
                _COMPILED[path] = core.compile_model(str(file), "CPU", settings)
        request = _COMPILED[path].create_infer_request()
        return lambda feeds: [np.array(v) for v in request.infer(feeds).values()]

    if workload.kind == "pipeline":

        def load(part: str) -> pipeline.Model:
            model = session(pipeline.paddle_files(part))
            return lambda x: model([x])

        return pipeline.pipeline(load, threads, False)
    model = session(workload.model)
    return _over(workload, lambda feeds, lods: model(feeds))


def torch(workload: Workload, threads: int) -> Run:
    """PyTorch, where a workload is written for it (torch_models.py, torch_training.py)."""
    import torch as module

    module.set_num_threads(threads)
    module.manual_seed(0)
    if workload.kind == "training":
        return training.torch(workload)
    from torch_models import build

    model = build(workload)
    feeds = [module.from_numpy(v) for v in workload.feeds]

    def run() -> list[np.ndarray]:
        with module.inference_mode():
            return [model(*feeds).numpy()]

    return run


ENGINES: dict[str, Callable[[Workload, int], Run]] = {
    "oprack": oprack,
    "oprack before": oprack,
    "oprack bf16": oprack_bfloat16,
    "oprack int8": oprack_int8,
    "oprack int8+bf16": oprack_mixed,
    "oprack (NumPy)": oprack_numpy,
    "oprack (numba)": oprack_numba,
    "oprack (ORT)": oprack_onnxruntime,
    "oprack eager": training.oprack_eager,
    "oprack jit": training.oprack_jit,
    "bare kernels": bare_kernels,
    "paddle": paddle,
    "paddle bf16": paddle_bfloat16,
    "onnxruntime": onnxruntime,
    "onnxruntime int8": onnxruntime_int8,
    "openvino": openvino,
    "openvino bf16": openvino_bfloat16,
    "openvino int8": openvino_int8,
    "torch": torch,
}
BEFORE = "oprack before"  # another checkout of oprack, run by its own environment
_WRITTEN = ("oprack eager", "oprack jit")
_LOW = ("oprack bf16", "oprack int8", "oprack int8+bf16")
OURS = ("oprack", BEFORE, *_LOW, "oprack (NumPy)", "oprack (numba)", "oprack (ORT)", *_WRITTEN, "bare kernels")
_HALF = ("oprack bf16", "openvino bf16", "paddle bf16")
_INTEGERS = ("oprack int8", "oprack int8+bf16", "openvino int8", "onnxruntime int8")
LOW_PRECISION = (*_HALF, *_INTEGERS)
"""Engines whose outputs are rounded more than float32's."""
PRECISIONS = ("paddle bf16", *_INTEGERS)
"""Engines that take part where they are named, or where precisions are compared."""
USUAL = tuple(e for e in ENGINES if e not in PRECISIONS)
"""All others. To quantise a chain of a hundred ops takes OpenVINO's tools minutes."""
_PEERS = tuple(e for e in ENGINES if e not in (*OURS, *LOW_PRECISION))
TORCH_MODELS = ("resnet50", "mobilenet_v2", "bert_base")


def peers_of(engine: str) -> tuple[str, ...]:
    """The engines to the best of which the ratios of an engine of ours are taken: those of its precision."""
    own = next((group for group in (_HALF, _INTEGERS) if engine in group), None)
    return _PEERS if own is None else tuple(e for e in own if e not in OURS)


def serves(engine: str, workload: Workload) -> bool:
    """Whether an engine can take part in a workload."""
    if engine in ("oprack bf16", "paddle bf16"):
        return workload.kind != "training" and not workload.chain
    if engine in _WRITTEN:
        return workload.name in training.WRITTEN
    if engine == "bare kernels":
        return workload.chain > 0
    if engine in _INTEGERS:
        return workload.kind == "inference" and workload.onnx is not None and workload.onnx.exists()
    if engine.startswith("openvino"):
        # it reads programs of one file, and knows no LoD
        return workload.kind != "training" and not workload.lods and not workload.model.is_dir()
    if engine == "onnxruntime":
        return workload.onnx is not None and workload.onnx.exists()
    if engine == "torch":
        return workload.chain > 0 or workload.kind == "training" or workload.name.split()[0] in TORCH_MODELS
    return True


def comparable(engine: str, workload: Workload) -> bool:
    """Whether an engine's outputs are those of the others: nets written by hand have weights of their own."""
    return engine not in _WRITTEN and (engine != "torch" or workload.chain > 0)
