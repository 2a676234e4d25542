"""Values of attributes: programs and definitions of ops take the same ones, and keep them alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oprack.desc import AttrType, OpDesc, ProgramDesc
from oprack.desc.attr_values import RULES
from oprack.errors import AttributeValueError
from oprack.op import REQUIRED, Attr, OpAttrChecker

BLOCK = ProgramDesc().block(0)
# type of one, type of a list, values that it takes and what is kept of them, values that it does not take
KINDS: list[tuple[str, str, list[tuple[Any, Any]], list[Any]]] = [
    ("BOOLEAN", "BOOLEANS", [(True, True), (np.bool_(False), False), (1, True), (0.0, False)], [2, "True", None]),
    ("INT", "INTS", [(-(2**31), -(2**31)), (np.int64(3), 3)], [2**31, 1.0, True, "1", None]),
    ("LONG", "LONGS", [(2**63 - 1, 2**63 - 1), (np.int32(3), 3)], [2**63, 1.5, False, None]),
    ("FLOAT", "FLOATS", [(0.5, 0.5), (2, 2.0), (np.float32(0.25), 0.25)], [True, "1", 1j, None]),
    ("FLOAT64", "FLOAT64S", [(1e300, 1e300), (np.float16(2.0), 2.0)], [False, "1", None]),
    ("STRING", "STRINGS", [("", ""), ("NCHW", "NCHW")], [1, b"NCHW", None]),
    ("VAR", "VARS", [("w", "w")], [1, None]),
    ("BLOCK", "BLOCKS", [(2, 2), (BLOCK, 0)], ["0", True, 2**31, None]),
    ("SCALAR", "SCALARS", [(True, True), (2**40, 2**40), (1.5, 1.5), (2 - 1j, 2 - 1j)], [2**63, "1", None]),
]


def _outcomes(kind: AttrType, value: Any) -> tuple[Any, Any, list[str]]:
    """What a program keeps, what a definition keeps, and the types of both with the errors."""
    checker = OpAttrChecker("some_op", [(Attr(REQUIRED, "Anything.", type=kind).proto("a"), [])])
    op, errors, kept = OpDesc("some_op"), [], []
    for take in (lambda: op.set_attr("a", value, kind), lambda: kept.append(checker.check({"a": value})["a"])):
        try:
            take()
        except AttributeValueError as error:
            errors.append(str(error))
    return op.attrs.get("a"), kept[0] if kept else None, errors


@pytest.mark.parametrize(("one", "many", "right", "wrong"), KINDS, ids=[k[0] for k in KINDS])
def test_programs_and_definitions_take_the_same_values(one: str, many: str, right: Any, wrong: Any) -> None:
    kinds = AttrType[one], AttrType[many]
    for value, kept in right:
        for kind, given, stored in ((kinds[0], value, kept), (kinds[1], (value, value), [kept, kept])):
            a, b, errors = _outcomes(kind, given)
            assert a == b == stored and type(a) is type(b) is type(stored) and not errors
    for value in wrong:
        for kind, given in zip(kinds, (value, [right[0][0], value]), strict=True):
            a, b, errors = _outcomes(kind, given)
            assert a is None and b is None and len(errors) == 2
            assert all(f"expected {RULES[kind].words}" in text for text in errors)
    assert _outcomes(kinds[1], right[0][0])[0] is None and _outcomes(kinds[1], [])[0] == []


def test_every_type_has_a_rule() -> None:
    assert set(RULES) == set(AttrType) == {AttrType[name] for kind in KINDS for name in kind[:2]}
