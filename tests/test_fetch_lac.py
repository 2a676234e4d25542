"""The archive with the LAC models is unpacked only if it is what it should be."""

from __future__ import annotations

import importlib.util
import io
import tarfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "examples" / "fetch_lac.py"


@pytest.fixture
def fetch_lac():
    spec = importlib.util.spec_from_file_location("fetch_lac", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def archive(path: Path, members: dict[str, bytes | str]) -> Path:
    """A tar.gz whose members are files (bytes) or symbolic links (str: their targets)."""
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return path


MODELS = {f"LAC-2.1.2/LAC/{name}_model/model/__model__": name.encode() for name in ("lac", "seg", "rank")}


def test_only_models_are_unpacked(fetch_lac, tmp_path):
    source = archive(tmp_path / "a.tar.gz", MODELS | {"LAC-2.1.2/setup.py": b"x", "LAC-2.1.2/LAC/lac.py": b"x"})
    fetch_lac.unpack(source, tmp_path / "out")
    files = sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.*"))
    assert files == []
    assert (tmp_path / "out" / "seg_model" / "model" / "__model__").read_bytes() == b"seg"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["lac_model", "rank_model", "seg_model"]


@pytest.mark.parametrize(
    "name, content",
    [
        ("LAC-2.1.2/LAC/lac_model/../../../../escaped", b"x"),
        ("LAC-2.1.2/LAC/lac_model/..\\escaped", b"x"),
        ("LAC-2.1.2/LAC/lac_model/model/w", "/etc/hostname"),
    ],
)
def test_names_and_links_that_leave_the_folder_are_refused(fetch_lac, tmp_path, name, content):
    source = archive(tmp_path / "a.tar.gz", {name: content} | MODELS)
    with pytest.raises(fetch_lac.FetchError, match="not a plain file in its folder"):
        fetch_lac.unpack(source, tmp_path / "deep" / "out")
    assert not list(tmp_path.rglob("*escaped*"))


def test_too_many_bytes_are_refused(fetch_lac, tmp_path, monkeypatch):
    monkeypatch.setattr(fetch_lac, "MAX_BYTES", 10)
    source = archive(tmp_path / "a.tar.gz", {"LAC-2.1.2/LAC/lac_model/model/w": b"x" * 11} | MODELS)
    with pytest.raises(fetch_lac.FetchError, match="10 bytes"):
        fetch_lac.unpack(source, tmp_path / "out")
    assert not (tmp_path / "out" / "lac_model" / "model" / "w").exists()


def test_a_missing_model_is_named(fetch_lac, tmp_path):
    source = archive(tmp_path / "a.tar.gz", dict(list(MODELS.items())[:2]))
    with pytest.raises(fetch_lac.FetchError, match="no __model__ for rank_model"):
        fetch_lac.unpack(source, tmp_path / "out")


def test_another_archive_is_refused_and_leaves_nothing(fetch_lac, tmp_path, monkeypatch):
    monkeypatch.setattr(fetch_lac, "download", lambda folder: archive(folder / "a.tar.gz", MODELS))
    with pytest.raises(fetch_lac.FetchError, match="sha256"):
        fetch_lac.fetch(tmp_path / "lac")
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_not_fetched_again(fetch_lac, tmp_path, monkeypatch):
    source = archive(tmp_path / "a.tar.gz", MODELS)
    downloads = []
    monkeypatch.setattr(fetch_lac, "SHA256", fetch_lac.sha256_of(source))
    monkeypatch.setattr(fetch_lac, "download", lambda folder: downloads.append(folder) or source)
    for _ in range(2):
        target = fetch_lac.fetch(tmp_path / "lac")
    assert len(downloads) == 1
    assert (target / "rank_model" / "model" / "__model__").read_bytes() == b"rank"
