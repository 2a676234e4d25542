"""Finding packs, and loading each: its module is imported, and its hooks say what it brings."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oprack.errors import InvalidArgumentError, OprackError, PackError, PackImportError, PackVersionError
from oprack.packs import advice
from oprack.packs.choice import names, priorities
from oprack.packs.installed.entry_points import BUILTIN, UNREADABLE, FoundPack, describe, installed_packs
from oprack.packs.pack import STARTED, Pack, file_state
from oprack.packs.register import Register
from oprack.python.interruption import let_interruptions_pass

if TYPE_CHECKING:
    import pluggy


class PackSource:
    """Where packs come from: scans distributions, or takes entry points as they are, and imports every pack.

    Attributes:
        state: Of the cache, which this one has not, for people.
    """

    def __init__(self, entry_points: Iterable[Any] | None = None) -> None:
        self.state = "off"
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


def loaded_files(packs: Iterable[Pack]) -> list[tuple[str, int, int]]:
    """(path, mtime in ns, size) of the modules of core and of packs that are in use and were imported so far, and of
    the manifests.

    As with .pyc files, a file that has the mtime and size of then is taken for the same. Development installs change
    their code and not their version; this notices it.
    """
    packs = [pack for pack in packs if pack.status == "ok"]
    packages = {"oprack", *(pack.found.module.partition(".")[0] for pack in packs)}
    paths = {path for pack in packs for path, _, _ in pack.contributions.files}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in packages and (path := getattr(module, "__file__", None)):
            paths.add(path)
    return [(path, *file_state(path)) for path in sorted(paths)]


def changed_since_start(files: Iterable[tuple[str, int, int]]) -> str:
    """A file that was written after this process began, so that it may not be what was imported; "" for none."""
    return next((path for path, mtime, _ in files if mtime >= STARTED), "")


def _selection(
    found: Sequence[FoundPack], environ: Mapping[str, str], blocked: Collection[str]
) -> tuple[dict[FoundPack, str], list[str]]:
    """Packs to leave out with the reason, and what to say about names that fit no pack.

    Raises:
        InvalidArgumentError: When the core's own pack is to be blocked.
    """
    only = environ.get("OPRACK_PACKS")
    allowed = names(only) if only is not None else None
    by_env = names(environ.get("OPRACK_BLOCK", ""))
    named = {
        "OPRACK_PACKS": allowed or [],
        "OPRACK_BLOCK": by_env,
        "blocked": sorted(blocked),
        "OPRACK_PREFER": names(environ.get("OPRACK_PREFER", "")),
        "OPRACK_PRIORITY": list(priorities(environ.get("OPRACK_PRIORITY", ""))),
    }
    if allowed is None and not any(named.values()):
        return {}, []
    if any(name in by_env or name in blocked for name in BUILTIN.names):
        raise InvalidArgumentError(advice.UNBLOCKABLE)
    left_out = {f: why for f in found[1:] if (why := _why_left_out(f, allowed, by_env, blocked))}
    known = {name for f in found for name in f.names}
    unknown = ((where, n) for where, given in named.items() for n in given if n not in known)
    return left_out, [advice.unknown_pack(where, n, found) for where, n in unknown]


def _why_left_out(
    pack: FoundPack, allowed: Collection[str] | None, by_env: Collection[str], blocked: Collection[str]
) -> str:
    if allowed is not None and not any(name in allowed for name in pack.names):
        return "not among OPRACK_PACKS"
    if any(name in by_env for name in pack.names):
        return "blocked by OPRACK_BLOCK"
    if any(name in blocked for name in pack.names):
        return "blocked by the caller"
    return ""


def read_packs(
    source: PackSource, environ: Mapping[str, str], blocked: Collection[str], allow: str
) -> tuple[list[Pack], list[str]]:
    """All packs, with those that are left out or broken, and what to warn of; see PackManager for the arguments."""
    found = source.found()
    left_out, messages = _selection(found, environ, blocked)
    if allow:
        from oprack.packs.installed import allow_list

        refused, differing = allow_list.left_out([f for f in found[1:] if f not in left_out], allow)
        left_out, messages = left_out | refused, messages + differing
    packs = []
    for f in found:
        if reason := left_out.get(f):
            packs.append(Pack(f, "blocked", reason=reason))
        else:
            packs.append(source.load(f))
    source.save()
    return packs, messages
