"""Fetch the three models of Baidu LAC 2.1.2 and unpack them, without running any code of that package.

    python examples/fetch_lac.py [--to .downloads/lac]

LAC is published as a source archive whose setup.py fails on today's setuptools; _fetch.py does not run it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import _fetch
from _fetch import DownloadError, FetchError, sha256_of

__all__ = ["DownloadError", "FetchError", "download", "fetch", "sha256_of", "unpack"]

SHA256 = "22fcde0d5082d2044205ea6f6a7a9cd1f0d63e7b21b2dd5c9c73f27e7c0a3ef1"
PACKAGE = _fetch.Package("LAC", "2.1.2", "LAC-2.1.2.tar.gz", SHA256)
MODELS = ("lac_model", "seg_model", "rank_model")
MAX_BYTES = 200 << 20  # the three models take about 72 MB
MAX_FILES = 200
DEFAULT_TARGET = _fetch.DOWNLOADS / "lac"


def download(folder: Path) -> Path:
    """The archive, downloaded into `folder`; raises DownloadError."""
    return _fetch.download(PACKAGE, folder)


def unpack(archive: Path, target: Path) -> None:
    """Write the model folders of `archive`, the files under LAC/<model>/, into `target`; raises FetchError."""

    def choose(parts: tuple[str, ...]) -> tuple[str, ...] | None:
        return parts[2:] if len(parts) >= 4 and parts[1] == "LAC" and parts[2] in MODELS else None

    _fetch.unpack(archive, target, choose, max_files=MAX_FILES, max_bytes=MAX_BYTES)
    missing = [name for name in MODELS if not (target / name / "model" / "__model__").is_file()]
    if missing:
        raise FetchError(f"{archive.name}: no __model__ for {', '.join(missing)}.")


def fetch(target: Path = DEFAULT_TARGET) -> Path:
    """Return `target` holding lac_model, seg_model and rank_model (each with model/ and conf/), fetched if needed."""
    return _fetch.fill(target, SHA256, download, unpack)


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
