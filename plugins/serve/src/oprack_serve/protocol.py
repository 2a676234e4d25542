"""Requests of the open inference protocol, version 2, with the extension for binary tensors.

A body comes from outside: dtypes, sizes, counts and nesting are checked before memory is taken for what they announce.
Nothing here knows of HTTP but the statuses of errors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol

import numpy as np
from oprack.errors import InvalidLoDError
from oprack.tensor import check_lod

from oprack_serve.datatypes import DTYPES, TENSOR_DATATYPES, dtype_of
from oprack_serve.errors import RequestError
from oprack_serve.extensions.bytes_tensors import from_binary, of_strings
from oprack_serve.extensions.shared_memory import Placement, Regions
from oprack_serve.json_data import array_from_json, parse_json
from oprack_serve.signature import LOD_SUFFIX, Signature, Tensor, TensorSpec, lod_of

MAX_RANK = 9
MAX_DIM = (1 << 40) - 1
MAX_LEVELS = 4
MAX_ID = 256
MAX_CLASSES = 1000
MOST_KNOWN, LONGEST_KNOWN = 1024, 1024
NO_REGIONS = Regions(allowed=False)


@dataclass(frozen=True)
class Limits:
    """Bounds of one request: bytes of JSON, entries of all its LoD levels together, bytes of shared memory."""

    json_bytes: int = 16 << 20
    lod_entries: int = 1 << 16
    shared_bytes: int = 64 << 20


@dataclass(slots=True)
class InferRequest:
    """What a request asks for; its tensors are apart, as it may be that of all requests with the same JSON.

    outputs: (name, whether it is wanted as binary data), in the order that was asked for. placed: outputs that go into
    shared memory. classes: how many classes are wanted of outputs of which not all is. shared_bytes: those of inputs.
    wanted: outputs that the model computes for it, [] while nobody has asked. join: what
    `oprack_serve.joining.join_key` says of it, once somebody has asked. repeats: whether others with the same JSON have
    it, too. answer: what one of these was answered with.
    """

    id: str
    outputs: list[tuple[str, bool]]
    timeout: float | None = None
    trace: bool = False
    parameters: dict[str, Any] = field(default_factory=dict)
    placed: dict[str, Placement] = field(default_factory=dict)
    classes: dict[str, int] = field(default_factory=dict)
    shared_bytes: int = 0
    wanted: list[str] = field(default_factory=list)
    join: tuple[Any, int, float] | None = None
    repeats: bool = False
    answer: KnownAnswer | None = None


@dataclass(slots=True)
class KnownAnswer:
    """An answer in binary data: its outputs' names, dtypes, shapes and LoD, the JSON that says so, HTTP's headers."""

    outputs: list[tuple[Any, ...]]
    text: bytes
    headers: bytes = b""


Decoded = tuple[InferRequest, dict[str, Tensor]]
"""A request and its inputs, in the order of the model's signature."""


@dataclass(slots=True)
class _KnownRequest:
    """size: bytes of the tensors. inputs: of each its name, dtype, offset behind the JSON, shape and LoD."""

    request: InferRequest
    size: int
    inputs: list[tuple[str, np.dtype, int, tuple[int, ...], list[list[int]]]]


class KnownRequests:
    """By their JSON, requests that came before: clients send the same again and again, and only tensors differ.

    It holds for a signature, and at most MOST_KNOWN of at most LONGEST_KNOWN bytes.
    """

    def __init__(self) -> None:
        self._signature: Signature | None = None
        self._known: dict[bytes, _KnownRequest] = {}

    def find(self, signature: Signature, body: memoryview, length: int) -> Decoded | None:
        """The request in `body`, if one with its first `length` bytes came before, and as many behind them."""
        if signature is not self._signature:
            self._signature, self._known = signature, {}
        found = self._known.get(bytes(body[:length])) if length <= LONGEST_KNOWN else None
        if found is None or found.size != len(body) - length:
            return None
        inputs = {
            name: Tensor(np.ndarray(shape, dtype, body, length + offset), lod)
            for name, dtype, offset, shape, lod in found.inputs
        }
        return found.request, inputs

    def learn(self, text: bytes, head: dict[str, Any], request: InferRequest, inputs: dict[str, Tensor]) -> None:
        """Remember a request that is right, if all its inputs are plain numbers behind the JSON."""
        if request.id or request.trace or request.placed or request.shared_bytes:
            return
        places, at = {}, 0
        for row in head["inputs"]:
            tensor = inputs.get(row["name"])
            size = row.get("parameters", {}).get("binary_data_size")
            # of a BOOL each byte is looked at, and offsets in tensors of their own are not in the JSON
            if tensor is None or size is None or not tensor.array.size or tensor.array.dtype.kind in "bO":
                return
            places[row["name"]] = at
            at += size
        rows = [(name, one.array.dtype, places[name], one.array.shape, one.lod) for name, one in inputs.items()]
        request.repeats = True
        self._known[text] = _KnownRequest(request, at, rows)
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]


def decode(
    signature: Signature,
    body: memoryview,
    json_length: int | None,
    limits: Limits,
    regions: Regions = NO_REGIONS,
    known: KnownRequests | None = None,
) -> Decoded:
    """The request in `body`, whose first `json_length` bytes are JSON (all of them if None).

    Where there is no JSON, the body is the only input of the model. known: requests for this model that came before.
    Raises RequestError that says what does not fit.
    """
    if known is not None and json_length:
        found = known.find(signature, body, json_length)
        if found is not None:
            return found
    if json_length == 0:
        return _of_one_input(signature, body)
    length = len(body) if json_length is None else json_length
    if not 0 <= length <= len(body):
        raise RequestError(400, f"Inference-Header-Content-Length is {length}, but the body has {len(body)} bytes")
    if length > limits.json_bytes:
        raise RequestError(
            413,
            f"the JSON of the request has {length} bytes; at most {limits.json_bytes} are taken: send tensors as "
            "binary data, with binary_data_size",
        )
    head = _dict(parse_json(body[:length]), "the request")
    request, inputs = decode_head(signature, head, BinaryData(body[length:]), limits, regions)
    if known is not None and length <= LONGEST_KNOWN:
        known.learn(bytes(body[:length]), head, request, inputs)
    return request, inputs


def _of_one_input(signature: Signature, body: memoryview) -> Decoded:
    """A request whose whole body is an element of BYTES, such as a picture in a file."""
    specs = signature.inputs
    if [spec.datatype for spec in specs] != ["BYTES"] or not specs[0].fits((1,)):
        described = ", ".join(f"{spec.name!r} ({spec.datatype} {list(spec.shape or ())})" for spec in specs)
        raise RequestError(
            400,
            "Inference-Header-Content-Length is 0: the body is the only input where that is one element of BYTES; the "
            f"model has {described}",
        )
    inputs = {specs[0].name: Tensor(of_strings([bytes(body)], (1,)), [])}
    return InferRequest("", [(spec.name, False) for spec in signature.outputs]), inputs


def decode_head(
    signature: Signature, head: dict[str, Any], binary: TensorData, limits: Limits, regions: Regions = NO_REGIONS
) -> Decoded:
    """The request in `head`, whose inputs have parameter binary_data_size where `binary` has their tensors.

    Raises RequestError that says what does not fit.
    """
    given: dict[str, tuple[np.ndarray, Any]] = {}
    specs = signature.by_name
    shared = _SharedData(regions, limits.shared_bytes)
    for row in _list(head.get("inputs"), "inputs"):
        name, array, lod = _input(_dict(row, "an input"), specs, binary, shared)
        if name in given:
            raise RequestError(400, f"input {name!r} is given twice")
        given[name] = array, lod
    if binary.left:
        raise RequestError(400, f"{binary.left} bytes of binary data are left behind those that the inputs announce")
    parameters = _dict(head.get("parameters", {}), "parameters")
    name = head.get("id", "")
    if not isinstance(name, str) or len(name) > MAX_ID:
        raise RequestError(400, f"the id of a request is a string of at most {MAX_ID} characters")
    inputs = joined_with_lod(specs, given, parameters, limits)
    timeout, trace = _timeout(parameters.get("timeout")), parameters.get("trace") is True
    request = InferRequest(name, [], timeout, trace, parameters, shared_bytes=shared.taken)
    _take_outputs(request, head.get("outputs"), signature, bool(parameters.get("binary_data_output", False)))
    return request, inputs


def _dict(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise RequestError(400, f"{what}: got {type(value).__name__}; expected a JSON object")
    return value


def _list(value: Any, what: str, least: int = 1) -> list[Any]:
    if not isinstance(value, list) or not least <= len(value) <= 1024:
        raise RequestError(400, f"{what}: expected a JSON list of {least} to 1024 entries")
    return value


class TensorData(Protocol):
    """The binary tensors of a request, taken in the order of the inputs."""

    @property
    def left(self) -> int:
        """Bytes that nobody took."""

    def take(self, size: int, name: str) -> memoryview:
        """The tensor of the input of that name. Raises RequestError where there are not so many bytes for it."""


class BinaryData:
    """The binary tensors behind the JSON."""

    def __init__(self, data: memoryview) -> None:
        self._data, self._at = data, 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, size: int, name: str) -> memoryview:
        if size > self.left:
            raise RequestError(400, f"input {name!r}: binary_data_size is {size}, but {self.left} bytes are left")
        self._at += size
        return self._data[self._at - size : self._at]


class _SharedData:
    """The tensors of a request that lie in shared memory, no more bytes of them than `most`."""

    def __init__(self, regions: Regions, most: int) -> None:
        self._regions, self._most = regions, most
        self.taken = 0

    def take(self, placement: Placement) -> memoryview:
        self.taken += placement.byte_size
        if self.taken > self._most:
            raise RequestError(413, f"the inputs have more than {self._most} bytes in shared memory")
        return self._regions.read(placement)


def _input(
    row: dict[str, Any], specs: dict[str, TensorSpec], binary: TensorData, shared: _SharedData
) -> tuple[str, np.ndarray, Any]:
    """(name, array, LoD or None) of one entry of `inputs`, which is a tensor or offsets of one."""
    name = row.get("name")
    if not isinstance(name, str):
        raise RequestError(400, "an input has no name; expected a string")
    spec = specs.get(name)
    if spec is None and lod_of(name, specs) is None:
        raise RequestError(400, f"the model has no input {name[:100]!r}; it has {', '.join(map(repr, specs))}")
    datatype = _datatype(name, row.get("datatype"), spec)
    shape = _shape(name, row.get("shape"))
    if (len(shape) != 1) if spec is None else not spec.fits(shape):
        expected = "one dim" if spec is None else str(list(spec.shape or ()))
        raise RequestError(400, f"input {name!r}: shape {list(shape)}; expected {expected}")
    parameters = _dict(row.get("parameters", {}), f"parameters of input {name!r}")
    size, placement = parameters.get("binary_data_size"), Placement.of(f"input {name!r}", parameters)
    if (size is not None) + (placement is not None) + ("data" in row) > 1:
        raise RequestError(
            400, f"input {name!r} has more than one of data, binary_data_size and shared_memory_region; expected one"
        )
    if placement is not None:
        _check_size(name, datatype, shape, "shared_memory_byte_size", placement.byte_size)
        array = _array_from_binary(name, datatype, shape, shared.take(placement))
    elif size is not None:
        _check_size(name, datatype, shape, "binary_data_size", size)
        array = _array_from_binary(name, datatype, shape, binary.take(size, name))
    else:
        array = array_from_json(name, row.get("data"), dtype_of(datatype), shape, _count(shape))
    return name, array, parameters.get("lod")


def _datatype(name: str, given: Any, spec: TensorSpec | None) -> str:
    if not isinstance(given, str) or given not in DTYPES:
        raise RequestError(400, f"input {name!r}: datatype {str(given)[:40]!r}; expected one of {', '.join(DTYPES)}")
    wanted = ("INT64", "INT32") if spec is None else (spec.datatype,) if spec.datatype else TENSOR_DATATYPES
    if given not in wanted:
        raise RequestError(400, f"input {name!r}: datatype {given}; the model expects {' or '.join(wanted)}")
    return given


def _check_size(name: str, datatype: str, shape: tuple[int, ...], parameter: str, size: Any) -> None:
    """Compare the announced size of a tensor before any of it is taken."""
    nbytes = size if datatype == "BYTES" else _count(shape) * dtype_of(datatype).itemsize
    if type(size) is not int or size != nbytes or size < 0:
        raise RequestError(
            400, f"input {name!r}: {parameter} {str(size)[:40]}; {datatype} {list(shape)} takes {nbytes} bytes"
        )


def _array_from_binary(name: str, datatype: str, shape: tuple[int, ...], data: memoryview) -> np.ndarray:
    """A binary tensor, over the memory of the request where it is one of numbers."""
    if datatype == "BYTES":
        return from_binary(name, data, shape, _count(shape))
    # Bytes first: one that is neither 0 nor 1 is no bool to NumPy.
    array = np.frombuffer(data, np.uint8 if datatype == "BOOL" else dtype_of(datatype))
    if datatype == "BOOL":
        if array.size and int(array.max()) > 1:
            raise RequestError(400, f"input {name!r}: BOOL is one byte for each element, 0 or 1")
        array = array.view(np.bool_)
    return array.reshape(shape)


def _shape(name: str, dims: Any) -> tuple[int, ...]:
    if isinstance(dims, list) and len(dims) <= MAX_RANK:
        for size in dims:
            if type(size) is not int or not 0 <= size <= MAX_DIM:
                break
        else:
            return tuple(dims)
    raise RequestError(400, f"input {name!r}: shape: expected a list of at most {MAX_RANK} sizes, 0 or more")


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def joined_with_lod(
    specs: dict[str, TensorSpec], given: dict[str, tuple[np.ndarray, Any]], parameters: dict[str, Any], limits: Limits
) -> dict[str, Tensor]:
    """The inputs, each with its LoD, whether that came as tensors, with the input, or as parameters.

    given: by name the array and the LoD that came with it, also of tensors of offsets. Raises RequestError.
    """
    missing = [name for name in specs if name not in given]
    if missing:
        raise RequestError(400, f"{len(missing)} inputs are missing: {', '.join(map(repr, missing))}")
    lods, entries = _offsets(specs, given, limits)
    found = {}
    for name, spec in specs.items():
        array, of_input = given[name]
        lod = lods.get(name)
        tensors = None if lod is None else [lod.get(k) for k in range(len(lod))]
        # clients such as tritonclient's can give the request a parameter, but not an input of it
        levels = _only_way(name, (tensors, of_input, parameters.get(f"{name}.lod")))
        if isinstance(levels, str):
            levels = parse_json(memoryview(levels.encode("utf-8", "surrogatepass")))
        if isinstance(levels, list) and lod is None:
            entries += sum(len(level) for level in levels if isinstance(level, list))
        # before the levels are checked one by one, which takes time with each offset
        if entries > limits.lod_entries:
            raise RequestError(413, f"the LoD of the inputs has more than {limits.lod_entries} offsets")
        found[name] = Tensor(array, _checked_lod(spec, array, levels))
    return found


def _offsets(
    specs: dict[str, TensorSpec], given: dict[str, tuple[np.ndarray, Any]], limits: Limits
) -> tuple[dict[str, dict[int, list[int]]], int]:
    """LoD that came as tensors, by input and level, and how many offsets these are, also those beyond the limit."""
    lods: dict[str, dict[int, list[int]]] = {}
    entries = 0
    for name, (array, _) in given.items():
        if name not in specs:
            base, level = lod_of(name, specs) or ("", 0)
            entries += array.size
            if entries <= limits.lod_entries:
                lods.setdefault(base, {})[level] = array.tolist()
    return lods, entries


def _only_way(name: str, ways: Iterable[Any]) -> Any:
    """The LoD of an input, whichever way it came; None when it has none."""
    present = [way for way in ways if way is not None]
    if len(present) > 1:
        raise RequestError(
            400, f"input {name!r} has its LoD more than once, as a tensor or as parameters; expected one"
        )
    return present[0] if present else None


def _checked_lod(spec: TensorSpec, array: np.ndarray, levels: Any) -> list[list[int]]:
    how = (
        f"as parameter lod of the input, [[0, 2, 5]], as parameter {spec.name}.lod of the request, or as tensor "
        f"{spec.name}{LOD_SUFFIX}0"
    )
    if levels is None or levels == []:
        if spec.lod_level:
            raise RequestError(
                400,
                f"input {spec.name!r} holds sequences, and no LoD was given; expected offsets of {spec.lod_level} "
                f"levels {how}",
            )
        return []
    plain = isinstance(levels, list) and all(isinstance(level, list) for level in levels)
    if not plain or not {int}.issuperset(map(type, chain.from_iterable(levels))) or len(levels) > MAX_LEVELS:
        raise RequestError(400, f"LoD of input {spec.name!r}: expected lists of offsets {how}")
    if spec.lod_level and len(levels) != spec.lod_level:
        raise RequestError(400, f"LoD of input {spec.name!r}: {len(levels)} levels; expected {spec.lod_level}")
    try:
        return check_lod(levels, array.shape[0] if array.ndim else 0, f"LoD of input {spec.name!r}")
    except InvalidLoDError as error:
        raise RequestError(400, str(error)) from None


def _take_outputs(request: InferRequest, rows: Any, signature: Signature, binary: bool) -> None:
    known = signature.output_names
    if rows is None or rows == []:
        request.outputs = [(name, binary) for name in known]
        return
    wanted: dict[str, bool] = {}
    for row in _list(rows, "outputs"):
        name = _dict(row, "an output").get("name")
        if not isinstance(name, str) or (name not in known and lod_of(name, known) is None):
            all_names = ", ".join(map(repr, known))
            raise RequestError(400, f"the model has no output {str(name)[:100]!r}; it has {all_names}")
        parameters = _dict(row.get("parameters", {}), f"parameters of output {name!r}")
        placement = Placement.of(f"output {name!r}", parameters)
        if placement is not None:
            request.placed[name] = placement
        classes = parameters.get("classification", 0)
        if type(classes) is not int or not 0 <= classes <= MAX_CLASSES:
            raise RequestError(400, f"output {name!r}: parameter classification: expected 0 to {MAX_CLASSES} classes")
        if classes:
            request.classes[name] = classes
        wanted[name] = bool(parameters.get("binary_data", binary))
    request.outputs = list(wanted.items())


def _timeout(value: Any) -> float | None:
    """Seconds, of the protocol's parameter in microseconds."""
    if value is None:
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    if type(value) is not int or not 0 <= value < 1 << 53:
        raise RequestError(400, "parameter timeout: expected microseconds, as a whole number")
    return value / 1e6 or None
