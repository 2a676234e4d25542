"""One engine of bench_sequences.py: sequences_worker.py ENGINE PADDING THREADS FOLDER, then a line for each run."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

LAYERS, WIDTH, HEADS, INNER, SENTENCES, LONGEST = 4, 512, 8, 2048, 32, 128
Runs = dict[str, Callable[[], object]]


def lengths_of(padding: float) -> list[int]:
    """Lengths of the sentences, of which one is the longest."""
    draws = np.random.default_rng(1).beta(2, 3, SENTENCES)
    draws[0] = 1
    wanted = round(SENTENCES * LONGEST * (1 - padding))
    low, high = 0.0, 1000.0
    for _ in range(50):  # the factor by which the sum is as wanted
        factor = (low + high) / 2
        found = np.clip(np.round(draws * factor * LONGEST), 1, LONGEST).astype(int)
        found[0] = LONGEST
        low, high = (factor, high) if found.sum() < wanted else (low, factor)
    return found.tolist()


def oprack_runs(lengths: list[int], padded: bool) -> Runs:
    import oprack
    from oprack import nn, to_tensor

    oprack.seed(1)
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, 0.1, "gelu")
    net = nn.TransformerEncoder(layer, LAYERS)
    drawn = np.random.default_rng(0).standard_normal
    if padded:
        x, mask = to_tensor(drawn((SENTENCES, LONGEST, WIDTH)).astype("float32")), _mask(lengths)
        arguments = (x, to_tensor(np.where(mask, 0, -1e9).astype("float32")[:, None, None]))
        counts = to_tensor(mask.astype("float32")[..., None] / (mask.sum() * WIDTH))
    else:
        offsets = np.cumsum([0, *lengths]).tolist()
        arguments = (to_tensor(drawn((sum(lengths), WIDTH)).astype("float32"), lod=[offsets]),)
        counts = None
    adam = oprack.optimizer.Adam(1e-4, parameters=net.parameters())
    compiled = oprack.jit(net)

    def forward() -> object:
        net.eval()
        with oprack.no_grad():
            return compiled(*arguments).numpy()

    def step() -> object:
        net.train()
        y = compiled(*arguments)
        loss = (y * y).mean() if counts is None else (y * y * counts).sum()
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss.item()

    return {"forward": forward, "step": step}


def torch_runs(lengths: list[int], threads: int, folder: Path) -> Runs:
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, 0.1, "gelu", batch_first=True)
    net = torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
    drawn = np.random.default_rng(0).standard_normal((SENTENCES, LONGEST, WIDTH)).astype("float32")
    x, mask = torch.from_numpy(drawn), _mask(lengths)
    missing = None if mask.all() else torch.from_numpy(~mask)
    counts = torch.from_numpy(mask.astype("float32")[..., None] / (mask.sum() * WIDTH))
    adam = torch.optim.Adam(net.parameters(), 1e-4)

    def forward() -> object:
        net.eval()
        with torch.inference_mode():
            return net(x, src_key_padding_mask=missing)

    def step() -> object:
        net.train()
        adam.zero_grad()
        y = net(x, src_key_padding_mask=missing)
        loss = (y * y * counts).sum()
        loss.backward()
        adam.step()
        return loss.item()

    _export(net.eval(), x, missing, folder / "encoder.onnx")
    return {"forward": forward, "step": step}


def _export(net: object, x: object, missing: object, file: Path) -> None:
    """The encoder as ONNX Runtime reads it."""
    import torch

    given = (x,) if missing is None else (x, None, missing)
    torch.backends.mha.set_fastpath_enabled(False)  # its op has no form in ONNX
    with contextlib.redirect_stdout(sys.stderr):
        torch.onnx.export(net, given, str(file), dynamo=False, opset_version=17)
    torch.backends.mha.set_fastpath_enabled(True)


def onnxruntime_runs(lengths: list[int], threads: int, folder: Path) -> Runs:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(str(folder / "encoder.onnx"), options, providers=["CPUExecutionProvider"])
    drawn = np.random.default_rng(0).standard_normal((SENTENCES, LONGEST, WIDTH)).astype("float32")
    names = [i.name for i in session.get_inputs()]
    feeds = dict(zip(names, (drawn, ~_mask(lengths)), strict=False))
    return {"forward": lambda: session.run(None, feeds)}


def _mask(lengths: list[int]) -> np.ndarray:
    return np.arange(LONGEST) < np.array(lengths)[:, None]


def main() -> None:
    engine, padding, threads, folder = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    lengths = lengths_of(padding)
    if engine.startswith("oprack"):
        runs = oprack_runs(lengths, engine == "oprack padded")
    elif engine == "torch":
        runs = torch_runs(lengths, threads, folder)
    else:
        runs = onnxruntime_runs(lengths, threads, folder)
    for run in runs.values():
        for _ in range(3):
            run()
    print(json.dumps({"rows": sum(lengths)}), flush=True)
    for line in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        runs[line.strip()]()
        print(json.dumps({"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}), flush=True)


if __name__ == "__main__":
    main()
