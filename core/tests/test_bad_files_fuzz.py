"""Altered files end in an error of oprack or in a model, never in anything else."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oprack.errors import CorruptParameterError, OprackError
from oprack.io import load_from_buffers
from oprack.io.parameters import variable_path
from oprack.io.streams import read_lod_tensor, read_selected_rows
from oprack.program import Program
from oprack.tensor import Scope
from wire_bytes import lod_stream, rows_stream

PROGRAMS = Path(__file__).parents[2] / "tests" / "data" / "programs"
MODELS = {
    name: ((PROGRAMS / name / "model.pdmodel").read_bytes(), (PROGRAMS / name / "model.pdiparams").read_bytes())
    for name in ("lod_seqops", "while_loop")
}
STREAMS = [
    lod_stream(5, (3, 2), np.arange(6, dtype="float32").tobytes(), [0, 2, 2], [0, 1, 3]),
    lod_stream(22, (), b"\x80\x3f"),
    lod_stream(0, (0, 4), b"", [0, 0]),
]
ROWS = rows_stream([7, 2, 2], 10, 6, (3, 1), np.ones(3).tobytes())
FUZZ = settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])


def parse(data: bytes) -> Program | None:
    """A program that parses is written and read again without a change."""
    with contextlib.suppress(OprackError):
        program = Program.parse(data)
        again = program.serialize()
        assert Program.parse(again).serialize() == again
        str(program)
        return program
    return None


def load(model: bytes, params: bytes) -> None:
    with contextlib.suppress(OprackError):
        load_from_buffers(model, params, Scope())


def read(data: bytes) -> None:
    for reader in (read_lod_tensor, read_selected_rows):
        with contextlib.suppress(OprackError):
            _, end = reader(data)
            assert end <= len(data)


@st.composite
def altered(draw, sources):
    """One of the sources with a few bits flipped, bytes set, pieces cut out or repeated."""
    data = bytearray(draw(st.sampled_from(sources)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        kind = draw(st.sampled_from(["flip", "set", "cut", "repeat", "truncate"]))
        size = draw(st.integers(1, 16))
        if kind == "flip" and data:
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "set" and data:
            data[at] = draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
        elif kind == "cut":
            del data[at : at + size]
        elif kind == "repeat":
            data[at:at] = data[at : at + size]
        else:
            del data[at:]
    return bytes(data)


@given(st.binary(max_size=400))
@FUZZ
def test_random_bytes(data):
    parse(data)
    read(data)
    load(MODELS["while_loop"][0], data)


@given(altered([model for model, _ in MODELS.values()]))
@FUZZ
def test_altered_programs(data):
    parse(data)
    load(data, MODELS["while_loop"][1])


@given(altered([*STREAMS, ROWS]))
@FUZZ
def test_altered_streams(data):
    read(data)


@given(altered([params for _, params in MODELS.values()]))
@FUZZ
def test_altered_parameters(data):
    for model, _ in MODELS.values():
        load(model, data)


@pytest.mark.parametrize("name", MODELS)
def test_programs_truncated_anywhere(name):
    model, _ = MODELS[name]
    whole = 0
    for size in [*range(0, 300), *range(300, len(model), 37)]:
        program = parse(model[:size])
        # A cut between two fields of the program leaves a shorter one that is complete
        whole += program is not None
    assert whole <= 4


@pytest.mark.parametrize("name", MODELS)
def test_parameters_truncated_anywhere(name):
    model, params = MODELS[name]
    for size in [*range(0, min(300, len(params))), *range(300, len(params), 97)]:
        with pytest.raises(CorruptParameterError, match="are left"):
            load_from_buffers(model, params[:size], Scope())


@pytest.mark.parametrize("stream", [*STREAMS, ROWS], ids=["lod", "scalar", "empty", "rows"])
def test_streams_with_every_bit_flipped(stream):
    for at in range(len(stream)):
        for bit in range(8):
            data = bytearray(stream)
            data[at] ^= 1 << bit
            read(bytes(data))


@given(st.text(alphabet=st.one_of(st.sampled_from("./\\:\0aC~ "), st.characters()), max_size=40))
@FUZZ
def test_any_name_stays_inside_or_is_refused(tmp_path_factory, name):
    base = tmp_path_factory.getbasetemp()
    with contextlib.suppress(OprackError):
        path = variable_path(base, name)
        assert path.resolve().is_relative_to(base.resolve()) and path.resolve() != base.resolve()
