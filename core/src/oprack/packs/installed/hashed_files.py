"""The files of a wheel by their hashes in RECORD, and the import of nothing else from a package that is held to them.

Python imports a module from bytecode, from another folder of sys.path or from a file that no RECORD names, whatever was
hashed. A package that is held to its RECORD comes from the hashed files alone: each is compared once more as it is
imported, however late, and is compiled from its source.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from oprack.errors import InvalidArgumentError
from oprack.python.interruption import let_interruptions_pass

if TYPE_CHECKING:
    from oprack.packs.installed.entry_points import FoundPack

_OF_DIST_INFO = ("METADATA", "entry_points.txt")
"""Files of a .dist-info directory that come with the wheel; the installer writes the others, in ways of its own."""
_ALGORITHMS = ("sha256", "sha384", "sha512")


class HashedFiles:
    """The files of an installed wheel.

    Args:
        found: A pack of the distribution.

    Attributes:
        name: Distribution and version.
        root: The folder to which paths are relative.
        hashes: Path -> its hash as RECORD has it.

    Raises:
        InvalidArgumentError: There is no RECORD, or a file of the wheel has no hash in it.
    """

    def __init__(self, found: FoundPack) -> None:
        self.name = f"{found.distribution} {found.version}"
        info = Path(found.metadata).parent
        self.root, self.hashes = info.parent, dict[str, str]()
        try:
            with open(info / "RECORD", newline="", encoding="utf-8") as record:
                rows = [(row[0], row[1]) for row in csv.reader(record) if len(row) == 3]
        except (OSError, UnicodeDecodeError, csv.Error) as e:
            let_interruptions_pass()
            raise InvalidArgumentError(
                f"{self.name}: its files can't be hashed, since {info / 'RECORD'} can't be read ({type(e).__name__}); "
                "install it from a wheel"
            ) from e
        for path, expected in rows:
            if not _is_of_wheel(path, info.name):
                continue
            if not expected:
                raise InvalidArgumentError(
                    f"{self.name}: its RECORD has no hash for {path}, so that it may be any file; ask its authors for "
                    "a wheel whose RECORD is complete"
                )
            self.hashes[path] = expected
        module = found.module.replace(".", "/")
        if not any(path in self.hashes for path in (f"{module}.py", f"{module}/__init__.py")):
            raise InvalidArgumentError(
                f"{self.name}: its RECORD does not list the module {found.module} of its entry point, so no hash says "
                "what it holds; install it from a wheel (`pip install -e` keeps the files elsewhere)"
            )

    def compare(self, path: str, data: bytes | None = None) -> None:
        """Hold a file, or what was read of it, against RECORD.

        Raises:
            InvalidArgumentError: It is another file, or can't be read.
        """
        file = self.root / path
        algorithm, _, digest = self.hashes[path].partition("=")
        if algorithm not in _ALGORITHMS:
            raise InvalidArgumentError(
                f"{self.name}: RECORD has a hash of {path} by {algorithm!r}; expected one by {', '.join(_ALGORITHMS)}"
            )
        try:
            found = hashlib.new(algorithm, file.read_bytes() if data is None else data).digest()
        except OSError as e:
            raise InvalidArgumentError(
                f"{self.name}: {file} can't be hashed ({type(e).__name__}: {e}); reinstall it"
            ) from e
        if base64.urlsafe_b64encode(found).rstrip(b"=").decode() != digest:
            raise InvalidArgumentError(f"{self.name}: {file} was changed after it was installed; reinstall it")

    def digest(self) -> str:
        """SHA-256 of all paths and hashes, in hexadecimal; every file is compared. Raises as `compare`."""
        for path in self.hashes:
            self.compare(path)
        text = "\n".join(sorted(f"{path} {expected}" for path, expected in self.hashes.items()))
        return hashlib.sha256(text.encode()).hexdigest()

    def hold(self) -> None:
        """From now on, import what is in this wheel's packages from these files alone.

        Raises:
            InvalidArgumentError: A module of them was imported from elsewhere before.
        """
        parts = [path.removesuffix(".py").split("/") for path in self.hashes if path.endswith(".py")]
        for top in {names[0] for names in parts if names[1:] in ([], ["__init__"])}:
            for name, module in list(sys.modules.items()):
                origin = getattr(module, "__file__", None) if name.partition(".")[0] == top else None
                if origin and not any(Path(origin) == self.root / path for path in self._files_of(name)):
                    raise InvalidArgumentError(
                        f"{self.name}: {name} was imported from {origin} before, which is none of its hashed files"
                    )
            _FINDER.holding[top] = self
        if _FINDER not in sys.meta_path:
            sys.meta_path.insert(0, _FINDER)

    def _files_of(self, module: str) -> list[str]:
        """The listed files of which one is the module, in the order in which Python prefers them."""
        path = module.replace(".", "/")
        candidates = [f"{path}{ending}" for ending in ("/__init__.py", *EXTENSION_SUFFIXES, ".py")]
        return [candidate for candidate in candidates if candidate in self.hashes]

    def spec(self, module: str) -> ModuleSpec | None:
        """How a module is imported; None: it is in none of the files."""
        listed, folder = self._files_of(module), module.replace(".", "/")
        if not listed:
            if not any(path.startswith(f"{folder}/") for path in self.hashes):
                return None
            spec = ModuleSpec(module, None, is_package=True)
            spec.submodule_search_locations = [str(self.root / folder)]
            return spec
        file = str(self.root / listed[0])
        loader = (_SourceLoader if file.endswith(".py") else _ExtensionLoader)(module, file)
        loader.held = (self, listed[0])
        return spec_from_file_location(module, file, loader=loader)


def _is_of_wheel(path: str, info: str) -> bool:
    """Whether a row of RECORD is about a file of the wheel: scripts and bytecode differ between machines."""
    if path.startswith(("..", "/")) or "__pycache__" in path.split("/"):
        return False
    top, _, rest = path.partition("/")
    return top != info or rest in _OF_DIST_INFO


class _SourceLoader(SourceFileLoader):
    held: tuple[HashedFiles, str]

    def path_stats(self, path: str) -> Mapping[str, float]:
        raise OSError("bytecode is not looked at")

    def get_data(self, path: str) -> bytes:
        data = super().get_data(path)
        if path == self.path:
            self.held[0].compare(self.held[1], data)
        return data


class _ExtensionLoader(ExtensionFileLoader):
    held: tuple[HashedFiles, str]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        self.held[0].compare(self.held[1])
        return super().create_module(spec)


class _Finder(MetaPathFinder):
    """Stands before all others for the packages that are held to their files.

    Attributes:
        holding: Name of a top package -> its files.
    """

    def __init__(self) -> None:
        self.holding: dict[str, HashedFiles] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        files = self.holding.get(fullname.partition(".")[0])
        if files is None:
            return None
        spec = files.spec(fullname)
        if spec is None:
            raise ModuleNotFoundError(
                f"No module named {fullname!r} among the files of {files.name}, to whose hashes an allow-list holds it",
                name=fullname,
            )
        return spec


_FINDER = _Finder()
