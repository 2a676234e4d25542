"""A pack as it was found: read from its manifest, or from what its hooks register; and what is said of it."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from oprack.errors import OprackError, PackError, PackImportError, PackVersionError
from oprack.interruption import let_interruptions_pass
from oprack.packs import advice
from oprack.packs import manifest as manifests
from oprack.packs.entry_points import BUILTIN, UNREADABLE, FoundPack, describe, installed_packs
from oprack.packs.register import STARTED, Contributions, Register, file_state
from oprack.packs.resolve import package_directory
from oprack.records import dataclass

if TYPE_CHECKING:
    import pluggy

    from oprack.packs.cache import CachedSource


class PackWarning(UserWarning):
    """The installed packs do not match what was requested, for example by an unknown name in OPRACK_PACKS."""


class BrokenPackWarning(PackWarning):
    """A pack is broken and left out; the others work. `oprack doctor` prints the full reason."""


def warn(text: str, category: type[UserWarning]) -> None:
    """Issue a warning at the innermost line outside oprack, so that it points at the user's code."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "oprack":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


class WarnOnce:
    """Warns of each cause once; may be called from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._warned: set[tuple[str, ...]] = set()

    def __call__(self, text: str, *key: str, category: type[PackWarning] = BrokenPackWarning) -> None:
        """Warn, unless it was done for this key."""
        with self._lock:
            new = key not in self._warned
            self._warned.add(key)
        if new:
            warn(text, category)


@dataclass(frozen=True)
class PackInfo:
    """One installed pack.

    Attributes:
        name: Name of its entry point.
        distribution: Name of the distribution that contains it.
        version: Version of the distribution.
        status: "ok", "blocked" or "broken".
        error: Class and text of the exception that broke it; "" when it works.
        op_types: Ops that it defines, as far as its manifest can be read.
        hooks: Hooks that it implements.
        entry_point: The module that its entry point names.
        conflicts: Op types that another pack defines, too.
        layers: Names that it adds through oprack_layers, such as "layers.fc".
        layer_conflicts: Those of `layers` that another pack adds, too.
        kernels: Whether it brings kernels.
        exception: The exception that broke it; None when it works.
    """

    name: str
    distribution: str
    version: str
    status: str = "ok"
    error: str = ""
    op_types: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    entry_point: str = ""
    conflicts: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    layer_conflicts: tuple[str, ...] = ()
    kernels: bool = False
    exception: BaseException | None = field(default=None, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """For JSON.

        Returns:
            Names and values of all fields.
        """
        return {
            "name": self.name,
            "distribution": self.distribution,
            "version": self.version,
            "status": self.status,
            "error": self.error,
            "ops": list(self.op_types),
            "hooks": list(self.hooks),
            "entry_point": self.entry_point,
            "conflicts": list(self.conflicts),
            "layers": list(self.layers),
            "layer_conflicts": list(self.layer_conflicts),
            "kernels": self.kernels,
        }


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


def loaded_files(packs: Iterable[Pack]) -> list[tuple[str, int, int]]:
    """(path, mtime in ns, size) of the modules of core and of packs that were imported so far, and of the manifests.

    As with .pyc files, a file that has the mtime and size of then is taken for the same. Development installs change
    their code and not their version; this notices it.
    """
    packages = {"oprack", *(pack.found.module.partition(".")[0] for pack in packs)}
    paths = {path for pack in packs for path, _, _ in pack.contributions.files}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in packages and (path := getattr(module, "__file__", None)):
            paths.add(path)
    return [(path, *file_state(path)) for path in sorted(paths)]


def changed_since_start(files: Iterable[tuple[str, int, int]]) -> str:
    """A file that was written after this process began, so that it may not be what was imported; "" for none."""
    return next((path for path, mtime, _ in files if mtime >= STARTED), "")


def read_packs(
    source: CachedSource | FreshSource, environ: Mapping[str, str], blocked: Collection[str], allow: str
) -> tuple[list[Pack], list[str]]:
    """All packs, with those that are left out or broken, and what to warn of; see PackManager for the arguments."""
    found = source.found()
    left_out, messages = advice.selection(found, environ, blocked)
    if allow:
        from oprack.packs import allow_list

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
