"""From a pack's source tree to its ops.toml: imports its modules and writes down what they define."""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from oprack.errors import ManifestError, NotFoundError, OprackError
from oprack.packs.installed.entry_points import GROUP
from oprack.packs.installed.manifest import FILENAME, Manifest, OpEntry
from oprack.packs.installed.resolve import MEND, import_module, require_no_rules

if TYPE_CHECKING:
    from oprack.op import OpDef, OpFacets
    from oprack.packs.pack import Pack

LAYERS = {
    "layers": "layers",
    "functional": "functional",
    "nets": "nets",
    "modules": "nn",
    "initializers": "initializer",
    "metrics": "metrics",
    "sparse": "sparse",
}
"""Modules (or packages) of a pack that hold what it brings below `oprack.<namespace>`, and the namespace."""


@dataclass(frozen=True)
class PackSource:
    """A pack's project directory.

    Attributes:
        package: Name of its import package.
        directory: Where that package lies.
        distribution: Name of the project.
        entry_point: Module that its line in pyproject.toml names.
        name: Name of the entry point.
        version: Of the project; "" when it is not in pyproject.toml.
    """

    root: Path
    package: str
    directory: Path
    distribution: str = ""
    entry_point: str = ""
    name: str = ""
    version: str = ""

    @property
    def manifest_path(self) -> Path:
        return self.directory / FILENAME


def find_source(path: Path) -> PackSource:
    """The pack whose project directory (with pyproject.toml) is `path`.

    Raises:
        NotFoundError: When it declares no pack, or the package is not below src/ or the directory itself.
    """
    import tomllib

    pyproject = path / "pyproject.toml"
    if not pyproject.is_file():
        raise NotFoundError(f"{path}: has no pyproject.toml; expected the project directory of a pack")
    try:
        project = tomllib.loads(pyproject.read_text(encoding="utf-8")).get("project", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise NotFoundError(f"{pyproject}: is no TOML ({e})") from e
    declared = project.get("entry-points", {}).get(GROUP, {})
    if len(declared) != 1:
        raise NotFoundError(
            f'{pyproject}: declares {len(declared)} packs; expected one line under [project.entry-points."{GROUP}"], '
            'such as my_pack = "my_pack.pack"'
        )
    ((name, entry_point),) = declared.items()
    module = entry_point.partition(":")[0].strip()
    about = (project.get("name", ""), entry_point, name, project.get("version", ""))
    for root in (path / "src", path):
        directory = root.joinpath(*module.split("."))
        if directory.is_dir():
            return PackSource(path, module, directory, *about)
        if directory.with_suffix(".py").is_file() and "." in module:
            return PackSource(path, module.rpartition(".")[0], directory.parent, *about)
    raise NotFoundError(f"{pyproject}: entry point {module!r} is neither below {path / 'src'} nor below {path}")


def generate(source: PackSource) -> Manifest:
    """Import every module of <package>.ops, .kernels, .operators and those of LAYERS, and say what they bring.

    Raises:
        PackImportError: For a module that can't be imported.
        ManifestError: For two definitions of one op, a definition that no module holds by name, or an operator without
            an op.
    """
    with importable(source):
        holder = import_module(source.package, f"oprack manifest {source.root}")
        imported = {Path(p).resolve() for p in holder.__path__}
        if imported != {source.directory.resolve()}:
            raise ManifestError(
                f"{source.package} is already imported from {', '.join(map(str, imported))}, not from "
                f"{source.directory}; ask in a process of its own"
            )
        definitions = dict(sorted(_definitions(source.package).items()))
        facets = _facets(source.package)
        operators = _operators(source.package)
        kernels = _kernels(source.package)
        layers = {namespace: names for child, namespace in LAYERS.items() if (names := _layers(source.package, child))}
    stray = operators.keys() - definitions.keys()
    if stray:
        raise ManifestError(f"{source.package}.operators: {sorted(stray)} have an operator, but no definition in ops")
    ops = {
        op_type: OpEntry(define, version, kernels.pop(op_type, {}), operators.get(op_type, ""))
        for op_type, (define, version) in definitions.items()
    }
    return Manifest(ops, kernels, layers, facets)


def defined_ops(package: str) -> set[str]:
    """Op types that the modules of an installed pack define, whether its manifest has them or not."""
    return set(_definitions(package))


def brought(source: PackSource) -> dict[str, list[str]]:
    """What a pack's source tree brings, for homes.toml: kind ("ops", "roles", "layers" ...) -> names.

    Raises what makes the pack broken.
    """
    pack = _loaded(source)
    found = {"ops": list(pack.known())}
    for kind, key, _ in pack.contributions.targets:
        if kind == "role":
            found.setdefault("roles", []).append(key)
        elif kind == "format":
            found.setdefault("formats", []).append(json.loads(key)["suffix"])
        elif kind in ("command", "pass"):
            found.setdefault({"command": "commands"}.get(kind, "passes"), []).append(json.loads(key)["name"])
        elif kind == "layer" and not key.startswith(("fuzz.", "fuzz_lives.")):
            namespace, _, name = key.partition(".")
            found.setdefault(namespace, []).append(name)
    if rooms := sorted(p.stem for p in (source.directory.parent / "oprack").glob("[a-z]*") if p.name != "__pycache__"):
        found["rooms"] = rooms
    return found


@contextmanager
def importable(source: PackSource) -> Iterator[None]:
    """The source tree goes before what is installed, for the length of a with block.

    No bytecode is written: that of a source edited again within a second, to the same size, would be taken for current.
    """
    top = source.directory.parents[source.package.count(".")]
    sys.path.insert(0, str(top))
    importlib.invalidate_caches()
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = writes
        sys.path.remove(str(top))


def _modules(package: str, child: str) -> Iterator[ModuleType]:
    """<package>.<child> and every module below it, sorted; nothing when there is no such module."""
    asked_by = f"oprack manifest {package}"
    name = f"{package}.{child}"
    holder = import_module(package, asked_by, MEND)
    if not any(m.name == child for m in pkgutil.iter_modules(getattr(holder, "__path__", ()))):
        return
    module = import_module(name, asked_by, MEND)
    yield module
    for found in sorted(m.name for m in pkgutil.walk_packages(getattr(module, "__path__", ()), name + ".")):
        yield import_module(found, asked_by, MEND)


def _definitions(package: str) -> dict[str, tuple[str, int]]:
    from oprack.op import OpDef, build_op_info

    found: dict[str, tuple[str, Any]] = {}
    visited = set()
    cls: Any
    for module in _modules(package, "ops"):
        visited.add(module.__name__)
        for name, cls in (*_op_classes(module, package), *_op_facets(module, defines=True)):
            where, known = found.get(cls.op_type, ("", cls))
            if known is not cls:
                raise ManifestError(
                    f"op {cls.op_type!r} is defined twice: {where} and {module.__name__}:{name}; remove one"
                )
            # a class that several modules hold is named where it was written
            if not where or module.__name__ == cls.__module__:
                found[cls.op_type] = f"{module.__name__}:{name}", cls
    # A class that was made inside a function, and that nothing holds by a name, could not be named in a manifest.
    for cls in _subclasses(OpDef):
        if cls.__module__ in visited and cls.op_type and cls.op_type not in found:
            raise ManifestError(
                f"op {cls.op_type!r}: no module holds its definition {cls.__qualname__} of {cls.__module__} by name; "
                "bind it, for example globals()[cls.__name__] = cls"
            )

    def version(one: Any) -> int:
        history = one.versions if hasattr(one, "versions") else build_op_info(one, package).versions
        return history.version if history else 0

    return {op_type: (where, version(one)) for op_type, (where, one) in found.items()}


def _op_classes(module: ModuleType, package: str) -> Iterator[tuple[str, type[OpDef]]]:
    """The definitions that a module holds by a name, with the name, but for those of other packages."""
    from oprack.op import OpDef

    for name, value in vars(module).items():
        if isinstance(value, type) and issubclass(value, OpDef) and value.op_type:
            if value.__module__.startswith(package + "."):
                yield name, value


def _op_facets(module: ModuleType, *, defines: bool) -> Iterator[tuple[str, OpFacets]]:
    """The OpFacets that a module declares and holds by a name, with the name."""
    from oprack.op import OpFacets

    for name, value in vars(module).items():
        if isinstance(value, OpFacets) and value.defines is defines and value.__module__ == module.__name__:
            yield name, value


def _facets(package: str) -> dict[str, tuple[str, ...]]:
    """Op of another pack -> the OpFacets that modules declare for it."""
    found: dict[str, list[str]] = {}
    for module in _modules(package, "ops"):
        for name, facets in _op_facets(module, defines=False):
            found.setdefault(facets.op_type, []).append(f"{module.__name__}:{name}")
    return {op_type: tuple(sorted(targets)) for op_type, targets in sorted(found.items())}


def registered(source: PackSource) -> dict[str, type[OpDef] | OpFacets]:
    """Ops that a pack's hooks register as objects, which no manifest has. Raises what makes the pack broken."""
    from oprack.op import OpFacets

    brought = _loaded(source).contributions
    found: dict[str, type[OpDef] | OpFacets] = dict(brought.definitions)
    facets: dict[str, list[Any]] = {}
    for op_type, some in brought.facets:
        facets.setdefault(op_type, []).extend(some)
    made = (OpFacets(op_type, *some) for op_type, some in facets.items())
    return found | {one.op_type: one for one in made if one.defines}


def registered_text(source: PackSource, manifest: Manifest) -> str:
    """What to do about ops that hooks register as objects; "" when there are none, or the pack can't be loaded."""
    try:
        ops = sorted(registered(source).keys() - manifest.ops.keys())
    except OprackError:  # as before its first manifest is written
        return ""
    if not ops:
        return ""
    return (
        f"{source.entry_point} registers {', '.join(ops)} as objects, so that the pack is imported whenever a process "
        f"looks for packs; declare them below {source.package}.ops, as classes derived from OpDef or by OpFacets, and "
        "register the manifest alone"
    )


def _loaded(source: PackSource) -> Pack:
    """The pack as its hooks register it, from its source tree. Raises what makes it broken."""
    from oprack.packs.installed.discovery import PackLoader
    from oprack.packs.installed.entry_points import FoundPack

    with importable(source):
        pack = PackLoader().load(FoundPack(source.package, source.entry_point, source.distribution, ""))
    if pack.exception is not None:
        raise pack.exception
    return pack


def _subclasses(cls: type[Any]) -> Iterator[Any]:
    derived: type[Any]
    for derived in cls.__subclasses__():
        yield derived
        yield from _subclasses(derived)


def _kernels(package: str) -> dict[str, dict[str, tuple[str, ...]]]:
    from oprack.kernel import kernel_specs

    found: dict[str, dict[str, set[str]]] = {}
    for module in _modules(package, "kernels"):
        for spec in kernel_specs(module):
            found.setdefault(spec.op_type, {}).setdefault(spec.place, set()).add(module.__name__)
    return {t: {p: tuple(sorted(m)) for p, m in sorted(places.items())} for t, places in found.items()}


def _layers(package: str, child: str) -> dict[str, tuple[str, ...]]:
    """Module -> its public functions and classes, those of `generated_layers` included; `__all__` says otherwise."""
    found = {}
    for module in _modules(package, child):
        if not module.__name__.rpartition(".")[2].startswith("_"):
            own = {
                n for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__ and callable(v)
            }
            generated = getattr(vars(module).get("__getattr__"), "names", ())
            names = getattr(module, "__all__", None) or {n for n in own if not n.startswith("_")} | set(generated)
            if names:
                found[module.__name__] = tuple(sorted(names))
    return found


def _operators(package: str) -> dict[str, str]:
    """Classes derived from CreatorFacet that say which op they run: `op_type = "while"`."""
    from oprack.op import CreatorFacet

    found: dict[str, str] = {}
    for module in _modules(package, "operators"):
        for name, value in vars(module).items():
            if not (isinstance(value, type) and issubclass(value, CreatorFacet)):
                continue
            op_type = getattr(value, "op_type", "")
            if not op_type or value.__module__ != module.__name__:
                continue  # a base class, or imported from elsewhere
            require_no_rules(value, f"{module.__name__}:{name}")
            if op_type in found:
                raise ManifestError(f"op {op_type!r} has two operators: {found[op_type]} and {module.__name__}:{name}")
            found[op_type] = f"{module.__name__}:{name}"
    return found
