"""A file of a pack is named like the op that it holds: `git ls-files '*reshape2*'` shows all of reshape2."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKS = Path(__file__).parents[1] / "op_packages"


def _manifest(pack: str) -> dict:
    return tomllib.loads((PACKS / pack / f"src/oprack_{pack}/ops.toml").read_text("utf-8"))


def _forward(op_type: str, op_types: set[str]) -> str:
    """The op that an op is the gradient of, or itself."""
    found = re.fullmatch(r"(\w+?)(_double|_triple)?(_grad)+(\d?)", op_type)
    forward = found[1] + found[4] if found else op_type
    return forward if forward in op_types else op_type


def _place(module: str) -> tuple[str, str]:
    """("conv", "conv2d") of oprack_nn.ops.conv.conv2d."""
    _, _, *folders, file = module.partition(":")[0].split(".")
    return ".".join(folders), file.rstrip("_")


def _misplaced(pack: str) -> Iterator[str]:
    manifest = _manifest(pack)
    ops = manifest["ops"]
    for op_type, entry in ops.items():
        forward = _forward(op_type, set(ops))
        family, file = _place(entry["define"])
        if file != forward:
            yield f"{op_type} is defined in {entry['define']}; expected a file {forward}.py"
        modules = [m for found in entry.get("kernels", {}).values() for m in found]
        for module in {*modules, entry.get("operator", "")} - {""}:
            folder, name = _place(module)
            # one function for a whole family stays with what the family shares
            if folder != family or (name != forward and not name.startswith("_")):
                yield f"{op_type} runs in {module}; expected {forward}.py in the folder {family or 'of the others'!r}"
    yield from _misplaced_layers(manifest)
    yield from _misplaced_cases(pack, ops)


def _misplaced_layers(manifest: dict) -> Iterator[str]:
    ops = manifest["ops"]
    for module, names in manifest.get("layers", {}).get("layers", {}).items():
        file = _place(module)[1]
        if file == "generated":  # it names layers that nobody wrote by hand
            continue
        # a layer of several ops, or of none, has a file of its own: StaticRNN in static_rnn.py
        if file not in ops and file.replace("_", "") not in {n.lower().replace("_", "") for n in names}:
            yield f"{module} holds {', '.join(names)}; expected a file named like the op that they append"


def _misplaced_cases(pack: str, ops: dict) -> Iterator[str]:
    definitions = {_place(entry["define"]) for entry in ops.values()}
    cases = PACKS / pack / "tests" / "cases"
    for case in cases.rglob("[!_]*.py"):
        folder = ".".join(case.parent.relative_to(cases).parts)
        if (folder, case.stem.rstrip("_")) not in definitions:
            yield f"{case.relative_to(PACKS)} lies in another folder than the definition"


@pytest.mark.parametrize("pack", sorted(p.parent.name for p in PACKS.glob("*/pyproject.toml")))
def test_a_file_holds_the_op_of_its_name(pack: str) -> None:
    assert "\n".join(_misplaced(pack)) == ""
