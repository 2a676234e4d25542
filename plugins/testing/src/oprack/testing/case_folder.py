"""collect_cases: the OpCase objects of a folder that has one file for each op."""

from __future__ import annotations

import functools
import importlib
import keyword
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from oprack.errors import DefinitionError, NotFoundError
from oprack.op import OpProto
from oprack.packs.manager import default_manager
from oprack.testing.op_case import OpCase


def collect_cases(folder: Path) -> list[OpCase]:
    """The cases of every op that has a file below `folder`: tests/cases/relu.py, tests/cases/conv/conv2d.py.

    A file is named like the op whose cases it holds, those of its gradient ops included; a name that Python can't
    import has a trailing underscore (while_.py). Its cases are the OpCase objects that it binds, alone or in a list
    such as CASES. Files whose names start with an underscore hold what several share, for `from ._family import x`.

    Args:
        folder: Read with its subfolders, in the order of names.

    Returns:
        All cases, each once.

    Raises:
        NotFoundError: There is no such folder.
        DefinitionError: A file has no case, or one of another op.
    """
    if not folder.is_dir():
        raise NotFoundError(f"{folder}: there is no such folder of case files; expected <pack>/tests/cases")
    return list(_collected(folder.resolve()))


@functools.cache
def _collected(folder: Path) -> tuple[OpCase, ...]:
    files = sorted(f.relative_to(folder) for f in folder.rglob("*.py"))
    return tuple(case for f in files if not f.name.startswith("_") for case in _cases_of(folder, f))


def case_file(op_type: str, folder: Path) -> str:
    """Where cases of an op and of its gradient ops are, or are to be written.

    Args:
        op_type: The op.
        folder: The folder of cases of its pack.

    Returns:
        The file, as it is named from the working directory where that is above it.
    """
    name = _forward(op_type)
    name = f"{name}_.py" if keyword.iskeyword(name) else f"{name}.py"
    there = next(iter(sorted(folder.rglob(name))), None)
    if there is None:  # a pack of many ops has a folder for each module of definitions
        rule = default_manager().op_info(op_type).infer_shape
        family = folder / getattr(rule, "__module__", "").rpartition(".")[2]
        there = (family if family.is_dir() else folder) / name
    return shown(there)


def shown(path: Path) -> str:
    """A path for people: from the working directory where that is above it, else in full."""
    full, here = path.resolve(), Path.cwd()
    return str(full.relative_to(here) if full.is_relative_to(here) else full)


def case_to_write(proto: OpProto, folder: Path) -> str:
    """The case that an op without any lacks, to be filled in, and the file for it.

    Args:
        proto: The op.
        folder: The folder of cases of its pack.

    Returns:
        What to do.
    """
    inputs = ", ".join(f'"{slot.name}": ...' for slot in proto.inputs.values() if not slot.dispensable)
    outputs = ", ".join(f'"{slot.name}": ...' for slot in proto.outputs.values() if not slot.dispensable)
    case = f'OpCase("{proto.type}", {{{inputs}}}, outputs={{{outputs}}})'
    return f"add {case} to {case_file(proto.type, folder)}, with numbers that a formula gives"


def _cases_of(folder: Path, file: Path) -> list[OpCase]:
    op_type = file.stem.rstrip("_")
    found = list({id(c): c for c in _bound(_module(folder, file))}.values())
    if not found:
        raise DefinitionError(
            f"{folder / file}: holds no case; bind OpCase objects in it (CASES = [OpCase({op_type!r}, ...)]), "
            "or let the name of a file that others import start with an underscore"
        )
    for case in found:
        if op_type not in (case.op, _forward(case.op)):
            raise DefinitionError(
                f"{folder / file}: holds a case of op {case.op!r}; expected {op_type} or its gradient ops. "
                f"Write it in {file.with_stem(_forward(case.op))}"
            )
    return found


def _forward(op_type: str) -> str:
    """relu of relu_grad, matmul_v2 of matmul_v2_triple_grad."""
    return re.sub(r"(_double|_triple)?(_grad)+$", "", op_type)


def _module(folder: Path, file: Path) -> ModuleType:
    """A file as a module of a package that stands for the folder, so that relative imports work."""
    package = "cases_in_" + re.sub(r"\W", "_", str(folder))
    if package not in sys.modules:
        holder = ModuleType(package)
        holder.__path__ = [str(folder)]
        sys.modules[package] = holder
    return importlib.import_module(".".join((package, *file.with_suffix("").parts)))


def _bound(module: ModuleType) -> Iterator[OpCase]:
    values: list[Any] = list(vars(module).values())
    for value in values:
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, OpCase):
                yield item
