"""Requests and answers of the protocol, without a server: what is taken, and what is refused and how."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oprack_serve import answers
from oprack_serve.answers import encode, wanted_outputs
from oprack_serve.errors import RequestError
from oprack_serve.json_data import SLICE, array_to_json
from oprack_serve.protocol import KnownRequests, Limits, decode
from oprack_serve.signature import Signature, Tensor, TensorSpec

SIGNATURE = Signature(
    (TensorSpec("x", "float32", (-1, 2)), TensorSpec("ids", "int64", (-1, 1), 1)),
    (TensorSpec("y", "float32", (-1, 2)), TensorSpec("tags", "int64", (-1, 1), 1)),
)
X = {"name": "x", "shape": [2, 2], "datatype": "FP32", "data": [[1, 2], [3, 4.5]]}
IDS = {"name": "ids", "shape": [3, 1], "datatype": "INT64", "data": [7, 8, 9], "parameters": {"lod": [[0, 1, 3]]}}
LIMITS = Limits(json_bytes=10_000, lod_entries=20)


def request(*inputs, binary=b"", **more):
    head = json.dumps({"inputs": list(inputs)} | more).encode()
    return decode(SIGNATURE, memoryview(head + binary), len(head), LIMITS)


def refused(*inputs, binary=b"", **more):
    with pytest.raises(RequestError) as error:
        request(*inputs, binary=binary, **more)
    return error.value.status, str(error.value)


def without(row, *keys, **more):
    return {k: v for k, v in row.items() if k not in keys} | more


def binary_rows():
    """X and IDS, whose numbers are behind the JSON."""
    ids = without(IDS, "data", parameters={"binary_data_size": 24, "lod": [[0, 3]]})
    return without(X, "data", parameters={"binary_data_size": 16}), ids


def test_json_tensors_and_lod():
    found, inputs = request(X, IDS, id="a", parameters={"timeout": 250_000})
    np.testing.assert_array_equal(inputs["x"].array, np.array([[1, 2], [3, 4.5]], np.float32))
    assert inputs["x"].array.dtype == np.float32 and inputs["x"].lod == []
    np.testing.assert_array_equal(inputs["ids"].array, [[7], [8], [9]])
    assert inputs["ids"].lod == [[0, 1, 3]]
    assert (found.id, found.timeout, found.outputs) == ("a", 0.25, [("y", False), ("tags", False)])


@pytest.mark.parametrize("how", ["list", "text", "of the request", "tensor"])
def test_lod_is_written_as_a_tensor_or_as_a_parameter(how):
    ids = without(IDS, "parameters")
    if how == "of the request":
        assert request(X, ids, parameters={"ids.lod": "[[0, 1, 3]]"})[1]["ids"].lod == [[0, 1, 3]]
    elif how == "tensor":
        offsets = {"name": "ids.lod.0", "shape": [3], "datatype": "INT64", "data": [0, 1, 3]}
        assert request(X, offsets, ids)[1]["ids"].lod == [[0, 1, 3]]
    else:
        lod = [[0, 1, 3]] if how == "list" else "[[0, 1, 3]]"
        assert request(X, ids | {"parameters": {"lod": lod}})[1]["ids"].lod == [[0, 1, 3]]


def test_binary_tensors_lie_behind_the_json_in_the_order_of_the_inputs():
    x, ids = np.arange(4, dtype="<f4"), np.arange(3, dtype="<i8")
    _, inputs = request(*binary_rows(), binary=x.tobytes() + ids.tobytes())
    np.testing.assert_array_equal(inputs["x"].array, x.reshape(2, 2))
    np.testing.assert_array_equal(inputs["ids"].array, ids.reshape(3, 1))


def test_a_request_is_known_by_its_json():
    """Only the numbers of its tensors are read again, and its answer is described as before."""
    known, rows = KnownRequests(), binary_rows()

    def ask(x, ids, *rows, signature=SIGNATURE, **more):
        head = json.dumps({"inputs": rows} | more).encode()
        data = memoryview(head + np.array(x, "<f4").tobytes() + np.array(ids, "<i8").tobytes())
        return decode(signature, data, len(head), LIMITS, known=known), decode(signature, data, len(head), LIMITS)[0]

    asked = {"outputs": [{"name": "y"}], "parameters": {"binary_data_output": True, "timeout": 5}}
    (first, _), _ = ask([6, 1, 2, 3], [4, 5, 6], *rows, **asked)
    (again, inputs), plain = ask([7, 1, 2, 3], [4, 5, 7], *rows, **asked)
    assert again is first and plain is not first
    np.testing.assert_array_equal(inputs["x"].array, np.array([[7, 1], [2, 3]], np.float32))
    np.testing.assert_array_equal(inputs["ids"].array, [[4], [5], [7]])
    assert inputs["ids"].lod == [[0, 3]] and (again.outputs, again.timeout) == (plain.outputs, plain.timeout)
    for y in (np.ones((2, 2), np.float32), np.zeros((2, 2), np.float32), np.ones((1, 2), np.float32)):
        expected = encode(plain, {"y": Tensor(y, [])}, "m", "1", {})
        assert [encode(again, {"y": Tensor(y, [])}, "m", "1", {}) for _ in range(2)] == [expected] * 2
    with pytest.raises(RequestError, match="8 bytes of binary data are left"):
        ask([6, 1, 2, 3], [4, 5, 6, 7], *rows, **asked)
    other = Signature((TensorSpec("x", "float32", (1, 2)), SIGNATURE.inputs[1]), SIGNATURE.outputs)
    with pytest.raises(RequestError, match="expected \\[1, 2\\]"):
        ask([6, 1, 2, 3], [4, 5, 6], *rows, signature=other, **asked)


def test_a_request_is_not_known_where_more_than_numbers_of_its_inputs_is_behind_the_json():
    x, ids = binary_rows()
    offsets = without(x, name="ids.lod.0", shape=[3], datatype="INT64", parameters={"binary_data_size": 24})
    pixels, numbers = np.ones(4, "<f4").tobytes(), np.arange(3, dtype="<i8").tobytes()
    in_json, behind = without(IDS, "parameters"), without(ids, parameters={"binary_data_size": 24})
    for rows, data, more in (
        ([x, ids], pixels + numbers, {"id": "a"}),
        ([x, in_json, offsets], pixels, {}),  # the offsets are as many bytes as the numbers, which are in the JSON
        ([x, behind, offsets], pixels + numbers, {}),
    ):
        known, head = KnownRequests(), json.dumps({"inputs": rows} | more).encode()
        for lod in ([0, 2, 3], [0, 1, 3]):
            tensors = data + (np.array(lod, "<i8").tobytes() if offsets in rows else b"")
            found, inputs = decode(SIGNATURE, memoryview(head + tensors), len(head), LIMITS, known=known)
            assert not found.repeats and inputs["ids"].lod == [lod if offsets in rows else [0, 3]]


BAD = [
    ((X,), "1 inputs are missing: 'ids'"),
    ((X, X, IDS), "'x' is given twice"),
    ((X, IDS, without(X, name="z")), "no input 'z'; it has 'x', 'ids'"),
    ((X, IDS, without(X, name="../../etc/passwd")), "no input"),
    ((X, IDS, without(X, name="x.lod.0")), "datatype FP32; the model expects INT64"),
    ((without(X, "name"), IDS), "has no name"),
    ((without(X, datatype="FP64"), IDS), "datatype FP64; the model expects FP32"),
    ((without(X, datatype="UINT64"), IDS), "datatype 'UINT64'; expected one of BOOL"),
    ((without(X, datatype="BYTES"), IDS), "datatype BYTES; the model expects FP32"),
    ((without(X, datatype=["FP32"]), IDS), "expected one of"),
    ((without(X, shape=[2, 3]), IDS), "shape [2, 3]; expected [-1, 2]"),
    ((without(X, shape=[4]), IDS), "shape [4]; expected [-1, 2]"),
    ((without(X, shape=[-1, 2]), IDS), "expected a list of at most 9 sizes"),
    ((without(X, shape=[True, 2]), IDS), "expected a list of at most 9 sizes"),
    ((without(X, shape=[1] * 10), IDS), "expected a list of at most 9 sizes"),
    ((without(X, shape="2,2"), IDS), "expected a list of at most 9 sizes"),
    ((without(X, shape=[1 << 39, 2]), IDS), "4 elements; shape [549755813888, 2] has 1099511627776"),
    ((without(X, data=[1, 2, 3]), IDS), "3 elements; shape [2, 2] has 4"),
    ((without(X, data=[[1, 2], 3, 4]), IDS), "lists and numbers are mixed"),
    ((without(X, data=[1, 2, 3, "4"]), IDS), "its data holds str; expected float32"),
    ((without(X, data=[1, 2, 3, None]), IDS), "its data holds NoneType"),
    ((without(X, data=[1, 2, 3, True]), IDS), "its data holds bool"),
    ((without(X, data=[[[1]], [[2]], [[3]], [[4]]]), IDS), "its data holds list"),
    ((without(X, data={"a": 1}), IDS), "no data; expected a JSON list"),
    ((X, without(IDS, data=[1, 2, 2.5])), "its data holds float; expected int64"),
    ((X, without(IDS, data=[1, 2, 1 << 63])), "out of the range of int64"),
    ((X, without(IDS, parameters={})), "holds sequences, and no LoD was given"),
    ((X, without(IDS, parameters={"lod": [[0, 2]]})), "level 0 ends at 2; expected 3"),
    ((X, without(IDS, parameters={"lod": [[1, 3]]})), "expected offsets that start at 0"),
    ((X, without(IDS, parameters={"lod": [[0, 2, 1, 3]]})), "decreases from 2 to 1"),
    ((X, without(IDS, parameters={"lod": [[0, 3.0]]})), "expected lists of offsets"),
    ((X, without(IDS, parameters={"lod": [[0, 1], [0, 3]]})), "2 levels; expected 1"),
    ((X, without(IDS, parameters={"lod": 5})), "expected lists of offsets"),
    ((X, without(IDS, parameters={"lod": "[[0, 3]"})), "is no JSON"),
    ((X, without(IDS, parameters={"lod": "\ud800"})), "is no JSON"),
    ((X, without(IDS, parameters=[])), "expected a JSON object"),
    ((without(X, "data", parameters={"binary_data_size": 12}), IDS), "binary_data_size 12; FP32 [2, 2] takes 16"),
    ((without(X, "data", parameters={"binary_data_size": 16}), IDS), "binary_data_size is 16, but 0 bytes are left"),
    ((without(X, "data", parameters={"binary_data_size": -16}), IDS), "takes 16 bytes"),
    ((without(X, parameters={"binary_data_size": 16}), IDS), "has more than one of data, binary_data_size"),
    (
        (without(X, parameters={"shared_memory_region": "r", "shared_memory_byte_size": 16}), IDS),
        "has more than one of data, binary_data_size",
    ),
    ((without(X, "data", parameters={"shared_memory_region": "r"}), IDS), "expected parameters shared_memory_region"),
    ((without(X, "data", parameters={"shared_memory_byte_size": 16}), IDS), "expected parameters shared_memory_region"),
    (
        (without(X, "data", parameters={"shared_memory_region": "r", "shared_memory_byte_size": 16}), IDS),
        "start the server with --shared-memory",
    ),
    (("x", IDS), "expected a JSON object"),
    ((), "expected a JSON list of 1 to 1024 entries"),
]


@pytest.mark.parametrize("inputs, why", BAD, ids=range(len(BAD)))
def test_bad_inputs_are_refused_with_400_and_the_reason(inputs, why):
    status, text = refused(*inputs)
    assert status == 400 and why in text, text


def test_bad_heads_are_refused():
    for text in (b"", b"{", b"[]", b"5", b"\xff\xfe", b'{"inputs": 1' * 3, b'{"inputs":' + b"9" * 5000 + b"}"):
        with pytest.raises(RequestError) as error:
            decode(SIGNATURE, memoryview(text), None, LIMITS)
        assert error.value.status == 400
    for length in (-1, 3):
        with pytest.raises(RequestError, match="but the body has 2 bytes"):
            decode(SIGNATURE, memoryview(b"{}"), length, LIMITS)
    assert refused(X, IDS, binary=b"1234")[1].startswith("4 bytes of binary data are left")
    assert "at most 256 characters" in refused(X, IDS, id="x" * 257)[1]
    assert "no output 'q'" in refused(X, IDS, outputs=[{"name": "q"}])[1]
    assert (
        "expected 0 to 1000 classes"
        in refused(X, IDS, outputs=[{"name": "y", "parameters": {"classification": -2}}])[1]
    )
    assert "expected microseconds" in refused(X, IDS, parameters={"timeout": "soon"})[1]


def test_a_lod_that_is_given_twice_or_is_too_long_is_refused():
    again, offsets = {"ids.lod": [[0, 1, 3]]}, {"name": "ids.lod.0", "shape": [2], "datatype": "INT64", "data": [0, 3]}
    plain = without(IDS, "parameters")
    for inputs, parameters in (((X, IDS), again), ((X, plain, offsets), again), ((X, IDS, offsets), {})):
        status, text = refused(*inputs, parameters=parameters)
        assert status == 400 and "'ids' has its LoD more than once" in text
    assert refused(X, plain, parameters={"ids.lod": [[0] * 20 + [3]]})[0] == 413
    assert refused(X, plain, parameters={"ids.lod": 5})[0] == 400


def test_sizes_are_limited():
    assert refused(X, IDS, id=" " * 10_000)[0] == 413
    many = without(IDS, parameters={"lod": [[0] * 20 + [3]]})
    assert refused(X, many) == (413, "the LoD of the inputs has more than 20 offsets")
    offsets = {"name": "ids.lod.0", "shape": [21], "datatype": "INT64", "data": [0] * 20 + [3]}
    assert refused(X, without(IDS, "parameters"), offsets)[0] == 413


def test_nesting_is_bounded():
    deep = b'{"inputs":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with pytest.raises(RequestError) as error:
        decode(SIGNATURE, memoryview(deep), None, Limits())
    assert error.value.status == 400


KEYS = (
    "inputs",
    "name",
    "shape",
    "datatype",
    "data",
    "parameters",
    "outputs",
    "id",
    "lod",
    "binary_data_size",
    "timeout",
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=25,
)


@given(values, values, values, values, values)
def test_whatever_a_request_holds_it_is_taken_or_refused(whole, shape, data, lod, parameters):
    bodies = [
        whole,
        {"inputs": [without(X, shape=shape), IDS]},
        {"inputs": [without(X, data=data), without(IDS, parameters={"lod": lod})]},
        {"inputs": [X, without(IDS, data=data, shape=shape)], "parameters": parameters},
        {"inputs": [X, IDS], "outputs": data, "id": lod},
    ]
    for body in bodies:
        try:
            decode(SIGNATURE, memoryview(json.dumps(body).encode()), None, LIMITS)
        except RequestError as error:
            assert error.status in (400, 413)


def test_answers_in_json_and_in_binary():
    outputs = {"y": Tensor(np.array([[1, 2.5]], np.float32), []), "tags": Tensor(np.array([[3], [4]]), [[0, 2]])}
    asked, _ = request(X, IDS, id="q")
    (text,), length = encode(asked, outputs, "m", "1", {})
    assert length is None
    assert json.loads(text) == {
        "model_name": "m",
        "model_version": "1",
        "id": "q",
        "outputs": [
            {"name": "y", "datatype": "FP32", "shape": [1, 2], "data": [1.0, 2.5]},
            {"name": "tags", "datatype": "INT64", "shape": [2, 1], "data": [3, 4], "parameters": {"lod": "[[0, 2]]"}},
        ],
    }
    rows = [{"name": "tags", "parameters": {"binary_data": True}}, {"name": "tags.lod.0"}]
    asked, _ = request(X, IDS, outputs=rows)
    assert wanted_outputs(asked, SIGNATURE) == ["tags"]
    (text, data), length = encode(asked, {"tags": outputs["tags"]}, "m", "1", {})
    assert length == len(text) and bytes(data) == np.array([3, 4], "<i8").tobytes()
    tags, offsets = json.loads(text)["outputs"]
    assert tags["parameters"] == {"lod": "[[0, 2]]", "binary_data_size": 16} and "data" not in tags
    assert offsets == {"name": "tags.lod.0", "datatype": "INT64", "shape": [2], "data": [0, 2]}
    plain = {"tags": Tensor(np.array([[3]]), [])}
    with pytest.raises(RequestError, match="'tags' has 0 levels of LoD"):
        encode(asked, plain, "m", "1", {})


@pytest.mark.parametrize(
    "datatype, dtype", [("FP16", "float16"), ("BF16", "bfloat16"), ("BOOL", "bool"), ("INT8", "int8")]
)
def test_other_datatypes_by_json_and_binary(datatype, dtype):
    from oprack.tensor import numpy_dtype

    signature = Signature((TensorSpec("x", dtype, (-1,)),), (TensorSpec("x", dtype, (-1,)),))
    array = np.array([1, 0, 1]).astype(numpy_dtype(dtype))
    data = array.astype(bool if dtype == "bool" else int).tolist()
    head = {"inputs": [{"name": "x", "shape": [3], "datatype": datatype, "data": data}]}
    found, inputs = decode(signature, memoryview(json.dumps(head).encode()), None, LIMITS)
    assert inputs["x"].array.dtype == array.dtype and (inputs["x"].array == array).all()
    found.outputs = [("x", True)]
    (text, sent), length = encode(found, inputs, "m", "1", {})
    assert bytes(sent) == array.tobytes() and length == len(text)
    if dtype == "bool":
        head["inputs"][0] = {"name": "x", "shape": [1], "datatype": "BOOL", "parameters": {"binary_data_size": 1}}
        start = json.dumps(head).encode()
        with pytest.raises(RequestError, match="0 or 1"):
            decode(signature, memoryview(start + b"\x02"), len(start), LIMITS)
    if dtype == "int8":
        head["inputs"][0]["data"] = [1, 2, 128]
        with pytest.raises(RequestError, match="out of the range of int8"):
            decode(signature, memoryview(json.dumps(head).encode()), None, LIMITS)


def test_more_json_than_an_answer_may_have_is_refused(monkeypatch):
    outputs = {"y": Tensor(np.ones((50, 2), np.float32), []), "tags": Tensor(np.ones((3, 1), np.int64), [[0, 3]])}
    assert encode(request(X, IDS)[0], outputs, "m", "1", {})[1] is None
    monkeypatch.setattr(answers, "MAX_JSON", 300)
    with pytest.raises(RequestError, match="more than 300 bytes; ask for binary data") as error:
        encode(request(X, IDS)[0], outputs, "m", "1", {})
    assert error.value.status == 413
    assert encode(request(X, IDS, parameters={"binary_data_output": True})[0], outputs, "m", "1", {})[1] is not None


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8", "bool"])
def test_arrays_in_json_are_those_that_are_read_back(dtype):
    """In several pieces, of which one has what only Python writes."""
    array = (np.random.default_rng(0).standard_normal((3, SLICE)) * 50).astype(dtype)
    if array.dtype.kind == "f":
        array[1, 5:7] = np.nan, -np.inf
    found = np.array(json.loads(b"".join(array_to_json(array))), dtype).reshape(array.shape)
    np.testing.assert_array_equal(found, array)
    assert b"".join(array_to_json(array[:0])) == b"[]"
