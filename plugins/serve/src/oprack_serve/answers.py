"""Answers of the open inference protocol, version 2, with the extension for binary tensors."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from oprack_serve.datatypes import datatype_of, dtype_name
from oprack_serve.errors import RequestError
from oprack_serve.json_data import to_json
from oprack_serve.protocol import InferRequest
from oprack_serve.signature import Signature, Tensor, lod_of


def wanted_outputs(request: InferRequest, signature: Signature) -> list[str]:
    """Outputs that the model has to compute: those asked for, and those whose LoD was."""
    known = [spec.name for spec in signature.outputs]
    names = [name if name in known else (lod_of(name, known) or ("", 0))[0] for name, _ in request.outputs]
    return list(dict.fromkeys(names))


def encode(
    request: InferRequest, outputs: dict[str, Tensor], model: str, version: str, parameters: dict[str, Any]
) -> tuple[list[Any], int | None]:
    """Pieces of the body, and the length of its JSON when binary tensors follow (else None).

    Raises RequestError for an output that the protocol has no datatype for, and for a level that an output lacks.
    """
    rows, pieces = [], []
    for name, binary in request.outputs:
        tensor = outputs.get(name) or _offsets(name, outputs)
        array = tensor.array
        try:
            row: dict[str, Any] = {"name": name, "datatype": datatype_of(array.dtype), "shape": list(array.shape)}
        except KeyError:
            raise RequestError(500, f"output {name!r}: the protocol has no datatype for {array.dtype.name}") from None
        if tensor.lod:
            # parameters are scalars in the protocol
            row["parameters"] = {"lod": json.dumps(tensor.lod)}
        if binary:
            row.setdefault("parameters", {})["binary_data_size"] = array.nbytes
            pieces.append(memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8)))
        else:
            values = array if dtype_name(array.dtype) not in ("float16", "bfloat16") else array.astype(np.float32)
            row["data"] = values.reshape(-1).tolist()
        rows.append(row)
    head: dict[str, Any] = {"model_name": model, "model_version": version, "outputs": rows}
    if request.id:
        head["id"] = request.id
    if parameters:
        head["parameters"] = parameters
    text = to_json(head).encode()
    return [text, *pieces], len(text) if pieces else None


def _offsets(name: str, outputs: dict[str, Tensor]) -> Tensor:
    base, level = lod_of(name, list(outputs)) or ("", 0)
    lod = outputs[base].lod
    if level >= len(lod):
        raise RequestError(400, f"output {name!r}: {base!r} has {len(lod)} levels of LoD")
    return Tensor(np.array(lod[level], np.int64), [])
