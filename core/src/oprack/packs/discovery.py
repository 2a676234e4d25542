"""From entry points of the group `oprack.packs` to packs, each loaded and registered under a guard of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oprack.errors import OprackError, PackError, PackImportError
from oprack.packs import manifest as manifests
from oprack.packs.contributions import Contributions
from oprack.packs.info import PackInfo
from oprack.packs.register import Register
from oprack.packs.resolve import package_directory

if TYPE_CHECKING:
    import pluggy

GROUP = "oprack.packs"
CORE = "core"
_UNREADABLE = "!"
# a line that is a group, or was meant to be one
_GROUP_LINE = re.compile(rf"(?m)^[^=#;\n]*(?<![\w.]){re.escape(GROUP)}(?![\w.])[^=\n]*$")


@dataclass(frozen=True, slots=True)
class FoundPack:
    """An entry point as a distribution declares it.

    Attributes:
        metadata: Path of its entry_points.txt, "" when unknown.
    """

    name: str
    value: str
    distribution: str
    version: str
    metadata: str = ""

    @property
    def names(self) -> tuple[str, str]:
        """Both names by which OPRACK_PACKS, OPRACK_BLOCK and block() know it."""
        return self.name, self.distribution

    @property
    def target(self) -> str:
        """What the entry point names, "module" or "module:object", without extras."""
        return self.value.partition("[")[0].replace(" ", "")

    @property
    def module(self) -> str:
        """The module that the entry point names."""
        return self.target.partition(":")[0]


@dataclass
class Pack:
    """A pack of this environment, and what came of loading it.

    Attributes:
        reason: Why it is blocked.
    """

    found: FoundPack
    status: str = "ok"
    exception: BaseException | None = None
    reason: str = ""
    hooks: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    layer_conflicts: tuple[str, ...] = ()
    contributions: Contributions = field(default_factory=Contributions)
    _known: tuple[str, ...] | None = None

    @property
    def owner(self) -> str:
        return self.found.distribution

    def known(self) -> tuple[str, ...]:
        """Op types that it defines, sorted; of a blocked or broken pack, as far as its ops.toml can be read."""
        if self.status == "ok":
            return tuple(sorted(set(self.contributions.defined())))
        if self._known is None:
            self._known = known_op_types(self.found)
        return self._known

    def remember_known(self) -> None:
        """Keep the op types that it defines, before it is blocked."""
        self._known = self.known()

    def info(self) -> PackInfo:
        """The public record of it."""
        e = self.exception
        found = self.found
        return PackInfo(
            found.name,
            found.distribution,
            found.version,
            self.status,
            f"{type(e).__name__}: {e}" if e is not None else self.reason,
            self.known(),
            self.hooks,
            found.value,
            self.conflicts,
            tuple(sorted(key for kind, key, _ in self.contributions.targets if kind == "layer")),
            self.layer_conflicts,
            e,
        )


def installed_packs() -> list[FoundPack]:
    """Every entry point of installed distributions, sorted by distribution and name.

    A distribution whose entry points can't be read is listed with none, so that loading it says why.
    """
    import importlib_metadata

    found: dict[str, list[FoundPack]] = {}
    for dist in importlib_metadata.distributions():
        text = ""
        try:
            if GROUP not in (text := dist.read_text("entry_points.txt") or ""):
                continue
        except (OSError, UnicodeDecodeError):
            if b"oprack" not in _raw_entry_points(dist):
                continue
        name, version, metadata = _distribution(dist)
        if name in found:
            continue  # hidden by one of the same name, earlier on the path
        try:
            entry_points = [e for e in dist.entry_points if e.group == GROUP]
        except Exception as e:
            found[name] = [FoundPack(name, f"{_UNREADABLE}{type(e).__name__}: {e}", name, version, metadata)]
        else:
            found[name] = list(describe(entry_points))
            if not entry_points and _GROUP_LINE.search(text):
                why = f"{_UNREADABLE}its entry_points.txt has the group {GROUP}, but no entry point can be read in it"
                found[name] = [FoundPack(name, why, name, version, metadata)]
    return sorted((f for packs in found.values() for f in packs), key=lambda f: (f.distribution, f.name))


def _raw_entry_points(dist: Any) -> bytes:
    try:
        return Path(_distribution(dist)[2]).read_bytes()
    except OSError:
        return b""


class FreshSource:
    """Discovery without a cache: scans distributions, or takes entry points as they are, and imports every pack."""

    state = "off"

    def __init__(self, entry_points: Iterable[Any] | None = None) -> None:
        self._entry_points = entry_points
        self._loader = PackLoader()

    def found(self) -> list[FoundPack]:
        """The core's own pack, then those of entry points."""
        others = installed_packs() if self._entry_points is None else describe(self._entry_points)
        return [BUILTIN, *others]

    def load(self, found: FoundPack) -> Pack:
        """One pack, imported."""
        return self._loader.load(found)

    def save(self) -> None:
        """Nothing: there is no cache."""


def describe(entry_points: Iterable[Any]) -> Iterator[FoundPack]:
    """FoundPack of each importlib.metadata EntryPoint; the one of the core itself is left out."""
    for e in entry_points:
        if (e.name, e.value) == (BUILTIN.name, BUILTIN.value):
            continue
        name, version, metadata = _distribution(e.dist)
        yield FoundPack(e.name, e.value, name, version, metadata)


def _distribution(dist: Any) -> tuple[str, str, str]:
    if dist is None:
        return "unknown distribution", "", ""
    directory = getattr(dist, "_path", None)  # METADATA is slow to parse; the directory says name-version.dist-info
    if isinstance(directory, Path):
        name, dash, version = directory.name.removesuffix(".dist-info").partition("-")
        metadata = str(directory / "entry_points.txt")
        if dash and directory.name.endswith(".dist-info"):
            return name.replace("_", "-").lower(), version, metadata
        return dist.name, dist.version, metadata
    return dist.name, dist.version, ""


class PackLoader:
    """Imports packs and calls their hooks, one pack at a time, so that no pack sees the `register` of another."""

    def __init__(self) -> None:
        self._plugins: pluggy.PluginManager | None = None

    def load(self, found: FoundPack) -> Pack:
        """Import a pack's module and call its hooks; whatever fails is recorded in the result and never raised."""
        pack = Pack(found)
        register = Register(found.name, found.distribution)
        try:
            pack.hooks = self._call_hooks(_import(found), found, register)
            pack.contributions = register.contributions
        except KeyboardInterrupt:
            raise
        except BaseException as e:  # SystemExit, CancelledError, pytest's Skipped: a pack ends no command
            pack.status, pack.exception = "broken", _as_pack_error(e, found)
        return pack

    def _call_hooks(self, plugin: Any, found: FoundPack, register: Register) -> tuple[str, ...]:
        import pluggy

        from oprack.packs import hookspecs

        if self._plugins is None:
            self._plugins = pluggy.PluginManager(hookspecs.PROJECT)
            self._plugins.add_hookspecs(hookspecs)
        plugins = self._plugins
        try:
            plugins.register(plugin, found.name)
        except pluggy.PluginValidationError as e:
            self._plugins = None  # which has the plugin half
            raise PackError(
                f"pack {found.name} ({found.distribution}): a hook has other parameters than the core calls it with: "
                f"{' '.join(str(e).split())}; expected `def oprack_...(register)`"
            ) from e
        try:
            plugins.check_pending()
            implemented = {caller.name for caller in plugins.get_hookcallers(plugin) or ()}
            if not implemented:
                raise PackError(
                    f"pack {found.name} ({found.distribution}): {found.value} implements no hook; expected functions "
                    f"decorated with @oprack.hookimpl and named {', '.join(hookspecs.HOOKS)}"
                )
            hooks = tuple(name for name in hookspecs.HOOKS if name in implemented)
            for name in hooks:
                getattr(plugins.hook, name)(register=register)
            return hooks
        finally:
            plugins.unregister(plugin)


def _import(found: FoundPack) -> Any:
    import importlib

    if found.value.startswith(_UNREADABLE):
        raise PackError(
            f"{found.distribution} {found.version}: its entry points can't be read ({found.value[1:]}); reinstall it"
        )
    module_name, _, attribute = found.target.partition(":")
    try:
        plugin = importlib.import_module(module_name)
        for part in filter(None, attribute.split(".")):
            plugin = getattr(plugin, part)
        return plugin
    except KeyboardInterrupt:
        raise
    except BaseException as e:
        raise PackImportError(
            f"pack {found.name} ({found.distribution} {found.version}): its entry point {found.value!r} can't be "
            f"imported: {type(e).__name__}: {e}; repair or reinstall {found.distribution}, or block it with "
            f"OPRACK_BLOCK={found.name}"
        ) from e


def _as_pack_error(e: BaseException, found: FoundPack) -> BaseException:
    """An error of ours as it is; any other one keeps its class in the text and its traceback as the cause."""
    if isinstance(e, OprackError):
        return e
    error = PackError(f"pack {found.name} ({found.distribution}): a hook failed: {type(e).__name__}: {e}")
    error.__cause__ = e
    return error


def known_op_types(found: FoundPack) -> tuple[str, ...]:
    """Op types of a pack that may not or can't be imported, if its ops.toml can be read."""
    module = found.module
    for package in (module.rpartition(".")[0], module):
        directory = package_directory(package) if package else None
        if directory is not None and (directory / manifests.FILENAME).is_file():
            try:
                return tuple(sorted(manifests.read(directory / manifests.FILENAME).ops))
            except PackError:
                return ()
    return ()


def _core_version() -> str:
    from oprack import __version__

    return __version__


BUILTIN = FoundPack(CORE, "oprack.packs.builtin", "oprack", _core_version())
HERE = FoundPack("here", "", "this process", "")
"""What is registered in this process, by no distribution."""
