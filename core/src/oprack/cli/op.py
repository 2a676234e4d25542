"""oprack op NAME [--json]"""

from __future__ import annotations

import argparse
import textwrap
from typing import TYPE_CHECKING, Any

from oprack.cli.main import OK
from oprack.cli.output import add_block, add_json, manager_of, print_json, print_table

if TYPE_CHECKING:
    from oprack.op import AttrProto, OpInfo, SlotProto
    from oprack.packs.manager import PackManager


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="op type, for example conv2d")
    add_json(parser)
    add_block(parser)


def run(args: argparse.Namespace) -> int:
    facts = describe(manager_of(args), args.name)
    if args.json:
        print_json(facts)
    else:
        _print(facts)
    return OK


def describe(manager: PackManager, op_type: str) -> dict[str, Any]:
    """Everything about an op, as plain data. Imports its definition and all its kernels; raises as PackManager does."""
    from oprack.errors import OprackError

    info = manager.op_info(op_type)
    kernels, failures = [], []
    for place in manager.place_kinds(op_type):
        try:
            specs = sorted(manager.kernel_map(op_type, place), key=lambda spec: -spec.priority)
            kernels += [_kernel(spec) for spec in specs]
        except OprackError as e:
            failures.append(f"{place}: {type(e).__name__}: {e}")
    operator, roles = manager.operator_class(op_type), manager.extensions.roles()
    played = sorted(role for _, role, player in manager.targets("role") if player == op_type)
    return {
        "op": op_type,
        "pack": info.pack,
        "version": info.version,
        "doc": info.proto.doc,
        "inputs": [_slot(s) for s in info.proto.inputs.values()],
        "outputs": [_slot(s) for s in info.proto.outputs.values()],
        "attrs": [_attr(a) for a in info.proto.attrs.values()],
        "kernels": kernels,
        "kernel_errors": failures,
        "operator": f"{operator.__module__}:{operator.__qualname__}" if operator is not None else None,
        "gradient": _gradient(info),
        "inplace": dict(info.inplace),
        "roles": {
            role: roles[role].wanted_by if role in roles else "nothing that is installed asks for it" for role in played
        },
        "no_need_buffer_vars": list(info.no_need_buffer_vars),
        "checkpoints": [note for note, _ in info.versions.checkpoints] if info.versions else [],
        "facets": dict(info.owners),
    }


def _slot(slot: SlotProto) -> dict[str, Any]:
    flags = [f for f in ("dispensable", "duplicable", "intermediate", "extra") if getattr(slot, f)]
    flags += [f"at least {slot.minimum}"] if slot.minimum else []
    return {"name": slot.name, "doc": slot.doc, "flags": flags}


def _attr(attr: AttrProto) -> dict[str, Any]:
    flags = [f for f in ("required", "extra", "generated", "support_tensor") if getattr(attr, f)]
    return {
        "name": attr.name,
        "type": attr.type.name,
        "default": attr.default,
        "checks": list(attr.checks),
        "doc": attr.doc,
        "flags": flags,
    }


def _kernel(spec: Any) -> dict[str, Any]:
    return {
        "place": spec.place,
        "dtypes": sorted(spec.dtypes),
        "library": spec.library,
        "owner": spec.owner,
        "priority": spec.priority,
        "when": spec.when.text if spec.when is not None else "",
        "min_numel": spec.min_numel,
        "may_decline": spec.may_decline,
        "view": spec.view,
        "function": spec.name,
        "where": spec.where,
    }


def condition(kernel: dict[str, Any]) -> str:
    """When a kernel runs, in words.

    Args:
        kernel: What `describe` says of it.

    Returns:
        The words; "-" when it always runs.
    """
    parts = [kernel["when"]] if kernel["when"] else []
    if kernel["min_numel"]:
        parts.append(f"{kernel['min_numel']} elements or more")
    if kernel["may_decline"]:
        parts.append("may decline")
    return "; ".join(parts) or "-"


def _gradient(info: OpInfo) -> dict[str, Any]:
    """What the grad maker gives when every slot is present and every attribute has its default."""
    from oprack.op import ForwardOp, GradOp, empty_grad

    maker = info.grad_op_maker
    if maker is None:
        return {"kind": "none", "ops": []}
    if maker is empty_grad:
        return {"kind": "empty", "ops": []}
    attrs = {a.name: a.default for a in info.proto.attrs.values()}
    try:
        made = maker(ForwardOp(info.proto, attrs, list(info.proto.inputs), list(info.proto.outputs)))
    except Exception as e:  # a maker may need an attribute that has no default
        return {"kind": "own", "ops": [], "note": f"depends on attributes ({type(e).__name__}: {e})"}
    return {"kind": "own", "ops": [g.type for g in ([made] if isinstance(made, GradOp) else made)]}


def _print(facts: dict[str, Any]) -> None:
    print(f"{facts['op']}  ({facts['pack']}; op version {facts['version']})")
    if facts["doc"]:
        print("\n" + facts["doc"])
    _print_signature(facts)
    _print_rules(facts)
    if facts["kernels"]:
        print("\nKernels:")
        rows = [
            (k["place"], k["library"], k["owner"], k["priority"], " ".join(k["dtypes"]), condition(k), k["where"])
            for k in facts["kernels"]
        ]
        print_table(("PLACE", "LIBRARY", "OWNER", "PRIORITY", "DTYPES", "WHEN", "WHERE"), rows, indent="  ")
    for failure in facts["kernel_errors"]:
        print(f"  broken: {failure}")
    print("\nProvided by:")
    by_owner: dict[str, list[str]] = {}
    for facet, owner in facts["facets"].items():
        by_owner.setdefault(owner, []).append(facet)
    for owner, facets in by_owner.items():
        _entry(owner, [], ", ".join(facets))


def _print_signature(facts: dict[str, Any]) -> None:
    for title in ("inputs", "outputs"):
        print(f"\n{title.capitalize()}:" + ("" if facts[title] else " none"))
        for slot in facts[title]:
            _entry(slot["name"], slot["flags"], slot["doc"])
    print("\nAttributes:" + ("" if facts["attrs"] else " none"))
    for a in sorted(facts["attrs"], key=lambda a: "extra" in a["flags"]):
        default = "" if "required" in a["flags"] else f" = {a['default']!r}"
        checks = f" Expected: {', and '.join(a['checks'])}." if a["checks"] else ""
        _entry(f"{a['name']}: {a['type']}{default}", a["flags"], a["doc"] + checks)


def _print_rules(facts: dict[str, Any]) -> None:
    """Gradient, memory, roles and versions."""
    gradient = facts["gradient"]
    words = {"none": "none: not differentiable", "empty": "none on purpose: nothing flows back"}
    print("\nGradient: " + words.get(gradient["kind"], ", ".join(gradient["ops"]) or gradient.get("note", "")))
    if facts["inplace"]:
        print("In place: " + ", ".join(f"{out} may reuse {x}" for x, out in facts["inplace"].items()))
    if facts["roles"]:
        print("Plays: " + ", ".join(f"{role} ({wanted_by})" for role, wanted_by in facts["roles"].items()))
    if facts["no_need_buffer_vars"]:
        print("Only the shape is read of: " + ", ".join(facts["no_need_buffer_vars"]))
    for i, note in enumerate(facts["checkpoints"], 1):
        print(f"Version {i}: {note}")
    if facts["operator"]:
        print(f"\nRuns itself: {facts['operator']}")


def _entry(head: str, flags: list[str], doc: str) -> None:
    print(f"  {head}" + (f"  [{', '.join(flags)}]" if flags else ""))
    if doc:
        print(textwrap.fill(doc, 112, initial_indent=" " * 6, subsequent_indent=" " * 6))
