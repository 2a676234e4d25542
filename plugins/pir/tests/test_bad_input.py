"""Files that are no models, or that somebody altered: an error of a model, soon, in memory bounded by the file."""

from __future__ import annotations

import copy
import json
import random
import time
import tracemalloc

import pytest
from oprack import Scope
from oprack.errors import (
    BlockDepthError,
    CorruptModelError,
    CorruptParameterError,
    MissingPackError,
    MissingParameterError,
    ModelError,
    NotFoundError,
    OprackError,
    UnimplementedError,
)
from oprack.io import load_from_buffers, load_inference_model
from oprack.packs import PackManager, use_manager
from oprack_pir import document, values
from oprack_pir.reader import read_program
from pir_files import DATA, MODELS, attr, data, fetch, full, op, tensor, text

RELU = op("1.relu", [1], [(2, tensor())])


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (b"", "no PIR program"),
        (b"{", "no PIR program"),
        (b"[]", "base_code"),
        (b"{}", "base_code"),
        (b"\xff\xfe{}", "no PIR program"),
        (b'{"base_code": NaN}', "no PIR program"),
        (b'{"base_code": ' + b"9" * 6000 + b"}", "no PIR program"),
        (text(magic="onnx"), "'onnx'"),
        (text(version=99), "version 99"),
        (text(version=True), "version"),
        (text(data()), "pd_op.fetch"),
        (text(data(), fetch(7)), "value 7"),
        (text(data(), data(1, "y"), fetch(1)), "value 1"),
        (text(data(), data(2), fetch(1)), "'x'"),
        (text(data(), data(2, ""), fetch(1)), "empty"),
        (text(data(), RELU, fetch(2), fetch(1)), "col"),
        (text(data(kind={"#": "0.t_dtensor", "D": [{"#": "0.t_q7"}, [1]]})), "t_q7"),
        (text(data(kind=tensor(shape=(-5,))), fetch(1)), "-5"),
        (text(data(kind=tensor(shape=(2**70,))), fetch(1)), "shape"),
        (text(data(), full(2, 1.0, shape=(-1,)), fetch(2)), "-1"),
        (text(data(), op("7.relu", [1], [(2, tensor())])), "dialect"),
        (text(data(), op("2.yield", [1]), fetch(1)), "yield"),
        (text(data(), op("1.if", [1], [], (), [[]]), fetch(1)), "regions"),
        (text(data(), op("1.while", [1], [(2, tensor())], (), [[]]), fetch(1)), "operands"),
        (text(data(), op("1.if", [1], [(2, tensor())], (), [[], []]), fetch(2)), "yields 0"),
        (text(data(), op("1.relu", [1], [(2, tensor())], [attr("a", "0.a_i64", 2**64)]), fetch(2)), "a_i64"),
    ],
)
def test_an_error_says_what_is_wrong(program, said):
    with pytest.raises(CorruptModelError, match=said):
        read_program(program)


def nested(depth, build):
    found = build(None)
    for _ in range(depth):
        found = build(found)
    return found


def test_deep_nesting_is_refused_before_it_harms():
    for bomb in (b"[" * 2_000_000, b'{"base_code":' * 500_000):
        with pytest.raises(CorruptModelError):
            read_program(bomb)
    yields = [op("2.yield", [1])]
    ops = yields
    for number in range(document.MAX_DEPTH + 5):
        ops = [op("1.if", [1], [(50 + number, tensor())], (), [ops, yields]), op("2.yield", [1])]
    with pytest.raises((BlockDepthError, CorruptModelError)):
        read_program(text(data(), ops[0], fetch(1)))


def test_a_file_that_is_too_large_is_refused_by_its_size(monkeypatch):
    monkeypatch.setattr(document, "MAX_BYTES", 1000)
    monkeypatch.setattr(document.json, "loads", lambda *_, **__: pytest.fail("the file was read"))
    with pytest.raises(CorruptModelError, match="1001 bytes"):
        read_program(b" " * 1001)


def test_a_huge_constant_takes_no_memory():
    """A tensor of 2**60 numbers as an axis, as a shape, and as a result."""
    program = text(data(), full(2, 1.0, "int64", (2**60,)), op("1.reshape", [1, 2], [(3, tensor())]), fetch(3))
    tracemalloc.start()
    read_program(program)
    assert tracemalloc.get_traced_memory()[1] < 10 << 20
    tracemalloc.stop()


def test_a_list_that_many_ops_read_is_counted(monkeypatch):
    """Each op writes the list out, so a small file could ask for any amount of memory."""
    monkeypatch.setattr(values, "MAX_NAMES", 1000)
    several = op("0.combine", [1] * 100, [(2, {"#": "0.t_vec", "D": [tensor()] * 100})])
    joined = [op("1.add_n", [2], [(10 + i, tensor())]) for i in range(20)]
    with pytest.raises(CorruptModelError, match="1000 names"):
        read_program(text(data(), several, *joined, fetch(10)))


def changed(random_, found, depth=0):
    """A JSON value with one thing in it changed."""
    if isinstance(found, dict) and found and random_.random() < 0.97:
        key = random_.choice(list(found))
        return found | {key: changed(random_, found[key], depth + 1)}
    if isinstance(found, list) and found and random_.random() < 0.97:
        place = random_.randrange(len(found))
        rest = [changed(random_, found[place], depth + 1)] if random_.random() < 0.9 else [found[place]] * 2
        return found[:place] + rest * (random_.random() < 0.9) + found[place + 1 :]
    odd = [None, -1, 0, 1, 2**31, 2**63, 1e300, -(2**64), "", "x", "1.relu", "0.t_f32", True, [], {}, {"#": "NULL"}]
    return random_.choice([*odd, found + 1 if type(found) is int else found])


@pytest.mark.parametrize("name", MODELS)
def test_altered_programs_are_refused_or_read(name):
    """Whatever is changed, the reader ends with a program or with an error of a model, soon."""
    given = json.loads((DATA / name / "inference.json").read_text())
    random_ = random.Random(name)
    refused, began = 0, time.monotonic()
    for _ in range(150):
        altered = copy.copy(given)
        for _ in range(random_.randint(1, 3)):
            altered = changed(random_, altered)
        try:
            read_program(json.dumps(altered).encode())
        except (ModelError, UnimplementedError):
            refused += 1
    assert 30 < refused
    assert time.monotonic() - began < 120


@pytest.mark.parametrize("name", ["conv", "swap"])
def test_programs_that_were_cut_off_are_refused(name):
    whole = (DATA / name / "inference.json").read_bytes().rstrip()
    for place in range(0, len(whole), max(1, len(whole) // 200)):
        with pytest.raises(ModelError):
            read_program(whole[:place])


def test_parameters_of_another_program_are_refused():
    program, params = ((DATA / "conv" / f"inference.{end}").read_bytes() for end in ("json", "pdiparams"))
    other = (DATA / "detector" / "inference.pdiparams").read_bytes()
    for wrong in (other, params[:-3], params + b"x"):
        with pytest.raises(CorruptParameterError):
            load_from_buffers(program, wrong, Scope())


# Files ---------------------------------------------------------------------------------------------------------------
def test_errors_name_the_file(tmp_path):
    file = tmp_path / "inference.json"
    file.write_bytes(text(data(), op("1.flux", [1], [(2, tensor())]), fetch(2)))
    with pytest.raises(UnimplementedError, match=r"inference\.json.*flux"):
        load_inference_model(tmp_path, Scope())
    file.write_bytes(b"{")
    with pytest.raises(CorruptModelError, match=r"inference\.json"):
        load_inference_model(file, Scope())
    weight = {"#": "p", "A": [0, 1, 1, "w"], "OA": [1, 0, 1], "O": {"%": 9, "TT": tensor()}}
    file.write_bytes(text(weight, data(), op("1.add", [1, 9], [(2, tensor())]), fetch(2)))
    with pytest.raises(MissingParameterError, match="'w'"):
        load_inference_model(tmp_path, Scope())


def test_two_models_in_one_folder_ask_for_a_name(tmp_path):
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_bytes(text(data(), RELU, fetch(2)))
    with pytest.raises(NotFoundError, match="2 program files"):
        load_inference_model(tmp_path, Scope())
    assert load_inference_model(tmp_path / "a.json", Scope()).feed_names == ["x"]
    assert load_inference_model(tmp_path, Scope(), model_filename="b.json").feed_names == ["x"]


def test_without_the_plugin_the_error_says_what_to_install(tmp_path):
    file = tmp_path / "inference.json"
    file.write_bytes(text(data(), RELU, fetch(2)))
    with use_manager(PackManager(environ={"OPRACK_BLOCK": "pir"})):
        for path in (tmp_path, file, tmp_path / "inference"):
            with pytest.raises(MissingPackError, match=r"pip install oprack-pir"):
                load_inference_model(path, Scope())
        with pytest.raises(OprackError, match="oprack-pir"):
            load_from_buffers(file.read_bytes(), b"", Scope())
