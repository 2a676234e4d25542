"""Every op of every pack agrees with Paddle 2.6.2: slots, flags, attributes, versions (tests/data/reference)."""

from __future__ import annotations

import itertools
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oprack.errors import AttributeValueError
from oprack.op import OpInfo
from oprack.op.proto import AttrProto, SlotProto
from oprack.packs.manager import default_manager

REFERENCE = Path(__file__).parent / "data" / "reference"
FLAGS = {"d": "duplicable", "o": "dispensable", "i": "intermediate", "x": "extra"}


@cache
def reference() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((REFERENCE / "op_protos.json").read_text())
    return found


@cache
def versions() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((REFERENCE / "op_versions.json").read_text())["ops"]
    return found


OP_TYPES = default_manager().op_types()


def _slot(proto: SlotProto) -> tuple[str, tuple[str, ...]]:
    return proto.name, tuple(flag for flag in FLAGS.values() if getattr(proto, flag))


def _expected_slots(slots: list[list[str]]) -> list[tuple[str, tuple[str, ...]]]:
    return [(s[0], tuple(word for f, word in FLAGS.items() if f in (s[1] if len(s) > 1 else ""))) for s in slots]


def _same_default(attr: AttrProto, default: Any) -> bool:
    if isinstance(default, dict):
        return attr.required
    ours = list(attr.default) if isinstance(attr.default, tuple) else attr.default
    if attr.type.name.startswith("FLOAT") and not attr.type.name.startswith("FLOAT64"):
        # Paddle keeps float32; infinities are spelled as text
        return bool(np.array_equal(np.float32(ours), np.float32(default)))
    return bool(ours == default)


@pytest.mark.parametrize("op_type", [t for t in OP_TYPES if t in reference()["ops"]])
def test_signature(op_type: str) -> None:
    proto, want = default_manager().op_info(op_type).proto, reference()["ops"][op_type]
    assert [_slot(s) for s in proto.inputs.values()] == _expected_slots(want["in"])
    assert [_slot(s) for s in proto.outputs.values()] == _expected_slots(want["out"])
    attrs = {a[0]: a for a in want["attrs"]}
    plain = [name for name in proto.attrs if name in attrs]
    assert plain == list(attrs), "attributes, in order"
    for name, given in attrs.items():
        ours = proto.attrs[name]
        flags = given[3] if len(given) > 3 else ""
        assert ours.type.name == given[1], f"type of {name}"
        assert _same_default(ours, given[2]), f"default of {name}: {ours.default!r}, Paddle has {given[2]!r}"
        assert (ours.extra, ours.generated, ours.support_tensor) == tuple(f in flags for f in "xgt"), f"flags of {name}"
    extra = [name for name in proto.attrs if name not in attrs]
    missing = [name for name in want.get("extra_attrs", {}) if name not in proto.attrs]
    assert not missing, f"extra attributes {missing} are not declared"
    assert all(proto.attrs[name].extra for name in extra), f"{extra} are not Paddle's, so they have to be extra"


def test_an_op_of_paddle_that_is_a_gradient_belongs_to_the_pack_of_its_forward_op() -> None:
    manager = default_manager()
    strays = []
    for op_type in OP_TYPES:
        known = reference()["noproto"].get(op_type)
        for forward in known["from"] if known else ():
            if manager.has_op(forward) and manager.owner(forward) != manager.owner(op_type):
                strays.append((op_type, manager.owner(op_type), forward, manager.owner(forward)))
    assert strays == []


def _bound(entry: str) -> str:
    """Slot of a grad op's input or output as the reference spells it: "X", "X=O:Out@GRAD", "X*", "X=[]"."""
    return entry.split("=")[0].removesuffix("*")


# Paddle joins the parts of the last dim along the first one; see docs/differences.md
OTHER_GRADIENTS = {"c_split": "c_concat"}
# Paddle's op changes W itself
MORE_GRADIENTS = {"pyramid_hash_grad": {"W@GRAD"}}
# Paddle's op drops these gradients; a program has the slot only where a gradient arrives, see docs/differences.md
MORE_ARRIVING = {
    "c_softmax_with_cross_entropy_grad": {"Softmax@GRAD"},
    "lstm_grad": {"Cell@GRAD"},
    "lstmp_grad": {"Cell@GRAD"},
    "softmax_with_cross_entropy_grad": {"Softmax@GRAD"},
}


@pytest.mark.parametrize(
    "op_type", [t for t in OP_TYPES if isinstance(reference()["ops"].get(t, {}).get("grad"), list)]
)
def test_grad_maker_emits_what_paddle_emits(op_type: str) -> None:
    """With all slots present: the same gradient ops, reading and writing the same slots."""
    from oprack.desc import OpDesc
    from oprack.errors import NotDifferentiableError
    from oprack.op.desc_rules import make_grad_ops

    info = default_manager().op_info(op_type)
    assert info.grad_op_maker is not None, f"{op_type}: Paddle differentiates it, so it needs a make_grad"
    proto = info.proto
    inputs = {s.name: [f"{s.name}.{i}" for i in range(2 if s.duplicable else 1)] for s in proto.inputs.values()}
    outputs = {s.name: [f"{s.name}.{i}" for i in range(2 if s.duplicable else 1)] for s in proto.outputs.values()}
    attrs = _required_attrs(info)
    types = {a.name: a.type for a in proto.attrs.values() if a.required}
    try:
        made = make_grad_ops(info, OpDesc(op_type, inputs, outputs, attrs, types))
    except NotDifferentiableError:
        made = []
    want = reference()["ops"][op_type]["grad"]
    if op_type in OTHER_GRADIENTS:
        want = [w | {"type": OTHER_GRADIENTS[op_type]} for w in want]
    assert [g.type for g in made] == [g["type"] for g in want]
    for ours, theirs in zip(made, want, strict=True):
        given = {_bound(e) for e in theirs["in"] if not e.endswith("=[]")}
        results = {_bound(e) for e in theirs["out"]} | MORE_GRADIENTS.get(ours.type, set())
        # "Out=[]": the probe gave that variable no gradient, or it has none
        sure = {_bound(e) for e in theirs["out"] if not e.endswith("=[]")}
        more = MORE_ARRIVING.get(ours.type, set())
        assert set(ours.inputs) == given | more, f"{ours.type}: inputs"
        slots = default_manager().op_info(ours.type).proto.inputs
        assert all(slots[slot].dispensable for slot in more), f"{ours.type}: Paddle's programs lack {more}"
        assert sure <= set(ours.outputs) <= results, f"{ours.type}: outputs"


def _required_attrs(info: OpInfo) -> dict[str, Any]:
    """Some values that the op's checks accept, for the attributes without a default."""
    required = [a for a in info.proto.attrs.values() if a.required]
    choices = []
    for a in required:
        texts = ["x", *re.findall(r"\w+", " ".join(a.checks))]
        values: list[Any] = texts if "STRING" in a.type.name else [True] if "BOOL" in a.type.name else [1, 2]
        lists = [[v] * n for n in (1, 2, 3, 4) for v in values] + [list(p) for p in itertools.permutations(values, 2)]
        choices.append(lists if a.type.name.endswith("S") else values)
    for values in itertools.product(*choices):
        attrs = {a.name: v for a, v in zip(required, values, strict=True)}
        try:
            info.checker.check(attrs)
        except AttributeValueError:
            continue
        return attrs
    raise AssertionError(f"{info.type}: no value found for {[a.name for a in required]}")


def _float_checks() -> list[tuple[str, str]]:
    """(op, attribute) of every FLOAT or FLOATS attribute with a check."""
    attrs = [(t, a) for t in OP_TYPES for a in default_manager().op_info(t).proto.attrs.values()]
    return [(t, a.name) for t, a in attrs if a.checks and a.type.name in ("FLOAT", "FLOATS")]


@pytest.mark.parametrize(("op_type", "name"), _float_checks())
def test_float_checks_see_what_32_bits_hold(op_type: str, name: str) -> None:
    """A saved 0.001 is read back as 0.00100000005: a bound takes both, and nothing beyond the next float32."""
    info = default_manager().op_info(op_type)
    attr, attrs = info.proto.attrs[name], _required_attrs(info)
    values = [lambda v, n=n: [v] * n for n in (1, 2, 4)] if attr.type.name == "FLOATS" else [lambda v: v]

    def accepts(value: float) -> bool:
        for value_of in values:
            try:
                info.checker.check(attrs | {name: value_of(value)})
            except AttributeValueError:
                continue
            return True
        return False

    numbers = [float(n) for text in attr.checks for n in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", text)]
    for number in {*numbers, 0.001, 0.1, 0.3, 1 / 3, 0.7, 1.1}:
        assert accepts(number) == accepts(float(np.float32(number))), f"{number} and its float32 differ"
    for text in attr.checks:
        words = re.fullmatch(r"a value between (\S+) and (\S+)", text)
        for bound, beyond in zip(words.groups(), (-np.inf, np.inf), strict=True) if words else ():
            assert accepts(float(bound))
            assert not accepts(float(np.nextafter(np.float32(bound), np.float32(beyond))))


@pytest.mark.parametrize("op_type", [t for t in OP_TYPES if t in reference()["ops"]])
def test_version(op_type: str) -> None:
    want = versions().get(op_type, {}).get("version", 0)
    info = default_manager().op_info(op_type)
    assert info.version == want
    assert default_manager().op_version(op_type) == want, "the manifest says another version; run `oprack manifest`"


DTYPES = {"f": "float", "bf": "bfloat", "i": "int", "u": "uint", "c": "complex"}
# Paddle's kernel -> why ours takes other dtypes
OTHER_DTYPES = {
    "beam_search": "scores are floats; Paddle's list also holds the dtypes of its ids",
    "edit_distance": "chosen by the dtype of the tokens, in Paddle by that of the result",
    **dict.fromkeys(("hard_swish", "hard_swish_grad"), "complex numbers have no minimum"),
    **dict.fromkeys(("roi_align", "roi_align_grad"), "the weights between integer pixels are no integers"),
    **dict.fromkeys(("roi_pool", "roi_pool_grad"), "regions in integer arithmetic would lose their scale"),
    "elementwise_div_grad_grad": "truth values have no quotient",
}


def _paddles_dtypes(op_type: str) -> set[str]:
    """Names of the dtypes of Paddle's plain CPU kernels."""
    entry = reference()["ops"].get(op_type) or reference()["noproto"][op_type]
    short = (entry.get("kernels") or {}).get("cpu", "").split()
    return {re.sub(r"^([a-z]+)(\d+)$", lambda m: DTYPES[m[1]] + m[2], name) for name in short}


@pytest.mark.parametrize("op_type", [t for t in OP_TYPES if t in reference()["ops"] or t in reference()["noproto"]])
def test_kernels_take_every_dtype_that_paddles_do(op_type: str) -> None:
    manager = default_manager()
    if manager.operator_class(op_type) is not None:
        return  # it runs itself, on any dtype
    ours = {d for spec in manager.kernel_map(op_type, "cpu") if spec.library == "plain" for d in spec.dtypes}
    missing = _paddles_dtypes(op_type) - ours
    assert bool(missing) == (op_type in OTHER_DTYPES), f"no kernel for {sorted(missing)}"


# Ops of the lists whose values are ids, labels or masks.
NO_FLOATS = {"chunk_eval", "gather_tree", "sequence_enumerate", "sequence_erase"}


@pytest.mark.parametrize(("name", "count"), [("ops_inference.txt", 113), ("ops_training.txt", 275)])
def test_every_op_of_the_lists_is_there_for_both_floats(name: str, count: int) -> None:
    wanted, manager = (REFERENCE / name).read_text().split(), default_manager()
    assert len(wanted) == count
    assert [t for t in wanted if not manager.has_op(t)] == []
    kernels = [t for t in wanted if manager.operator_class(t) is None and t not in NO_FLOATS]
    lacking = {t: {"float32", "float64"} - {d for k in manager.kernel_map(t, "cpu") for d in k.dtypes} for t in kernels}
    assert {t: dtypes for t, dtypes in lacking.items() if dtypes} == {}
