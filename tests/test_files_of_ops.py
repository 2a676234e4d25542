"""Where the parts of an op lie in a pack: ops of a family in one file, their kernels in the file of the same name."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKS = Path(__file__).parents[1] / "op_packages"
FEWEST_LINES = 30
"""A module with less belongs to a larger one, unless nothing in its pack is like it."""
ALONE = {
    "oprack_amp/autocast.py",
    "oprack_control_flow/kernels/loop.py",  # all other ops of the pack run blocks and have no kernel
    "oprack_control_flow/kernels/run.py",
    "oprack_math/layers/power.py",
    "oprack_nn/passes/dropout.py",
    "oprack_optimizer/kernels/schedule.py",
    "oprack_optimizer/optimizers/accumulators.py",
    "oprack_optimizer/optimizers/sgd.py",
    "oprack_selected_rows/kernels.py",
    "oprack_sequence/nets.py",
    "oprack_sparse/sparse/networks.py",
    "oprack_tensor/functional/search.py",
    "oprack_tensor/layers/permute.py",
}


def _manifest(pack: str) -> dict:
    return tomllib.loads((PACKS / pack / f"src/oprack_{pack}/ops.toml").read_text("utf-8"))


def _forward(op_type: str, op_types: set[str]) -> str:
    """The op that an op is the gradient of, or itself."""
    found = re.fullmatch(r"(\w+?)(_double|_triple)?(_grad)+(\d?)", op_type)
    forward = found[1] + found[4] if found else op_type
    return forward if forward in op_types else op_type


def _file(module: str) -> str:
    """conv of oprack_nn.ops.conv:Conv2d."""
    return module.partition(":")[0].rpartition(".")[2].strip("_")


def _misplaced(pack: str) -> Iterator[str]:
    ops = _manifest(pack)["ops"]
    family = {op_type: _file(entry["define"]) for op_type, entry in ops.items()}
    families = set(family.values())
    for op_type, entry in ops.items():
        forward = _forward(op_type, set(ops))
        if family[op_type] != family[forward]:
            yield f"{op_type} is defined in {entry['define']}; expected beside {forward}, in {family[forward]}.py"
        modules = [m for found in entry.get("kernels", {}).values() for m in found]
        for module in {*modules, entry.get("operator", "")} - {""}:
            # a file of its own name, or its family's; what an own file of ops holds may run with its family's kernels
            if _file(module) not in {family[op_type], forward, "kernels", *families}:
                yield f"{op_type} runs in {module}; expected {family[op_type]}.py or {forward}.py"


def _stray_cases(pack: str) -> Iterator[str]:
    ops = set(_manifest(pack)["ops"])
    cases = PACKS / pack / "tests" / "cases"
    for case in cases.rglob("[!_]*.py"):
        if case.stem.rstrip("_") not in ops:
            yield f"{case.relative_to(PACKS)} is named like no op of the pack"


def _slight(pack: str) -> Iterator[str]:
    source = PACKS / pack / "src"
    for file in source.rglob("*.py"):
        name = str(file.relative_to(source))
        lines = len(file.read_text("utf-8").splitlines())
        # a list of layers that are made from their ops is as long as it is
        by_nature = file.name.startswith("_") or file.name in ("pack.py", "layers.py", "generated.py") or name in ALONE
        if lines < FEWEST_LINES and not by_nature:
            yield f"{name} has {lines} lines; expected {FEWEST_LINES} or more: put it where it belongs"


@pytest.mark.parametrize("pack", sorted(p.parent.name for p in PACKS.glob("*/pyproject.toml")))
@pytest.mark.parametrize("rule", [_misplaced, _stray_cases, _slight])
def test_parts_of_ops_lie_where_they_are_looked_for(rule, pack: str) -> None:
    assert "\n".join(rule(pack)) == ""
