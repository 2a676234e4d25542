"""Type stubs for what packs add to oprack, as a partial stub package: all else keeps the types of its source."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from pathlib import Path
from textwrap import indent
from types import ModuleType
from typing import Any

from oprack.errors import OprackError
from oprack.functional.op_methods import method_protos, own_members, written_methods
from oprack.functional.stubs import HEAD, stubs
from oprack.functional.tensor import Tensor
from oprack.op.proto import param_name
from oprack.op.signature import function_signature, stub_docstring
from oprack.packs.manager import PackManager, default_manager
from oprack.packs.register import NAMESPACES

_HEAD = '''\
"""What `oprack.{}` has. Written by `oprack stubs`; write it again when packs change."""

from collections.abc import Mapping, Sequence
from typing import Any

'''


_BRIDGES = {
    "oprack_torch": ("from torch import Tensor", "Tensor"),
    "oprack_jax": ("from jax import Array as Tensor\nfrom jax.typing import ArrayLike", "ArrayLike"),
}
"""Packages whose `ops` has a function for each op, as those of oprack.functional: what their tensors are, and what
their functions take for one beside Sequences."""


def stub_package() -> dict[str, str]:
    """Contents of the files of `oprack-stubs` by path: one for each namespace that packs fill, and one for methods."""
    files = {"py.typed": "partial\n", "eager_tensor/op_methods.pyi": _methods()}
    manager = default_manager()
    for namespace in sorted(NAMESPACES):
        module = importlib.import_module(f"oprack.{namespace}")
        # A package needs __init__.pyi: a module stub of its name would hide its submodules.
        path = f"{namespace}/__init__.pyi" if hasattr(module, "__path__") else f"{namespace}.pyi"
        if namespace == "functional":
            ops = {param_name(op_type) for op_type in manager.op_types()}
            files[path] = _namespace(module, namespace, manager, stubs(), ops)
        else:
            files[path] = _namespace(module, namespace, manager, _HEAD.format(namespace))
    return files


def bridge_stubs() -> dict[str, dict[str, str]]:
    """Contents of the files of the stub packages of ops in other frameworks, by package, where it is installed."""
    text = stubs()
    return {
        f"{name}-stubs": {"py.typed": "partial\n", "ops.pyi": _in_framework(text, name, imported, taken)}
        for name, (imported, taken) in _BRIDGES.items()
        if importlib.util.find_spec(name) is not None
    }


def _in_framework(text: str, package: str, imported: str, taken: str) -> str:
    """The stub of oprack.functional with another framework's tensors; what is passed may have LoD as well."""
    head = f"{imported}\nfrom {package}.sequences import Sequences\n\n_Input = {taken} | Sequences"
    text = text.replace("from oprack import Tensor\n", head + "\n", 1)
    return re.sub(r"^def .*\) -> ", lambda m: re.sub(r"\bTensor\b", "_Input", m.group()), text, flags=re.MULTILINE)


def write_stub_package(folder: Path) -> Path:
    """Write `oprack-stubs` into a folder, and those of bridges that are installed; returns the path of the first."""
    for package, files in {"oprack-stubs": stub_package(), **bridge_stubs()}.items():
        for name, text in files.items():
            path = folder / package / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return folder / "oprack-stubs"


def _methods() -> str:
    """The stub of `OpMethods`: a method for each op, but for names that tensors have from elsewhere."""
    written = own_members(Tensor)
    parts = [HEAD.format("method of tensors"), "class OpMethods:"]
    of_packs = {name: function for name, function in written_methods().items() if name not in written}
    for proto in method_protos():
        signature = function_signature(proto)
        if signature.name not in {*written, *of_packs}:
            parts.append(indent(signature.stub(method=True), "    ") + "\n")
    for name, function in of_packs.items():
        _, *parameters = inspect.signature(function).parameters.values()  # the first is the tensor
        head = f"def {name}({', '.join(['self', *_parameters(parameters)])}) -> {_returned(function)}:"
        parts.append(indent(f"{head}\n{stub_docstring(inspect.getdoc(function) or name)}", "    ") + "\n")
    return "\n".join(parts)


def _namespace(module: ModuleType, namespace: str, manager: PackManager, head: str, known: Collection[str] = ()) -> str:
    """The stub of a module that packs extend: `head`, which has what is known, and the rest of its names.

    Those that can't be imported are left out.
    """
    targets = {key: target for _, key, target in manager.targets("layer")}
    homes = getattr(module, "_HOMES", {})  # where type aliases are defined, which they don't say themselves
    imports, definitions = [], []
    for name in sorted(set(module.__dir__()).difference(known)):
        try:
            value = getattr(module, name)
        except OprackError:
            continue
        own = f"{homes[name]}:{name}" if name in homes else _home(value, name)
        target = targets.get(f"{namespace}.{name}") or own
        home, _, attribute = target.partition(":")
        if attribute and _is_written(home, attribute):
            imports.append(f"from {home} import {attribute} as {name}")
        elif isinstance(value, ModuleType):
            parent, _, child = value.__name__.rpartition(".")
            imports.append(f"from {parent} import {child} as {name}")
        else:
            definitions.append("\n".join(_definition(name, value)))
    return head + "\n".join([*imports, "", *definitions]).rstrip() + "\n"


def _home(value: Any, name: str) -> str:
    """Where an object of core is defined, as "module:name"; "" for a module or an object that does not say."""
    if isinstance(value, ModuleType) or not hasattr(value, "__module__"):
        return ""
    return f"{value.__module__}:{getattr(value, '__qualname__', name)}"


@cache
def _written_names(module: str) -> frozenset[str]:
    """The names that a module's source defines or imports at top level, where a type checker sees them."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return frozenset()
    names: set[str] = set()
    for node in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return frozenset(names)


def _is_written(module: str, name: str) -> bool:
    return name in _written_names(module)


def _definition(name: str, value: Any) -> Iterator[str]:
    """The stub of a function that is created at run time, with its parameters; of anything else, `name: Any`."""
    signature = getattr(value, "op_signature", None)
    if signature is not None and signature.name == name:
        yield signature.stub()
        return
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        yield f"{name}: Any"
        return
    yield f"def {name}({', '.join(_parameters(parameters))}) -> Any:"
    yield stub_docstring(inspect.getdoc(value) or name)


def _parameters(parameters: Iterable[inspect.Parameter]) -> Iterator[str]:
    """The parameters of a function as a stub writes them."""
    starred = False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not starred:
            yield "*"
        starred = starred or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        mark = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
        yield f"{mark}{p.name}: Any" + ("" if p.default is p.empty else " = ...")


def _returned(function: Callable[..., Any]) -> str:
    """What a function returns, as far as names of the head of a stub say it."""
    text = str(inspect.signature(function).return_annotation)
    return text if set(re.findall(r"\w+", text)) <= {"Tensor", "list", "tuple", "bool", "int", "float"} else "Any"
