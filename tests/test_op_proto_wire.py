"""OpProto and OpDef on the wire: bytes put together from Fluid's field numbers, and a round trip of every op."""

from __future__ import annotations

from dataclasses import replace

import pytest
from oprack.cli.main import main
from oprack.errors import CorruptModelError
from oprack.op.attrs import COMMON_ATTRS
from oprack.op.proto import AttrProto, OpProto, SlotProto
from oprack.op.wire import (
    op_def_bytes,
    op_proto_bytes,
    op_protos_bytes,
    parse_op_def,
    parse_op_proto,
    parse_op_protos,
)
from oprack.packs.manager import default_manager
from oprack.types import AttrType
from wire_bytes import chunk, number

# OpProto: type 1, inputs 2, outputs 3, attrs 4, comment 5. Var: name 1, comment 2, duplicable 3, intermediate 4,
# dispensable 5, extra 6. Attr: name 1, type 2, comment 3, generated 4, extra 5, support_tensor 7.
PROTO = b"".join(
    [
        chunk(1, "thing"),
        chunk(2, chunk(1, "X") + chunk(2, "the x") + number(3, 1)),
        chunk(2, chunk(1, "W") + chunk(2, "") + number(5, 1) + number(6, 1)),
        chunk(3, chunk(1, "Out") + chunk(2, "the out")),
        chunk(3, chunk(1, "Mask") + chunk(2, "") + number(4, 1)),
        chunk(4, chunk(1, "axis") + number(2, 3) + chunk(3, "dims") + number(7, 1)),
        chunk(4, chunk(1, "use_cudnn") + number(2, 6) + chunk(3, "") + number(5, 1)),
        chunk(4, chunk(1, "made") + number(2, 1) + chunk(3, "") + number(4, 1)),
        chunk(4, chunk(1, "op_role") + number(2, 0) + chunk(3, "") + number(5, 1)),
        chunk(5, "What it does."),
    ]
)
# OpDef: type 1, def 2, extra 3; Desc: inputs 1, outputs 2, attrs 3
DEF = b"".join(
    [
        chunk(1, "thing"),
        chunk(2, chunk(1, chunk(1, "X")) + chunk(2, chunk(1, "Out")) + chunk(3, chunk(1, "axis") + number(2, 3))),
        chunk(3, chunk(1, chunk(1, "W")) + chunk(3, chunk(1, "use_cudnn") + number(2, 6))),
    ]
)


def on_the_wire(proto: OpProto) -> OpProto:
    """What is left of an OpProto: no defaults, no checks, no word of outputs without gradient."""
    attrs = {n: replace(a, default=None, required=False, checks=()) for n, a in proto.attrs.items()}
    outputs = {n: replace(s, stop_gradient=False) for n, s in proto.outputs.items()}
    return OpProto(proto.type, dict(proto.inputs), outputs, attrs, proto.doc)


def test_a_message_of_fluids_is_read():
    found = parse_op_proto(PROTO)
    assert (found.type, found.doc) == ("thing", "What it does.")
    assert list(found.inputs.values()) == [
        SlotProto("X", "the x", duplicable=True),
        SlotProto("W", "", dispensable=True, extra=True),
    ]
    assert list(found.outputs.values()) == [SlotProto("Out", "the out"), SlotProto("Mask", "", intermediate=True)]
    assert list(found.attrs.values()) == [
        AttrProto("axis", AttrType.INTS, "dims", support_tensor=True),
        AttrProto("use_cudnn", AttrType.BOOLEAN, extra=True),
        AttrProto("made", AttrType.FLOAT, generated=True),
    ]


def test_what_is_written_is_fluids_message():
    written = op_proto_bytes(parse_op_proto(PROTO))
    common = b"".join(
        chunk(4, chunk(1, n) + number(2, int(kind)) + chunk(3, "") + number(5, 1))
        for n, (kind, _) in COMMON_ATTRS.items()
    )
    role = chunk(4, chunk(1, "op_role") + number(2, 0) + chunk(3, "") + number(5, 1))
    assert written == PROTO.replace(role, common)


def test_an_op_def_is_read_and_written():
    found = parse_op_def(DEF)
    assert [(s.name, s.extra) for s in found.inputs.values()] == [("X", False), ("W", True)]
    assert [(a.name, a.type.name, a.extra) for a in found.attrs.values()] == [
        ("axis", "INTS", False),
        ("use_cudnn", "BOOLEAN", True),
    ]
    assert op_def_bytes(found) == DEF


def test_every_installed_op_goes_round():
    manager = default_manager()
    protos = [manager.op_info(t).proto for t in manager.op_types()]
    assert len(protos) > 500
    assert parse_op_protos(op_protos_bytes(protos)) == [on_the_wire(p) for p in protos]
    extras = 0
    for proto in protos:
        assert parse_op_proto(op_proto_bytes(proto)) == on_the_wire(proto)
        found = parse_op_def(op_def_bytes(proto))
        for side in ("inputs", "outputs", "attrs"):
            given, got = getattr(proto, side), getattr(found, side)
            assert {n: x.extra for n, x in got.items()} == {n: x.extra for n, x in given.items()}
            extras += sum(x.extra for x in got.values())
        assert {n: a.type for n, a in found.attrs.items()} == {n: a.type for n, a in proto.attrs.items()}
    assert extras > 50


def test_the_command_writes_all_or_some(tmp_path, capsys):
    file = tmp_path / "ops.pb"
    assert main(["ops", "--proto", str(file)]) == 0
    assert [p.type for p in parse_op_protos(file.read_bytes())] == default_manager().op_types()
    assert main(["ops", "softmax", "--pack", "nn", "--proto", str(file)]) == 0
    assert "softmax" in [p.type for p in parse_op_protos(file.read_bytes())]
    assert all("softmax" in p.type for p in parse_op_protos(file.read_bytes()))
    assert f"{file}: " in capsys.readouterr().out


@pytest.mark.parametrize("parse", [parse_op_proto, parse_op_protos, parse_op_def])
def test_other_bytes_are_refused(parse):
    for data in (PROTO[:-3], b"\xff\xff\xff", b"\x0a\x7f"):
        with pytest.raises(CorruptModelError, match="are no Op"):
            parse(data)
