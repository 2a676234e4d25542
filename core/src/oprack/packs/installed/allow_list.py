"""The allow-list of production: the only distributions whose packs may be loaded, each with the hash of its files.

A file made by `oprack packs --lock FILE` names them, and OPRACK_ALLOW=FILE or PackManager(allow=FILE) holds to it. The
hash is that of the wheel's own files, by their hashes in RECORD, so one wheel has the same hash on every machine. At
each start every file is compared with RECORD, and RECORD with the list; from then on the pack's packages are imported
from these files alone. It guards against a pack that nobody reviewed and against one that changed, not against somebody
who can also write to the core's files or to libraries that a pack imports.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oprack.errors import InvalidArgumentError
from oprack.packs.installed.hashed_files import HashedFiles
from oprack.python.interruption import let_interruptions_pass

if TYPE_CHECKING:
    from oprack.packs.installed.entry_points import FoundPack


@dataclass(frozen=True)
class AllowList:
    """What a file allows.

    Attributes:
        path: The file.
        allowed: Distribution -> (version, hash).
    """

    path: str
    allowed: Mapping[str, tuple[str, str]]

    def refusal(self, found: FoundPack) -> tuple[str, bool]:
        """Why a pack may not be loaded, "" when it may; and whether it is on the list and differs from it."""
        if found.distribution not in self.allowed:
            return f"not on the allow-list {self.path}", False
        version, expected = self.allowed[found.distribution]
        if version != found.version:
            return f"the allow-list {self.path} has version {version}, installed is {found.version}", True
        try:
            files = HashedFiles(found)
            digest = files.digest()
            if digest != expected:
                return f"its files have SHA-256 {digest}, the allow-list {self.path} has {expected}", True
            files.hold()
        except InvalidArgumentError as e:
            return f"on the allow-list {self.path}, but {e}", True
        return "", False


def read(path: str) -> AllowList:
    """Read an allow-list.

    Raises:
        InvalidArgumentError: It can't be read. Nothing is loaded then: a list that is lost allows nothing.
    """
    import tomllib

    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        allowed = {name: (_text(row, "version"), _text(row, "sha256")) for name, row in data.items()}
    except (OSError, ValueError, TypeError, KeyError) as e:
        let_interruptions_pass()
        raise InvalidArgumentError(
            f"the allow-list {path} can't be read ({type(e).__name__}: {e}); expected a file that `oprack packs --lock "
            "FILE` wrote. Mend it, or unset OPRACK_ALLOW"
        ) from e
    return AllowList(str(path), allowed)


def _text(row: Any, key: str) -> str:
    if not isinstance(row[key], str):
        raise TypeError(f"{key} is {row[key]!r}, expected a string")
    return str(row[key])


def render(packs: Iterable[FoundPack]) -> str:
    """The text of an allow-list of these packs, the core left out. Raises as `HashedFiles`."""
    lines = ["# written by `oprack packs --lock`: the distributions whose packs OPRACK_ALLOW lets oprack load"]
    for distribution, found in sorted({f.distribution: f for f in packs if f.distribution != "oprack"}.items()):
        digest = HashedFiles(found).digest()
        lines += ["", f"[{distribution}]", f'version = "{found.version}"', f'sha256 = "{digest}"']
    return "\n".join(lines) + "\n"


def left_out(found: Iterable[FoundPack], path: str) -> tuple[dict[FoundPack, str], list[str]]:
    """Packs that a list does not allow, with the reason, and what to warn of: those that differ from it.

    Raises as `read`.
    """
    listed = read(path)
    refused, warnings = {}, []
    for one in found:
        why, differs = listed.refusal(one)
        if why:
            refused[one] = why
        if differs:
            warnings.append(f"pack {one.name} ({one.distribution} {one.version}) is left out: {why}")
    return refused, warnings
