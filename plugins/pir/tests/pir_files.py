"""Program files of Paddle 3 for tests: the recorded ones, and small ones put together here."""

from __future__ import annotations

import json
from pathlib import Path

DATA = Path(__file__).parent / "data"
MODELS = sorted(path.parent.name for path in DATA.glob("*/inference.json"))

F32, I64, BOOL = "t_f32", "t_i64", "t_bool"


def tensor(dtype=F32, shape=(2, 3)):
    return {"#": "0.t_dtensor", "D": [{"#": f"0.{dtype}"}, list(shape), "NCHW", [], 0]}


def attr(name, kind, value):
    return {"N": name, "AT": {"#": kind, "D": value}}


def op(name, operands=(), results=(), attrs=(), regions=()):
    """results: (id, type) of each."""
    made = {
        "#": name,
        "I": [{"%": number} for number in operands],
        "O": [{"%": number, "TT": kind} for number, kind in results],
        "A": list(attrs),
        "OA": [],
    }
    if regions:
        made["regions"] = [{"#": "r", "blocks": [block(ops)]} for ops in regions]
    return made


def block(ops, args=()):
    return {"#": "b", "args": list(args), "ops": list(ops)}


def data(number=1, name="x", kind=None):
    return op("1.data", [], [(number, kind or tensor())], [attr("name", "0.a_str", name)])


def full(number, value, dtype="float32", shape=(1,)):
    attrs = [
        attr("shape", "1.a_intarray", list(shape)),
        attr("value", "0.a_f64", value),
        attr("dtype", "1.a_dtype", dtype),
    ]
    kinds = {"float32": F32, "int64": I64, "bool": BOOL, "int32": "t_i32"}
    return op("1.full", [], [(number, tensor(kinds[dtype], shape))], attrs)


def fetch(number, col=0, name=None):
    attrs = [attr("name", "0.a_str", name or f"fetch_name_{col}"), attr("col", "0.a_i32", col)]
    return op("1.fetch", [number], [(1000 + col, tensor())], attrs)


def document(*ops, version=4, magic="pir"):
    """A program as the object that JSON stands for."""
    return {
        "base_code": {"magic": magic, "version": version, "trainable": True},
        "program": {"regions": [{"#": "region_0", "blocks": [block(ops)]}]},
    }


def text(*ops, **head):
    """The bytes of a program."""
    return json.dumps(document(*ops, **head)).encode()
