"""What errors of wrong calls propose runs: recorded calls of every op are made wrong, with attributes by position,
numbers for tensors and names that are misspelt.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import functional as F
from oprack import to_tensor
from oprack.errors import InvalidArgumentError, OprackError
from oprack.op import OpProto, param_name
from oprack.op.signature import input_names
from oprack.packs.manager import default_manager
from oprack.tensor import LoDTensor
from oprack.testing.fuzz.examples.calls import OpCall, seeds

CASES = Path(__file__).parent / "data" / "cases"
OPS = [t for t in default_manager().op_types() if not t.endswith("_grad") and (CASES / f"{t}.npz").is_file()]
# its shape rule looks at nothing but the shape of Input, so advice for it is a guess
GUESSED = {"set_value"}
BY_KEYWORD = "attributes go by keyword: "


def _recorded(op_type: str) -> Iterator[tuple[OpProto, dict[str, Any], dict[str, Any]]]:
    """Calls that run: tensors and attributes by how Python spells them."""
    proto = default_manager().op_info(op_type).proto
    names = input_names(proto)
    parameters = inspect.signature(getattr(F, param_name(op_type))).parameters
    try:
        calls = seeds(op_type, [CASES], most=4)
    except AttributeError:
        return  # an input is a rank table, which is no tensor
    for call in calls:
        tensors = {names[slot]: _tensors(call, slot, proto) for slot in proto.inputs if call.inputs.get(slot)}
        attrs = {
            a.param: call.attrs[a.name]
            for a in proto.attrs.values()
            if a.name in call.attrs and a.param in parameters and (a.required or call.attrs[a.name] != a.default)
        }
        try:
            getattr(F, param_name(op_type))(**tensors, **attrs)
        except OprackError:
            continue  # an output that has to be asked for, an attribute that has no argument
        yield proto, tensors, attrs


def _tensors(call: OpCall, slot: str, proto: OpProto) -> Any:
    found = [to_tensor(call.values[name]) for name in call.inputs[slot]]
    return found if proto.inputs[slot].duplicable else found[0]


def _run(source: str, tensors: dict[str, Any]) -> Any:
    return eval(f"F.{source}", {"F": F, "oprack": oprack, **tensors})


def _error(proto: OpProto, positions: list[Any], named: dict[str, Any]) -> str:
    """What the error of a wrong call says; "" when the op takes the call."""
    try:
        getattr(F, param_name(proto.type))(*positions, **named)
    except InvalidArgumentError as error:
        return str(error).partition("\n")[0]
    except OprackError:
        return ""
    return ""


@pytest.mark.parametrize("op_type", sorted(set(OPS) - GUESSED))
def test_attributes_by_position(op_type: str) -> None:
    for proto, tensors, attrs in _recorded(op_type):
        order = [n for n in inspect.signature(getattr(F, param_name(op_type))).parameters if n in tensors]
        if not attrs or order != list(inspect.signature(getattr(F, param_name(op_type))).parameters)[: len(order)]:
            continue
        for count in range(1, len(attrs) + 1):
            values = list(attrs.values())
            text = _error(proto, [tensors[n] for n in order] + values[:count], dict(list(attrs.items())[count:]))
            assert not text or BY_KEYWORD in text or "expected a tensor" in text
            proposed = text.partition(BY_KEYWORD)[2]
            if proposed and " *, " not in proposed and "(*, " not in proposed:
                _run(proposed, {**attrs, **tensors})


@pytest.mark.parametrize("op_type", OPS)
def test_numbers_for_tensors(op_type: str) -> None:
    for proto, tensors, attrs in _recorded(op_type):
        for name, value in tensors.items():
            if isinstance(value, list) or not isinstance(value.value, LoDTensor) or value.numpy().size > 6:
                continue
            if value.numpy().dtype not in (np.float32, np.int64) or value.lod:
                continue
            numbers = value.tolist()
            text = _error(proto, [], {**tensors, name: numbers, **attrs})
            made = re.search(r"; (oprack\.to_tensor\(.*\)) makes one$", text)
            if made:
                tensor = eval(made[1], {"oprack": oprack, name: numbers})
                getattr(F, param_name(op_type))(**{**tensors, name: tensor, **attrs})
            elif BY_KEYWORD in text and "*, " not in text:
                _run(text.partition(BY_KEYWORD)[2], {**tensors, name: numbers})


def test_misspelt_attributes() -> None:
    for op_type in OPS:
        for proto, tensors, attrs in _recorded(op_type):
            for name in attrs:
                wrong = {f"{n}_" if n == name else n: v for n, v in attrs.items()}
                text = _error(proto, [], {**tensors, **wrong})
                assert name in text.partition("expected ")[2].split(", "), text
            break


def test_slots_for_arguments() -> None:
    for op_type in OPS:
        for proto, tensors, attrs in _recorded(op_type):
            by_slot = {slot: name for slot, name in input_names(proto).items() if name in tensors}
            for slot, name in by_slot.items():
                if param_name(slot) in (name, *(a.param for a in proto.attrs.values())):
                    continue
                given = {**tensors, **attrs}
                given[param_name(slot)] = given.pop(name)
                with pytest.raises(InvalidArgumentError, match=rf"the name of a slot; as an argument write {name}=$"):
                    getattr(F, param_name(op_type))(**given)
            break
