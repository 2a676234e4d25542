"""ops.toml: a pack's ops and kernels by string, so that nothing is imported before it is used.

```toml
schema_version = 1
[ops.scale]
define = "oprack_math.ops.arithmetic:Scale"       # the definition class, or OpFacets with an OpMaker
version = 0                                     # number of OpVersion checkpoints
kernels.cpu = ["oprack_math.kernels.arithmetic"]  # modules with @kernel functions, by place
operator = "my_pack.operators.while_op:WhileOp" # only for an op that runs itself
[kernels.relu]                                  # kernels for an op of another pack
cpu = ["my_pack.kernels.fast_relu"]
[facets]                                        # OpFacets for ops of other packs; schema_version 3
relu = ["my_pack.ops.relu:relu"]
[layers.layers]                                 # names below oprack.layers, by module; schema_version 2
"oprack_math.layers.arithmetic" = ["scale"]
```
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, TypeVar

from oprack.errors import ManifestError, PackVersionError
from oprack.python.interruption import let_interruptions_pass
from oprack.python.records import dataclass

SCHEMA_VERSION = 3
FILENAME = "ops.toml"
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
_OBJECT = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
_FIX = "regenerate it with `oprack manifest PATH`"

Modules = dict[str, tuple[str, ...]]
Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class OpEntry:
    """One op of a manifest.

    Attributes:
        kernels: Place -> modules.
    """

    define: str
    version: int = 0
    kernels: Modules = field(default_factory=dict)
    operator: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Contents of an ops.toml.

    Attributes:
        ops: What the pack defines.
        kernels: Op of another pack -> place -> modules.
        layers: Namespace -> module -> names that the module brings below `oprack.<namespace>`.
        facets: Op of another pack -> "module:name" of OpFacets.
    """

    ops: Mapping[str, OpEntry] = field(default_factory=dict)
    kernels: Mapping[str, Modules] = field(default_factory=dict)
    layers: Mapping[str, Modules] = field(default_factory=dict)
    facets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def schema_version(self) -> int:
        """The oldest schema that can say this, so that older cores read what they can."""
        return 3 if self.facets else 2 if self.layers else 1

    def modules(self, op_type: str, place: str) -> tuple[str, ...]:
        """Kernel modules of an op at a place."""
        own = self.ops[op_type].kernels if op_type in self.ops else {}
        return own.get(place, ()) + self.kernels.get(op_type, {}).get(place, ())

    def places(self, op_type: str) -> set[str]:
        """Places that an op has kernels for."""
        own = self.ops[op_type].kernels if op_type in self.ops else {}
        return {*own, *self.kernels.get(op_type, {})}

    def to_dict(self) -> dict[str, Any]:
        """The table that `parse` takes."""
        ops = {}
        for op_type, entry in self.ops.items():
            ops[op_type] = table = {"define": entry.define, "version": entry.version}
            if entry.kernels:
                table["kernels"] = {p: list(m) for p, m in entry.kernels.items()}
            if entry.operator:
                table["operator"] = entry.operator
        kernels = {t: {p: list(m) for p, m in places.items()} for t, places in self.kernels.items()}
        data = {"schema_version": self.schema_version, "ops": ops, "kernels": kernels}
        if self.layers:
            data["layers"] = {n: {m: list(names) for m, names in modules.items()} for n, modules in self.layers.items()}
        if self.facets:
            data["facets"] = {op_type: list(targets) for op_type, targets in self.facets.items()}
        return data


def read(path: Path) -> Manifest:
    """Manifest of a file.

    Raises:
        ManifestError: The message names file, key, value and expectation.
        PackVersionError: For a newer schema_version.
    """
    import tomllib

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        let_interruptions_pass()
        raise ManifestError(f"{path}: can't be read ({type(e).__name__}: {e}); expected a TOML file; {_FIX}") from e
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        raise ManifestError(f"{path}: is no TOML ({e}); {_FIX}") from e
    return parse(data, str(path))


def parse(data: Any, source: str) -> Manifest:
    """Manifest of a parsed table; `source` names the file in errors. Raises as `read`."""
    if not isinstance(data, dict):
        raise _error(source, "", data, "a table")
    version = data.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _error(source, "schema_version", version, f"an int from 1 to {SCHEMA_VERSION}")
    if version > SCHEMA_VERSION:
        raise PackVersionError(
            f"{source}: schema_version = {version}, but this oprack reads up to {SCHEMA_VERSION}: the pack was written "
            "for a newer core; upgrade oprack (pip install --upgrade oprack) or install an older version of the pack"
        )
    for key in data.keys() - {"schema_version", "ops", "kernels", "layers", "facets"}:
        raise _error(source, key, data[key], "one of the keys schema_version, ops, kernels, layers, facets")
    for key in ("ops", "kernels", "facets"):
        _check_op_types(source, key, data.get(key, {}))
    found = _on_demand(source, data)
    return Manifest(dict(found.ops), dict(found.kernels), dict(found.layers), dict(found.facets))


class _OnDemand(Mapping[str, Entry]):
    """Entries of a table, each checked and made when it is asked for."""

    def __init__(self, table: dict[str, Any], make: Callable[[str, Any], Entry]) -> None:
        self._table, self._make = table, make
        self._made: dict[str, Entry] = {}

    def __getitem__(self, key: str) -> Entry:
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = self._make(key, self._table[key])
        return found

    def __contains__(self, key: object) -> bool:
        return key in self._table

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)


def parse_later(data: Any, source: str) -> Manifest:
    """Manifest of a table that was parsed before, whose entries are checked one by one when they are asked for.

    A process asks for a few of the hundreds that an environment has. Raises as `parse`, for the table as a whole; what
    is wrong with an entry is raised where it is asked for.
    """
    if not isinstance(data, dict) or data.get("schema_version") not in range(1, SCHEMA_VERSION + 1):
        return parse(data, source)  # which says what is wrong with it
    return _on_demand(source, data)


def _on_demand(source: str, data: dict[str, Any]) -> Manifest:
    """Manifest whose entries are made when they are asked for."""
    ops, kernels, layers, facets = (data.get(key, {}) for key in ("ops", "kernels", "layers", "facets"))
    for key, table in (("ops", ops), ("kernels", kernels), ("facets", facets)):
        if not isinstance(table, dict):
            raise _error(source, key, table, "a table with one entry per op type")
    if not isinstance(layers, dict):
        raise _error(source, "layers", layers, "a table namespace -> module -> list of names")
    return Manifest(
        _OnDemand(ops, lambda op_type, table: _op(source, op_type, table)),
        _OnDemand(kernels, lambda op_type, table: _places(source, f"kernels.{op_type}", table)),
        _OnDemand(layers, lambda namespace, table: _layers(source, f"layers.{namespace}", table)),
        _OnDemand(facets, lambda op_type, targets: _objects(source, f"facets.{op_type}", targets)),
    )


def _op(source: str, op_type: str, table: Any) -> OpEntry:
    key = f"ops.{op_type}"
    if not isinstance(table, dict):
        raise _error(source, key, table, "a table")
    for name in table.keys() - {"define", "version", "kernels", "operator"}:
        raise _error(source, f"{key}.{name}", table[name], "one of the keys define, version, kernels, operator")
    define, operator = table.get("define"), table.get("operator", "")
    if not isinstance(define, str) or not _OBJECT.fullmatch(define):
        raise _error(source, f"{key}.define", define, "a string such as 'my_pack.ops.scale:Scale'")
    if not isinstance(operator, str) or (operator and not _OBJECT.fullmatch(operator)):
        raise _error(source, f"{key}.operator", operator, "a string such as 'my_pack.operators.loop:LoopOp'")
    version = table.get("version", 0)
    if not isinstance(version, int) or isinstance(version, bool) or version < 0:
        raise _error(source, f"{key}.version", version, "the number of checkpoints of the op's OpVersion, 0 or more")
    return OpEntry(define, version, _places(source, f"{key}.kernels", table.get("kernels", {})), operator)


def _check_op_types(source: str, key: str, table: Any) -> None:
    for op_type in table if isinstance(table, dict) else ():
        if not _NAME.fullmatch(op_type):
            raise _error(source, f"{key}.{op_type!r}", table[op_type], "an op type of letters, digits and '_' as key")


def _places(source: str, key: str, value: Any) -> Modules:
    if not isinstance(value, dict):
        raise _error(source, key, value, "a table place -> list of modules")
    for place, modules in value.items():
        if not isinstance(modules, list) or not all(isinstance(m, str) and _MODULE.fullmatch(m) for m in modules):
            raise _error(source, f"{key}.{place}", modules, "a list of modules such as ['my_pack.kernels.scale']")
    return {place: tuple(modules) for place, modules in value.items()}


def _layers(source: str, key: str, value: Any) -> Modules:
    if not isinstance(value, dict):
        raise _error(source, key, value, "a table module -> list of names")
    for module, names in value.items():
        if not _MODULE.fullmatch(module):
            raise _error(source, f"{key}.{module!r}", names, "a module such as 'my_pack.layers.conv' as key")
        if not isinstance(names, list) or not all(isinstance(n, str) and _NAME.fullmatch(n) for n in names):
            raise _error(source, f"{key}.{module!r}", names, "a list of names such as ['conv2d']")
    return {module: tuple(names) for module, names in value.items()}


def _objects(source: str, key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(t, str) and _OBJECT.fullmatch(t) for t in value):
        raise _error(source, key, value, "a list of strings such as ['my_pack.ops.relu:relu']")
    return tuple(value)


def _error(source: str, key: str, value: Any, expected: str) -> ManifestError:
    where = f"{source}: {key} = {value!r}" if key else f"{source}: {value!r}"
    return ManifestError(f"{where}; expected {expected}; {_FIX}")
