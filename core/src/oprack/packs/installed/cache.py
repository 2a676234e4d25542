"""The cache of discovery: what another process has read about the installed packs, in the user's cache directory.

It holds entry points, manifests and whatever packs named by string, so that a process neither scans distributions nor
imports the modules of such packs. It is valid as long as sys.path, the distributions on it, and each pack's module and
ops.toml are the same as then; a pack that changed is loaded anew, the others are not. Broken packs are never kept.
OPRACK_CACHE=0 or none switches it off, OPRACK_CACHE_DIR moves it. A file that is damaged or another user's is ignored:
its first line is the SHA-256 of the rest, so that entries need no check before they are asked for.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from oprack.errors import ManifestError, PackError
from oprack.packs.installed import manifest as manifests
from oprack.packs.installed.discovery import PackSource
from oprack.packs.installed.entry_points import BUILTIN, FoundPack
from oprack.packs.pack import Contributions, Pack, file_state, open_own
from oprack.python.interruption import let_interruptions_pass

FORMAT = 4
_MAX_BYTES = 64 << 20
_KEEP = 16
_METADATA = (".dist-info", ".egg-info", ".egg-link")


def cache_directory(environ: Mapping[str, str]) -> Path | None:
    """Where cache files go; None when the cache is switched off or there is no home."""
    if environ.get("OPRACK_CACHE", "1").strip().lower() in ("0", "off", "no", "false", "none"):
        return None
    if chosen := environ.get("OPRACK_CACHE_DIR"):
        return Path(chosen)
    base = environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base, "oprack") if os.path.isabs(base) else None


class CachedSource(PackSource):
    """Packs, from the cache as far as it is valid.

    Attributes:
        state: "hit", "partial", "miss" or "ignored: why", for people.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._path = [os.path.abspath(p) for p in sys.path]
        self._key = {"format": FORMAT, "python": platform.python_version(), "oprack": BUILTIN.version}
        # One file for each environment: its path entries, its Python and the core's version.
        name = json.dumps([self._key, sys.executable, self._path])
        self.file = directory / f"packs-{zlib.crc32(name.encode()):08x}.json"
        self.state = "miss"
        self._records: dict[FoundPack, dict[str, Any]] = {}
        # Records to write: those that were valid, and those of packs that were loaded anew.
        self._kept: dict[FoundPack, dict[str, Any]] = {}
        self._found: list[FoundPack] | None = None
        self._dirs: list[list[Any]] = []
        self._changed = False
        self._read()

    def _read(self) -> None:
        """Take over what the file holds; a file that can't be read as a whole counts as none."""
        try:
            data = self._content()
            if data["key"] != self._key or [d[0] for d in data["dirs"]] != self._path:
                return
            found = [_found_pack(row) for row in data["found"]]
            if found[0] != BUILTIN:
                raise ValueError("the core's own pack is not the first")
            self._records = {f: r for f, r in zip(found, data["packs"], strict=True) if isinstance(r, dict)}
            if all(_same_directory(*row) for row in data["dirs"]) and _same_files(data["files"]):
                self._found, self._dirs, self.state = found, data["dirs"], "hit"
        except FileNotFoundError:
            return
        except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as e:
            let_interruptions_pass()
            self._records, self._found = {}, None
            self.state = f"ignored: {type(e).__name__}: {e}"

    def _content(self) -> Any:
        """The file's JSON. It names modules to import, so a file that somebody else could write is not read."""
        with open(open_own(self.file), "rb") as file:
            content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise ValueError("too large")
        digest, _, text = content.partition(b"\n")
        if hashlib.sha256(text).hexdigest().encode() != digest:
            raise ValueError("its bytes are not those that were written")
        return json.loads(text)

    def found(self) -> list[FoundPack]:
        """The core's own pack and the entry points, from the cache or by a scan of the distributions."""
        if self._found is None:
            self._changed = True
            self._dirs = [[p, *_directory_state(p)] for p in self._path]  # before the scan: what comes later is noticed
            self._found = super().found()
        return self._found

    def load(self, found: FoundPack) -> Pack:
        """One pack, from its record if that is valid, else by importing it."""
        record = self._records.get(found)
        if record is not None:
            with suppress(TypeError, ValueError, KeyError, AttributeError, PackError):
                pack = _from_record(found, record)
                if pack is not None:
                    self._kept[found] = record
                    return pack
        pack = super().load(found)
        if pack.status == "ok" and pack.contributions.by_string:
            self._kept[found] = _to_record(pack)
            self._changed = True
            if self.state == "hit":
                self.state = "partial"
        return pack

    def save(self) -> None:
        """Write the cache, if it would differ; a directory that can't be written is no error."""
        if not self._changed:
            return
        found = self._found or []
        files = [[f.metadata, *file_state(f.metadata)] for f in found if f.metadata]
        data = {
            "key": self._key,
            "dirs": self._dirs,
            "files": files,
            "found": found,
            "packs": [self._kept.get(f, self._records.get(f)) for f in found],
        }
        # Processes that start at once write files of their own; the last rename wins, and all hold the same.
        temporary = self.file.with_suffix(f".{os.getpid()}.{id(self):x}.tmp")
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            text = json.dumps(data, separators=(",", ":")).encode()
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
                f.write(hashlib.sha256(text).hexdigest().encode() + b"\n" + text)
            os.replace(temporary, self.file)
            for old in sorted(self.file.parent.glob("packs-*.json"), key=lambda p: -p.stat().st_mtime)[_KEEP:]:
                old.unlink(missing_ok=True)
        except OSError:
            let_interruptions_pass()
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def _found_pack(row: Any) -> FoundPack:
    if not isinstance(row, list) or len(row) != 6 or not all(isinstance(v, str) for v in row):
        raise ValueError("a row of packs is malformed")
    return FoundPack(*row)


def _directory_state(path: str) -> tuple[int, int]:
    """mtime of a directory (or zip file) and a checksum of the distributions in it; (0, 0) when there is none."""
    try:
        mtime = os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return 0, 0
    except OSError:
        let_interruptions_pass()
        return 0, 0
    rows = []
    with suppress(OSError), os.scandir(path) as entries:
        for entry in entries:
            if entry.name.endswith(_METADATA):
                rows.append((entry.name, entry.stat().st_mtime_ns))
    return mtime, zlib.crc32(repr(sorted(rows)).encode())


def _same_directory(path: str, mtime: int, distributions: int) -> bool:
    # other files come and go in a working directory; only its distributions count
    try:
        if os.stat(path).st_mtime_ns == mtime:
            return True
    except FileNotFoundError:
        return mtime == 0
    except OSError:
        let_interruptions_pass()
        return mtime == 0
    return os.path.isdir(path) and _directory_state(path)[1] == distributions


def _same_files(rows: Any) -> bool:
    try:
        return all((s := os.stat(path)).st_mtime_ns == mtime and s.st_size == size for path, mtime, size in rows)
    except OSError:  # as for what lies in an archive
        let_interruptions_pass()
        return all(file_state(path) == (mtime, size) for path, mtime, size in rows)


def _to_record(pack: Pack) -> dict[str, Any]:
    brought = pack.contributions
    files = [list(row) for row in brought.files]
    module = sys.modules.get(pack.found.module)
    if source := getattr(module, "__file__", None):
        files.append([source, *file_state(source)])
    return {
        "hooks": list(pack.hooks),
        "files": files,
        "manifests": [m.to_dict() for m in brought.manifests],
        "targets": [list(t) for t in brought.targets],
    }


def _from_record(found: FoundPack, record: dict[str, Any]) -> Pack | None:
    """Pack of a record; None when its files changed. Raises what malformed data makes it raise."""
    if not _same_files(record["files"]):
        return None
    hooks, targets = tuple(record["hooks"]), [tuple(t) for t in record["targets"]]
    if not all(isinstance(v, str) for row in (hooks, *targets) for v in row) or any(len(t) != 3 for t in targets):
        raise ManifestError("a record is malformed")
    brought = Contributions(
        manifests=[manifests.parse_later(m, found.value) for m in record["manifests"]],
        targets=targets,
        files=[(path, mtime, size) for path, mtime, size in record["files"]],
    )
    return Pack(found, hooks=hooks, contributions=brought)
