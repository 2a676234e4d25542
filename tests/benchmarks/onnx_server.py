"""ONNX Runtime behind `oprack serve`: the same server, with an ONNX model in the place of the predictor.

    python tests/benchmarks/onnx_server.py ONNX SITE_PACKAGES MODEL [options of oprack serve]

ONNX is the same model as MODEL, whose names and dims the server shows. ONNX Runtime is imported from SITE_PACKAGES, of
an environment with this version of Python, behind what this environment has itself.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from oprack.tensor import LoDTensor


class _Handle:
    def __init__(self) -> None:
        self.array: Any = None

    def share_external_data(self, value: LoDTensor) -> None:
        self.array = value.array

    def copy_to_cpu(self) -> np.ndarray:
        return self.array

    def lod(self) -> list[list[int]]:
        return []


class OnnxPredictor:
    """What the server uses of a predictor, over ONNX Runtime; inputs and outputs in the order of the ONNX model's."""

    def __init__(self, onnx: str, threads: int, inputs: list[str], outputs: list[str]) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        self._session = onnxruntime.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])
        self._names = [tensor.name for tensor in self._session.get_inputs()]
        self._inputs, self._outputs = {n: _Handle() for n in inputs}, {n: _Handle() for n in outputs}

    def get_input_names(self) -> list[str]:
        return list(self._inputs)

    def get_output_names(self) -> list[str]:
        return list(self._outputs)

    def get_input_handle(self, name: str) -> _Handle:
        return self._inputs[name]

    def get_output_handle(self, name: str) -> _Handle:
        return self._outputs[name]

    def run(self) -> None:
        feeds = {n: handle.array for n, handle in zip(self._names, self._inputs.values(), strict=True)}
        for handle, found in zip(self._outputs.values(), self._session.run(None, feeds), strict=True):
            handle.array = found


def run_host(onnx: str, site_packages: str, arguments: list[str]) -> int:
    """The host process, which loads the ONNX model."""
    sys.path.append(site_packages)
    from oprack_serve import host

    own_load = host.load

    def load(*arguments: Any) -> tuple[Any, Any, Any]:
        _, signature, proof = own_load(*arguments)
        names = [[spec.name for spec in specs] for specs in (signature.inputs, signature.outputs)]
        return OnnxPredictor(onnx, int(os.environ["OMP_NUM_THREADS"]), *names), signature, proof

    host.load = load
    return host.main(arguments)


def run_server(onnx: str, site_packages: str, arguments: list[str]) -> int:
    """The server, whose host processes are this script again."""
    from oprack.cli.main import main
    from oprack_serve import model

    model.HOST = (sys.executable, str(Path(__file__).resolve()), "--host", onnx, site_packages)
    return main(["serve", *arguments])


if __name__ == "__main__":
    if sys.argv[1] == "--host":
        sys.exit(run_host(sys.argv[2], sys.argv[3], sys.argv[4:]))
    sys.exit(run_server(sys.argv[1], sys.argv[2], sys.argv[3:]))
