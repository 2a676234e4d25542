"""Answers of the open inference protocol, version 2, with the extension for binary tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oprack_serve.datatypes import datatype_of, dtype_name
from oprack_serve.errors import RequestError
from oprack_serve.extensions.bytes_tensors import to_binary
from oprack_serve.extensions.classification import classified
from oprack_serve.extensions.shared_memory import Regions
from oprack_serve.json_data import array_to_json, to_json
from oprack_serve.protocol import LONGEST_KNOWN, InferRequest, KnownAnswer
from oprack_serve.signature import Signature, Tensor, lod_of

MAX_JSON = 64 << 20


def wanted_outputs(request: InferRequest, signature: Signature) -> list[str]:
    """Outputs that the model has to compute: those asked for, and those whose LoD was."""
    known = signature.output_names
    names = [name if name in known else (lod_of(name, known) or ("", 0))[0] for name, _ in request.outputs]
    return list(dict.fromkeys(names))


def encode(
    request: InferRequest, outputs: dict[str, Tensor], model: str, version: str, parameters: dict[str, Any]
) -> tuple[list[bytes], int | None]:
    """Pieces of the body, and the length of its JSON when binary tensors follow (else None).

    Raises RequestError for an output that the protocol has no datatype for, for a level that an output lacks, and for
    more JSON than MAX_JSON bytes.
    """
    before = request.answer
    if before is not None and before.outputs == _shapes(outputs):
        return [before.text, *[binary_of(outputs[name].array) for name, _ in request.outputs]], len(before.text)
    head: dict[str, Any] = {"model_name": model, "model_version": version}
    if request.id:
        head["id"] = request.id
    if parameters:
        head["parameters"] = parameters
    text, binaries = _Json(), []
    text.add(to_json(head)[:-1] + b',"outputs":[')
    for i, (name, binary) in enumerate(request.outputs):
        row, tensor = described(name, outputs)
        if i:
            text.add(b",")
        if binary or name in request.placed:
            if name not in request.placed:
                binaries.append(binary_of(tensor.array))
                row.setdefault("parameters", {})["binary_data_size"] = len(binaries[-1])
            text.add(to_json(row))
        else:
            array = tensor.array
            values = array if dtype_name(array.dtype) not in ("float16", "bfloat16") else array.astype(np.float32)
            text.add(to_json(row)[:-1] + b',"data":')
            for piece in array_to_json(values):
                text.add(piece)
            text.add(b"}")
    text.add(b"]}")
    whole = b"".join(text.pieces)
    if request.repeats:
        _remember(request, outputs, whole)
    return [whole, *binaries], text.size if binaries else None


def _remember(request: InferRequest, outputs: dict[str, Tensor], text: bytes) -> None:
    """Keep the JSON of an answer for those to the same request that have outputs of the same shapes."""
    # not of strings, whose bytes may be another number, and not of offsets
    plain = {name for name, tensor in outputs.items() if tensor.array.dtype.kind != "O"}
    if len(text) <= LONGEST_KNOWN and all(binary and name in plain for name, binary in request.outputs):
        request.answer = KnownAnswer(_shapes(outputs), text)


def _shapes(outputs: dict[str, Tensor]) -> list[tuple[Any, ...]]:
    """What the JSON of an answer in binary data says of its outputs."""
    return [(name, tensor.array.dtype, tensor.array.shape, tensor.lod) for name, tensor in outputs.items()]


class _Json:
    """JSON as it is written, no more than MAX_JSON bytes of it."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.size = 0

    def add(self, piece: bytes) -> None:
        self.pieces.append(piece)
        self.size += len(piece)
        if self.size > MAX_JSON:
            check_json(self.size)


def check_json(size: int) -> None:
    """Raise RequestError for an answer with that many bytes of JSON, or more, when these are too many."""
    if size > MAX_JSON:
        raise RequestError(
            413,
            f"the JSON of the answer has more than {MAX_JSON} bytes; ask for binary data: parameter "
            "binary_data_output of the request, or binary_data of an output",
        )


def binary_of(array: np.ndarray) -> bytes:
    """The bytes of a tensor, as the protocol has them."""
    if array.dtype == object:
        return to_binary(array)
    return array.tobytes()  # no view, which keeps a batch in memory


def finish(request: InferRequest, outputs: dict[str, Tensor], regions: Regions, labels: Sequence[str]) -> None:
    """Classify outputs of which that is wanted, and put those into shared memory that go there. Raises RequestError."""
    for name, count in request.classes.items():
        if name in outputs:
            outputs[name] = classified(name, outputs[name], count, labels)
    for name, placement in request.placed.items():
        regions.write(placement, binary_of((outputs.get(name) or _offsets(name, outputs)).array))


def described(name: str, outputs: dict[str, Tensor]) -> tuple[dict[str, Any], Tensor]:
    """An output as the protocol describes it, and its tensor. Raises RequestError as `encode` does."""
    tensor = outputs.get(name) or _offsets(name, outputs)
    array = tensor.array
    try:
        row: dict[str, Any] = {"name": name, "datatype": datatype_of(array.dtype), "shape": list(array.shape)}
    except KeyError:
        raise RequestError(500, f"output {name!r}: the protocol has no datatype for {array.dtype.name}") from None
    if tensor.lod:
        # parameters are scalars in the protocol
        row["parameters"] = {"lod": str(tensor.lod)}
    return row, tensor


def _offsets(name: str, outputs: dict[str, Tensor]) -> Tensor:
    base, level = lod_of(name, list(outputs)) or ("", 0)
    lod = outputs[base].lod
    if level >= len(lod):
        raise RequestError(400, f"output {name!r}: {base!r} has {len(lod)} levels of LoD")
    return Tensor(np.array(lod[level], np.int64), [])
