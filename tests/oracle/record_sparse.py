"""Records what Paddle 2.6.2 computes for the calls of op_packages/sparse/tests/sparse_calls.py.

python tests/oracle/record_sparse.py    # with paddlepaddle==2.6.2; writes op_packages/sparse/tests/data

paddle.npz: `<call>/<part>` of results, and `<call>/grad<i>`, the dense gradient of input i when the result is weighted
with `cotangent`. What Paddle has no kernel for on the CPU is left out. programs.npz: static programs with their feeds
and answers.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import paddle

TESTS = Path(__file__).parents[2] / "op_packages" / "sparse" / "tests"
sys.path.insert(0, str(TESTS))

from sparse_calls import CALLS, COO, cotangent, given, parts  # noqa: E402


def isolated(work: Callable[[], dict[str, np.ndarray]], name: str) -> dict[str, np.ndarray]:
    """What a function gives in a process of its own, since some of Paddle's kernels end theirs."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "found.npz"
        child = os.fork()
        if not child:
            signal.alarm(5)  # some hang when their memory is broken
            status = 1
            try:
                np.savez(file, **work())
                status = 0
            except Exception as error:
                print(f"{name}: {str(error).strip().splitlines()[-1][:150]}", flush=True)
            os._exit(status)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            print(f"{name}: Paddle crashed", flush=True)
        if not file.exists() or status:
            return {}
        with np.load(file) as found:
            return {f"{name}/{key}": found[key] for key in found}


def record_call(call: Any, inputs: Any, gradients: bool) -> dict[str, np.ndarray]:
    tensors = [given(paddle.sparse, paddle.to_tensor, value, False) for value in inputs]
    for tensor in tensors:
        tensor.stop_gradient = False
    out = call(paddle.sparse, *tensors)
    found = dict(parts(out))
    if not gradients:
        return found
    weights = cotangent(out.shape)
    if out.is_sparse_csr():  # Paddle can't differentiate its to_dense()
        at = csr_coordinates(found["crows"], found["cols"], out.shape)
        grad = paddle.sparse.sparse_csr_tensor(out.crows(), out.cols(), weights[at].astype("float32"), out.shape)
        out.backward(grad)
    else:
        whole = out if "dense" in found else out.to_dense()
        (whole * paddle.to_tensor(weights)).sum().backward()
    for i, tensor in enumerate(tensors):
        if tensor.grad is not None:
            sparse = tensor.grad.is_sparse_coo() or tensor.grad.is_sparse_csr()
            found[f"grad{i}"] = (tensor.grad.to_dense() if sparse else tensor.grad).numpy()
    return found


def csr_coordinates(crows: np.ndarray, cols: np.ndarray, shape: Any) -> tuple[np.ndarray, ...]:
    offsets = crows.reshape(-1, shape[-2] + 1)
    at = [(b, r) for b, row in enumerate(offsets) for r in range(shape[-2]) for _ in range(row[r], row[r + 1])]
    batch, rows = np.array(at, np.int64).reshape(-1, 2).T
    return (rows, cols) if len(shape) == 2 else (batch, rows, cols)


def record_calls() -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for name, (call, inputs) in CALLS.items():
        got = isolated(partial(record_call, call, inputs, True), name)
        found |= got or isolated(partial(record_call, call, inputs, False), name)
    return found


def record_programs() -> dict[str, np.ndarray]:
    indices, values, shape = COO.arrays
    bodies: dict[str, Any] = {
        "relu": lambda x: paddle.sparse.nn.functional.relu(x),
        "softmax": lambda x: paddle.sparse.nn.functional.softmax(x),
        "sum": lambda x: paddle.sparse.sum(x, axis=1, keepdim=True),
        "slice": lambda x: paddle.sparse.slice(x, [0, 1], [0, 1], [2, 4]),
        "reshape": lambda x: paddle.sparse.reshape(x, [4, 3]),
        "add": lambda x: paddle.sparse.add(x, x),
    }
    found: dict[str, np.ndarray] = {}
    paddle.enable_static()
    for name, body in bodies.items():
        main = paddle.static.Program()
        with paddle.static.program_guard(main, paddle.static.Program()):
            i = paddle.static.data("indices", indices.shape, "int64")
            v = paddle.static.data("values", values.shape, "float32")
            out = body(paddle.sparse.sparse_coo_tensor(i, v, list(shape)))
            answers = [out.to_dense(), out.indices(), out.values()]
            try:
                got = paddle.static.Executor().run(main, {"indices": indices, "values": values}, answers)
            except Exception as error:
                print(f"program {name}: {str(error).strip().splitlines()[-1][:150]}")
                continue
        found[f"{name}/program"] = np.frombuffer(main.desc.serialize_to_string(), np.uint8)
        found[f"{name}/fetch"] = np.array([a.name for a in answers])
        found |= {f"{name}/{k}": np.asarray(a) for k, a in zip(("dense", "indices", "values"), got, strict=True)}
    return found


if __name__ == "__main__":
    (TESTS / "data").mkdir(exist_ok=True)
    np.savez_compressed(TESTS / "data" / "paddle.npz", **record_calls())
    np.savez_compressed(TESTS / "data" / "programs.npz", **record_programs())
