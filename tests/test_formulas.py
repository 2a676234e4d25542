"""The documentation of every forward op of every pack, which `oprack op NAME` prints, holds its formula."""

from __future__ import annotations

import re

import pytest
from oprack.op import OpProto
from oprack.packs.manager import default_manager

# They compute nothing: what they do is said in words.
NO_FORMULA = {
    *("delete_var", "feed", "fetch", "get_places"),
    *("c_comm_init", "c_comm_init_all", "c_comm_init_multitrainer", "c_gen_xccl_id", "c_gen_nccl_id", "c_gen_bkcl_id"),
}


def _is_gradient(proto: OpProto) -> bool:
    slots = (*proto.inputs, *proto.outputs)
    return re.search(r"_grad\d?$", proto.type) is not None or any("@GRAD" in slot for slot in slots)


PROTOS = {t: default_manager().op_info(t).proto for t in default_manager().op_types()}
FORWARD = sorted(t for t, proto in PROTOS.items() if not _is_gradient(proto))


def formulas(doc: str) -> list[str]:
    """What stands between dollars."""
    return [a or b for a, b in re.findall(r"\$\$(.+?)\$\$|\$(.+?)\$", doc, re.DOTALL)]


def test_every_forward_op_has_a_formula() -> None:
    assert {t for t in FORWARD if not formulas(PROTOS[t].doc)} == NO_FORMULA


@pytest.mark.parametrize("op_type", FORWARD)
def test_its_formulas_are_closed(op_type: str) -> None:
    doc = PROTOS[op_type].doc
    assert doc.count("$$") % 2 == 0
    for formula in formulas(doc):
        plain = formula.replace(r"\{", "").replace(r"\}", "")
        assert plain.count("{") == plain.count("}"), formula
        assert len(re.findall(r"\\left\b", formula)) == len(re.findall(r"\\right\b", formula)), formula
