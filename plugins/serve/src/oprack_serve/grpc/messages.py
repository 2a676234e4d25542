"""Inference requests and answers as messages of gRPC, to and from what the protocols share.

A message comes from outside, and protobuf's parser takes up to a hundred times its bytes: two are an empty tensor. So
fields are counted before it is parsed, and tensors are not parsed at all but used where they lie in the message.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError, Message

from oprack_serve import protocol
from oprack_serve.answers import binary_of, described
from oprack_serve.datatypes import dtype_of
from oprack_serve.errors import RequestError
from oprack_serve.extensions.bytes_tensors import of_strings, to_binary
from oprack_serve.extensions.shared_memory import PARAMETERS, Regions
from oprack_serve.grpc import inference_pb2
from oprack_serve.protocol import Decoded, InferRequest, Limits
from oprack_serve.signature import Signature, Tensor

pb: Any = inference_pb2  # its classes are made at import, where a type checker does not see them

MAX_FIELDS = 8192
MAX_HEAD = 1 << 20
MAX_ANSWER = (1 << 31) - (1 << 20)
"""Bytes of tensors of an answer: no message of protobuf has more than 2 GiB."""

BLOCK = 1 << 16

_PARAMETERS, _INPUTS, _OUTPUTS, _RAW = 4, 5, 6, 7
_INPUT_PARAMETERS, _CONTENTS, _OUTPUT_PARAMETERS = 4, 5, 2
_PARAMETER: dict[int, Any] = {}
_INPUT: dict[int, Any] = {_INPUT_PARAMETERS: _PARAMETER, _CONTENTS: {}}
_MESSAGES: dict[int, Any] = {_PARAMETERS: _PARAMETER, _INPUTS: _INPUT, _OUTPUTS: {_OUTPUT_PARAMETERS: _PARAMETER}}
"""Fields of a request that are messages, and theirs."""

_NUMBERS = {
    "BOOL": "bool_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "UINT8": "uint_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}
"""Datatype -> the field of `contents` that holds its elements; the others come as raw bytes alone."""


# Requests -------------------------------------------------------------------------------------------------------------
class Request:
    """An inference request, parsed but for its tensors. Raises RequestError for what is none.

    Attributes:
        message: The ModelInferRequest without its raw_input_contents.
        raw: Those, as views of the data.
        raw_given: Whether there are any.
        typed: Bytes of `contents` of all inputs.
    """

    def __init__(self, data: bytes | bytearray) -> None:
        head, self.raw = [], []
        self.typed, self.raw_given = 0, False
        view, size = memoryview(data), 0
        try:
            for number, start, first, last in self._counted(data, 0, len(data), _MESSAGES, [MAX_FIELDS]):
                if number == _RAW:
                    self.raw.append(view[first:last])
                else:
                    head.append(view[start:last])
                    size += last - start
            self.raw_given = bool(self.raw)
            if size - self.typed > MAX_HEAD:
                raise RequestError(413, f"the request has more than {MAX_HEAD} bytes beside its tensors")
            self.message = pb.ModelInferRequest.FromString(b"".join(head))
        except (DecodeError, IndexError, struct.error) as error:
            raise RequestError(400, f"the message is no ModelInferRequest: {error}") from None

    def _counted(
        self, data: bytes | bytearray, at: int, end: int, messages: dict[int, Any], left: list[int]
    ) -> Iterator[tuple[int, int, int, int]]:
        """(number, start, start of the value, end) of each field; those of messages in it are counted with them."""
        for field in fields(data, at, end):
            left[0] -= 1
            if left[0] < 0:
                raise RequestError(413, f"the request has more than {MAX_FIELDS} fields; send raw_input_contents")
            number, _, first, last = field
            below = messages.get(number)
            if below is not None:
                if messages is _INPUT and number == _CONTENTS:
                    self.typed += last - first
                for _ in self._counted(data, first, last, below, left):
                    pass
            yield field

    def decode(self, signature: Signature, limits: Limits, regions: Regions = protocol.NO_REGIONS) -> Decoded:
        """The request, as the protocols share it. Raises RequestError that says what does not fit."""
        if self.typed > limits.json_bytes:
            raise RequestError(
                413,
                f"the contents of the inputs have {self.typed} bytes; at most {limits.json_bytes} are taken: send "
                "raw_input_contents",
            )
        message = self.message
        if self.raw_given and self.typed:
            raise RequestError(
                400, "some inputs have contents, though there are raw_input_contents; expected one of them"
            )
        tensors = _Tensors(list(self.raw))
        inputs = [self._input(row, tensors) for row in message.inputs]
        outputs = [{"name": row.name, "parameters": parameters_of(row.parameters)} for row in message.outputs]
        # all that comes back is raw
        parameters = parameters_of(message.parameters) | {"binary_data_output": True}
        head = {"id": message.id, "inputs": inputs, "outputs": outputs, "parameters": parameters}
        return protocol.decode_head(signature, head, tensors, limits, regions)

    def _input(self, row: Any, tensors: _Tensors) -> dict[str, Any]:
        parameters = parameters_of(row.parameters)
        if not any(key in parameters for key in PARAMETERS):
            if not self.raw_given:
                tensors.raw.append(_from_contents(row))
            parameters["binary_data_size"] = tensors.announce(row.name)
        shape = list(row.shape)
        return {"name": row.name, "datatype": row.datatype, "shape": shape, "parameters": parameters}


class _Tensors:
    """The raw tensors of a request: one for each input, in their order."""

    def __init__(self, raw: list[memoryview]) -> None:
        self.raw, self._announced, self._at = raw, 0, 0

    def announce(self, name: str) -> int:
        """The size of the next input's."""
        self._announced += 1
        if self._announced > len(self.raw):
            raise RequestError(400, f"input {name[:100]!r} has no tensor: there are {len(self.raw)} raw_input_contents")
        return len(self.raw[self._announced - 1])

    @property
    def left(self) -> int:
        return sum(map(len, self.raw[self._at :]))

    def take(self, size: int, name: str) -> memoryview:
        self._at += 1
        return self.raw[self._at - 1]


def fields(data: bytes | bytearray, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """(number, start, start of the value, end) of each field of a message. Raises DecodeError or IndexError."""
    while at < end:
        start = at
        key, at = _varint(data, at)
        first, kind = at, key & 7
        if kind == 0:
            _, at = _varint(data, at)
        elif kind == 1:
            at += 8
        elif kind == 2:
            size, first = _varint(data, at)
            at = first + size
        elif kind == 5:
            at += 4
        else:
            raise DecodeError(f"a field has wire type {kind}")
        if at > end:
            raise DecodeError("it is cut off")
        yield key >> 3, start, first, at


def _varint(data: bytes | bytearray, at: int) -> tuple[int, int]:
    value = data[at]
    if value < 128:
        return value, at + 1
    value &= 127
    for shift in range(7, 70, 7):
        at += 1
        byte = data[at]
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at + 1
    raise DecodeError("a number has more than ten bytes")


def parameters_of(given: Any) -> dict[str, Any]:
    """Parameters by name."""
    found = {}
    for key, value in given.items():
        kind = value.WhichOneof("parameter_choice")
        if kind is not None:
            found[key] = getattr(value, kind)
    return found


def _from_contents(row: Any) -> memoryview:
    """The raw bytes of an input that came as `contents`. Raises RequestError."""
    field = _NUMBERS.get(row.datatype)
    present = [found.name for found, _ in row.contents.ListFields()]
    if field is None or (present and present != [field]):
        how = f"expected contents in field {field}" if field else "expected raw_input_contents"
        got = f"contents in {', '.join(present)}" if present else "no contents"
        raise RequestError(400, f"input {row.name[:100]!r} of datatype {row.datatype[:40]!r} has {got}; {how}")
    if row.datatype == "BYTES":
        return memoryview(to_binary(of_strings(list(row.contents.bytes_contents), (-1,))))
    packed = b"".join(getattr(row.contents, field))
    if field.startswith("fp"):
        return memoryview(packed)
    return varints(row.name, packed, dtype_of(row.datatype)).view(np.uint8).data


def varints(name: str, packed: bytes, dtype: np.dtype) -> np.ndarray:
    """The numbers of a packed field, block by block. Raises RequestError for what is none, or out of dtype's range."""
    data, at, found = np.frombuffer(packed, np.uint8), 0, [np.empty(0, dtype)]
    least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    while at < data.size:
        block = data[at : at + BLOCK]
        ends = np.flatnonzero(block < 128)
        if not ends.size:
            raise RequestError(400, f"input {name[:100]!r}: the last number of its contents is cut off")
        values = _numbers(name, block, ends)
        whole = values if dtype.kind == "i" else values.view(np.uint64)
        if not least <= int(whole.min()) <= int(whole.max()) <= most:
            raise RequestError(
                400, f"input {name[:100]!r}: a number of its contents is out of the range of {dtype.name}"
            )
        found.append(values.astype(dtype))
        at += int(ends[-1]) + 1
    return np.concatenate(found)


def _numbers(name: str, block: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The numbers whose last bytes are at `ends`, as int64: seven bits at a time of all of them."""
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts + 1
    longest = int(lengths.max())
    if longest > 10:
        raise RequestError(400, f"input {name[:100]!r}: a number of its contents has more than ten bytes")
    values = np.zeros(ends.size, np.uint64)
    for place in range(longest):
        longer = np.flatnonzero(lengths > place)
        bits = (block[starts[longer] + place] & 127).astype(np.uint64)
        values[longer] |= bits << np.uint64(7 * place)
    return values.view(np.int64)


# Answers --------------------------------------------------------------------------------------------------------------
def encode(
    request: InferRequest, outputs: dict[str, Tensor], model: str, version: str, parameters: dict[str, Any]
) -> list[bytes]:
    """The bytes of a ModelInferResponse, whose tensors are raw. Raises RequestError as `answers.encode` does."""
    answer = pb.ModelInferResponse(model_name=model, model_version=version, id=request.id)
    set_parameters(answer.parameters, parameters)
    arrays = []
    for name, _ in request.outputs:
        row, tensor = described(name, outputs)
        out = answer.outputs.add(name=name, datatype=row["datatype"], shape=row["shape"])
        set_parameters(out.parameters, row.get("parameters", {}))
        array = tensor.array
        if name in request.placed:
            array = np.empty(0, np.uint8)  # clients count on one for each output
        elif array.dtype == object:
            array = np.frombuffer(binary_of(array), np.uint8)
        arrays.append(np.ascontiguousarray(array))
    size = sum(array.nbytes for array in arrays)
    if size > MAX_ANSWER:
        raise RequestError(413, f"the answer has {size} bytes; a message of gRPC has at most {MAX_ANSWER}")
    # one message after another is both of them: the tensors are copied once
    pieces: list[Any] = [answer.SerializeToString()]
    for array in arrays:
        pieces += (field_head(6, array.nbytes), array.reshape(-1).view(np.uint8).data)
    return [b"".join(pieces)]


def field_head(number: int, size: int) -> bytes:
    """What stands before the bytes of a field."""
    found = bytearray([number << 3 | 2])
    while size > 127:
        found.append(size & 127 | 128)
        size >>= 7
    found.append(size)
    return bytes(found)


def set_parameters(into: Any, parameters: dict[str, Any]) -> None:
    """Write parameters into a message."""
    kinds = {bool: "bool_param", int: "int64_param", float: "double_param", str: "string_param"}
    for key, value in parameters.items():
        setattr(into[key], kinds[type(value)], value)


def parse(kind: Any, data: bytes) -> Any:
    """A message of that kind. Raises RequestError."""
    try:
        found: Message = kind.FromString(data)
        return found
    except DecodeError as error:
        raise RequestError(400, f"the message is no {kind.DESCRIPTOR.name}: {error}") from None
