"""Cases of ops as Paddle 2.6.2 answers them: writes tests/data/cases/<folder>/<op>.npz, in the format of its README.

    python tests/oracle/record_cases.py definitions.py FOLDER

A definition file has a list CASES of dicts: `op` (the file the case goes to), `ops` (type, inputs, outputs and attrs
of each, slots with lists of names), `feeds` (name -> array, or (array, lengths per level)), `fetch`, and `wrt`, inputs
whose gradients are recorded. `arrays` names the variables that are tensor arrays, `dtypes` gives that of outputs
other than float32 that Paddle infers none for. Cases that Paddle refuses are printed and left out.
"""

from __future__ import annotations

import json
import runpy
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from paddle.base import core

CASES = Path(__file__).parents[1] / "data" / "cases"
RTOL = {"float32": 1e-4, "float64": 1e-7, "float16": 4e-3}
ORACLE = f"paddlepaddle {paddle.__version__} CPU"


class Store:
    """Arrays by key, one flat buffer per dtype."""

    def __init__(self) -> None:
        self.buffers: dict[str, list[np.ndarray]] = {}
        self.sizes: dict[str, int] = {}

    def add(self, array: np.ndarray) -> list[Any]:
        name = array.dtype.name
        offset = self.sizes.get(name, 0)
        self.buffers.setdefault(name, []).append(array.reshape(-1))
        self.sizes[name] = offset + array.size
        return [name, offset, list(array.shape)]

    def arrays(self) -> dict[str, np.ndarray]:
        return {f"data_{name}": np.concatenate(parts) for name, parts in self.buffers.items()}


def _feed(value: Any) -> tuple[np.ndarray, list[list[int]]]:
    return value if isinstance(value, tuple) else (value, [])


def _lod_tensor(array: np.ndarray, lengths: list[list[int]]) -> Any:
    tensor = core.LoDTensor()
    tensor.set(array, paddle.CPUPlace())
    if lengths:
        tensor.set_recursive_sequence_lengths(lengths)
    return tensor


def _create_output(block: Any, name: str, case: dict[str, Any]) -> None:
    if name in case.get("arrays", ()):
        kind = core.VarDesc.VarType.LOD_TENSOR_ARRAY
        block.create_var(name=name, type=kind, dtype=case.get("array_dtype", "float32"))
    elif not block.has_var(name):
        block.create_var(name=name, dtype=case.get("dtypes", {}).get(name, "float32"))


def _gradients(block: Any, case: dict[str, Any], cotangents: dict[str, np.ndarray]) -> dict[str, str]:
    """Append the gradients of `wrt`; variable -> the variable of its gradient, where there is one."""
    given = []
    for name, array in cotangents.items():
        given.append(block.create_var(name=f"{name}@COT", shape=block.var(name).shape, dtype=array.dtype.name))
    targets, wrt = [block.var(n) for n in cotangents], [block.var(n) for n in case["wrt"]]
    found = zip(case["wrt"], paddle.static.gradients(targets, wrt, given), strict=True)
    return {name: var.name for name, var in found if var is not None}


def _program(case: dict[str, Any], cotangents: dict[str, np.ndarray] | None = None) -> tuple[Any, dict[str, str]]:
    """The program of a case, with gradients of `wrt` when cotangents are given: (program, wrt -> variable)."""
    program = paddle.static.Program()
    gradients = {}
    with paddle.static.program_guard(program, paddle.static.Program()):
        block = program.global_block()
        for name, value in case["feeds"].items():
            array, lengths = _feed(value)
            var = block.create_var(name=name, shape=array.shape, dtype=array.dtype.name, lod_level=len(lengths))
            var.stop_gradient = name not in case.get("wrt", ())
            var.desc.set_need_check_feed(False)
        for op_type, inputs, outputs, attrs in case["ops"]:
            for name in (name for names in outputs.values() for name in names):
                _create_output(block, name, case)
            block.append_op(
                type=op_type,
                inputs={s: [block.var(n) for n in names] for s, names in inputs.items()},
                outputs={s: [block.var(n) for n in names] for s, names in outputs.items()},
                attrs=dict(attrs),
            )
        if cotangents is not None:
            gradients = _gradients(block, case, cotangents)
    for block in program.blocks:
        for op in block.ops:
            op._remove_attr("op_callstack")
    return program, gradients


def _run(program: Any, feeds: dict[str, Any], fetch: list[str]) -> list[Any]:
    values = {n: _lod_tensor(*_feed(v)) for n, v in feeds.items()}
    executor, scope = paddle.static.Executor(paddle.CPUPlace()), core.Scope()
    with paddle.static.scope_guard(scope):
        return executor.run(program, feed=values, fetch_list=fetch, return_numpy=False)


def _info(tensor: Any) -> tuple[np.ndarray, dict[str, Any]]:
    array = np.array(tensor)
    info: dict[str, Any] = {"kind": "dense", "dtype": array.dtype.name, "shape": list(array.shape)}
    lengths = tensor.recursive_sequence_lengths()
    if lengths:
        info["lod"] = lengths
    size = float(np.abs(array[np.isfinite(array)]).max(initial=0)) if array.dtype.kind == "f" else 0.0
    rtol = RTOL.get(array.dtype.name, 0.0)
    return array, info | {"rtol": rtol, "atol": rtol / 100 * max(size, 1e-3)}


def record(case: dict[str, Any], name: str, store: Store) -> dict[str, Any]:
    """The header of a case, its arrays in `store`."""
    arrays: dict[str, Any] = {}
    program, _ = _program(case)
    fetched = _run(program, case["feeds"], case["fetch"])
    main = next(op for op in case["ops"] if op[0] == case["op"])
    header: dict[str, Any] = {
        "id": name,
        "op_type": case["op"],
        "attrs": main[3],
        "inputs": main[1],
        "outputs": main[2],
    }
    header |= {"kind": "program" if len(case["ops"]) > 1 else "generated", "origin": "generated", "oracle": ORACLE}
    header |= {"source": case.get("source", ""), "feeds": {}, "fetch": []}
    arrays["program"] = store.add(np.frombuffer(program.desc.serialize_to_string(), np.uint8))
    for key, value in case["feeds"].items():
        array, lengths = _feed(value)
        header["feeds"][key] = {"kind": "dense", "dtype": array.dtype.name, "shape": list(array.shape)}
        header["feeds"][key] |= {"lod": lengths} if lengths else {}
        arrays[f"feed:{key}"] = store.add(array)
    rng, cotangents = np.random.default_rng(zlib.crc32(name.encode())), {}
    for key, tensor in zip(case["fetch"], fetched, strict=True):
        array, info = _info(tensor)
        header["fetch"].append({"name": key} | info)
        arrays[f"out:{key}"] = store.add(array)
        if array.dtype.kind == "f" and key not in case.get("no_cotangent", ()):
            cotangents[key] = (rng.integers(-24, 25, array.shape) / 16).astype(array.dtype)
    if case.get("wrt"):
        program, gradients = _program(case, cotangents)
        fed = {f"{k}@COT": v for k, v in cotangents.items()}
        got = _run(program, case["feeds"] | fed, list(gradients.values()))
        arrays["program_grad"] = store.add(np.frombuffer(program.desc.serialize_to_string(), np.uint8))
        header["grad"] = {"wrt": [], "cotangents": [], "ops": [op.type for op in program.global_block().ops]}
        for key, array in cotangents.items():
            cotangent = {"var": f"{key}@COT", "target": key, "dtype": array.dtype.name, "shape": list(array.shape)}
            header["grad"]["cotangents"].append(cotangent)
            arrays[f"cot:{key}"] = store.add(array)
        for (key, var), tensor in zip(gradients.items(), got, strict=True):
            if not tensor._is_initialized():  # Paddle leaves out the gradients of pieces without elements
                continue
            array, info = _info(tensor)
            header["grad"]["wrt"].append({"wrt": key, "var": var, "numeric_check": "unchecked"} | info)
            arrays[f"grad:{key}"] = store.add(array)
    return header | {"arrays": arrays}


def _index_line(header: dict[str, Any], file: str) -> dict[str, Any]:
    feeds = list(header["feeds"].values())
    return {
        "id": header["id"],
        "file": file,
        "op_type": header["op_type"],
        "has_grad": "grad" in header,
        "has_grad2": False,
        "grad_check": "unchecked" if "grad" in header else None,
        "dtype": feeds[0]["dtype"] if feeds else "float32",
        "origin": "generated",
        "source": header["source"],
        "kind": header["kind"],
        "stochastic": False,
        "lod": any("lod" in f for f in feeds),
        "rows": False,
        "oracle": ORACLE,
        "elements": sum(int(np.prod(f["shape"])) for f in feeds),
    }


def main(definitions: str, folder: str) -> None:
    """Record all cases of a definition file, and list them in index.jsonl."""
    paddle.enable_static()
    by_op: dict[str, list[dict[str, Any]]] = {}
    for case in runpy.run_path(definitions)["CASES"]:
        by_op.setdefault(case["op"], []).append(case)
    target = CASES / folder
    target.mkdir(exist_ok=True)
    lines = [x for x in (CASES / "index.jsonl").read_text().splitlines() if f'"file": "{folder}/' not in x]
    for op_type, cases in sorted(by_op.items()):
        store, headers = Store(), []
        for i, case in enumerate(cases):
            name = f"{folder}.{op_type}.{i:04d}"
            try:
                headers.append(record(case, name, store))
            except Exception as error:  # the reasons are Paddle's own
                print(f"{name} {case.get('source', '')}: {type(error).__name__}: {str(error).strip()[-300:]}")
        if headers:
            text = np.frombuffer(json.dumps(headers).encode(), np.uint8)
            np.savez_compressed(target / f"{op_type}.npz", cases=text, **store.arrays())
            lines += [json.dumps(_index_line(h, f"{folder}/{op_type}.npz")) for h in headers]
    (CASES / "index.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
