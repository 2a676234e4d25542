"""OpProto and OpDef on the wire: the signatures of ops for tools that know Fluid's messages.

Protobuf is imported when a function here is called. What the messages have no field for, defaults and checks of
attributes, is not written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from oprack.errors import CorruptModelError
from oprack.op.attrs import COMMON_ATTRS
from oprack.op.proto import AttrProto, OpProto, SlotProto
from oprack.types import AttrType

_FLAGS = ("dispensable", "duplicable", "intermediate", "extra")


def op_proto_bytes(proto: OpProto) -> bytes:
    """A message OpProto. Attributes that every op has are among its own, marked extra, as in Fluid."""
    return bytes(_op_proto(proto).SerializeToString())


def op_protos_bytes(protos: Iterable[OpProto]) -> bytes:
    """A message OpProtoList: OpProtos one after the other, in field 1."""
    from oprack.desc import op_def_pb2

    pb: Any = op_def_pb2
    return bytes(pb.OpProtoList(ops=[_op_proto(p) for p in protos]).SerializeToString())


def parse_op_proto(data: bytes) -> OpProto:
    """An OpProto of a message; attributes then have no default.

    Raises:
        CorruptModelError: The bytes are no such message.
    """
    from oprack.desc import framework_pb2

    pb: Any = framework_pb2
    return _from_op_proto(_parsed(pb.OpProto, data))


def parse_op_protos(data: bytes) -> list[OpProto]:
    """The OpProtos of a message OpProtoList.

    Raises:
        CorruptModelError: The bytes are no such message.
    """
    from oprack.desc import op_def_pb2

    pb: Any = op_def_pb2
    return [_from_op_proto(m) for m in _parsed(pb.OpProtoList, data).ops]


def op_def_bytes(proto: OpProto) -> bytes:
    """A message OpDef: slots and attributes of the definition in `def`, those marked extra in `extra`."""
    from oprack.desc import op_def_pb2

    pb: Any = op_def_pb2
    message = pb.OpDef(type=proto.type)
    for part, extra in ((getattr(message, "def"), False), (message.extra, True)):
        part.SetInParent()
        for side in ("inputs", "outputs"):
            for slot in getattr(proto, side).values():
                if slot.extra is extra:
                    getattr(part, side).add(name=slot.name)
        for attr in proto.attrs.values():
            if attr.extra is extra:
                part.attrs.add(name=attr.name, type=int(attr.type))
    return bytes(message.SerializeToString())


def parse_op_def(data: bytes) -> OpProto:
    """An OpProto with the names, types and `extra` of a message OpDef, first those of `def`.

    Raises:
        CorruptModelError: The bytes are no such message.
    """
    from oprack.desc import op_def_pb2

    pb: Any = op_def_pb2
    message = _parsed(pb.OpDef, data)
    found = OpProto(message.type)
    for part, extra in ((getattr(message, "def"), False), (message.extra, True)):
        for side in ("inputs", "outputs"):
            getattr(found, side).update({s.name: SlotProto(s.name, extra=extra) for s in getattr(part, side)})
        found.attrs.update({a.name: AttrProto(a.name, AttrType(a.type), extra=extra) for a in part.attrs})
    return found


def _parsed(message: Callable[[], Any], data: bytes) -> Any:
    from google.protobuf.message import DecodeError

    made = message()
    try:
        made.ParseFromString(data)
    except DecodeError as error:
        raise CorruptModelError(
            f"{len(data)} bytes are no {type(made).__name__}: {error}; expected what `oprack ops --proto FILE` writes, "
            "or one message of Paddle's"
        ) from error
    return made


def _op_proto(proto: OpProto) -> Any:
    from oprack.desc import framework_pb2

    pb: Any = framework_pb2
    message = pb.OpProto(type=proto.type, comment=proto.doc)
    for side in ("inputs", "outputs"):
        for slot in getattr(proto, side).values():
            flags = {flag: True for flag in _FLAGS if getattr(slot, flag)}
            getattr(message, side).add(name=slot.name, comment=slot.doc, **flags)
    for attr in proto.attrs.values():
        flags = {flag: True for flag in ("generated", "extra", "support_tensor") if getattr(attr, flag)}
        message.attrs.add(name=attr.name, type=int(attr.type), comment=attr.doc, **flags)
    for name, (kind, _) in COMMON_ATTRS.items():
        if name not in proto.attrs:
            message.attrs.add(name=name, type=int(kind), comment="", extra=True)
    return message


def _from_op_proto(message: Any) -> OpProto:
    found = OpProto(message.type, doc=message.comment)
    for side in ("inputs", "outputs"):
        for s in getattr(message, side):
            getattr(found, side)[s.name] = SlotProto(s.name, s.comment, **{flag: getattr(s, flag) for flag in _FLAGS})
    for a in message.attrs:
        if a.name in COMMON_ATTRS and a.extra:
            continue
        flags = {flag: getattr(a, flag) for flag in ("generated", "extra", "support_tensor")}
        found.attrs[a.name] = AttrProto(a.name, AttrType(a.type), a.comment, **flags)
    return found
