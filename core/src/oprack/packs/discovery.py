"""From entry points of the group `oprack.packs` to packs, each loaded and registered under a guard of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import TYPE_CHECKING, Any

from oprack.errors import OprackError, PackError, PackImportError, PackVersionError
from oprack.interruption import let_interruptions_pass
from oprack.packs import manifest as manifests
from oprack.packs.contributions import Contributions
from oprack.packs.entry_points import BUILTIN, UNREADABLE, FoundPack, describe, installed_packs
from oprack.packs.info import PackInfo
from oprack.packs.register import Register
from oprack.packs.resolve import package_directory
from oprack.records import dataclass

if TYPE_CHECKING:
    import pluggy


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
            self.contributions.has_kernels(),
            e,
        )


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


class PackLoader:
    """Imports packs and calls their hooks, one pack at a time, so that no pack sees the `register` of another."""

    def __init__(self) -> None:
        self._plugins: pluggy.PluginManager | None = None

    def load(self, found: FoundPack) -> Pack:
        """Import a pack's module and call its hooks; whatever fails is recorded in the result and never raised."""
        pack = Pack(found)
        register = Register(found.name, found.distribution)
        try:
            if found.unmet:
                raise PackVersionError(
                    f"{found.distribution} {found.version} {found.unmet}; install versions that fit together, as "
                    f"`pip install --upgrade oprack {found.distribution}` does"
                )
            pack.hooks = self._call_hooks(_import(found), found, register)
            pack.contributions = register.contributions
        except BaseException as e:  # SystemExit, CancelledError, pytest's Skipped: a pack ends no command
            let_interruptions_pass()
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

    if found.value.startswith(UNREADABLE):
        raise PackError(
            f"{found.distribution} {found.version}: its entry points can't be read ({found.value[1:]}); reinstall it"
        )
    module_name, _, attribute = found.target.partition(":")
    try:
        plugin = importlib.import_module(module_name)
        for part in filter(None, attribute.split(".")):
            plugin = getattr(plugin, part)
        return plugin
    except BaseException as e:
        let_interruptions_pass()
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
