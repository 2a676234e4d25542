"""collect_cases: the cases of a folder with one file for each op, and what such a folder may not have."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from oprack.errors import DefinitionError, NotFoundError
from oprack.testing import Conformance, OpCase, collect_cases
from oprack.testing.fuzz import worker
from oprack.testing.fuzz.campaign import Campaign

HEAD = "from __future__ import annotations\nimport numpy as np\nfrom oprack.testing import OpCase\n"


def write(folder: Path, **files: str) -> Path:
    """Case files, named by their paths with "__" for "/"."""
    for name, text in files.items():
        file = folder / (name.replace("__", "/") + ".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(HEAD + text)
    return folder


def test_every_case_of_every_file_is_found_once_in_the_order_of_names(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        double="ONE = OpCase('double', name='one')\nCASES = [ONE, OpCase('double_grad', name='two')]",
        fold="CASES = [OpCase('fold_grad_grad'), OpCase('fold_double_grad'), OpCase('fold_triple_grad')]",
        binary__join="from ._family import X\nCASES = (OpCase('join', {'X': [X, X]}, name='three'),)",
        binary___family="X = np.ones(2)\nSHARED = OpCase('other')",
        while_="LOOP = OpCase('while', name='four')",
    )
    cases = collect_cases(folder)
    folds = ["fold_grad_grad", "fold_double_grad", "fold_triple_grad"]
    assert [c.id for c in cases] == ["join-three", "double-one", "double_grad-two", *folds, "while-four"]
    assert np.array_equal(cases[0].inputs["X"][0], [1, 1])
    assert all(isinstance(c, OpCase) for c in cases)


def test_a_suite_takes_them_as_its_records(tmp_path: Path) -> None:
    class Suite(Conformance):
        pack = "any"
        cases = collect_cases(write(tmp_path, double="CASE = OpCase('double')"))

    assert [c.op for c in Suite.cases] == ["double"] and Suite.test_record is not None


def test_two_folders_do_not_see_each_other(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(
            tmp_path / name,
            _shared=f"NAME = {name!r}",
            relu="from ._shared import NAME\nCASE = OpCase('relu', name=NAME)",
        )
    assert [[c.name for c in collect_cases(tmp_path / n)] for n in ("a", "b")] == [["a"], ["b"]]


def test_the_fuzzer_starts_from_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, feed="CASE = OpCase('feed', {'X': np.ones((2, 3))})")
    job = {"targets": [], "folders": [], "records": [str(tmp_path)], "known": [], "only": [], "isolated": False}
    monkeypatch.setattr(worker, "op_examples", lambda calls: calls)
    (call,) = worker.Worker(job | {"current": str(tmp_path / "current")})._strategy("op feed", 0)
    assert np.array_equal(call.values["X_0"].array, np.ones((2, 3)))


def test_a_campaign_says_which_file_is_wrong_before_it_starts(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"relu.py: holds no case"):
        Campaign(["op relu"], 0, 1.0, tmp_path / "out", records=[write(tmp_path, relu="")]).run()


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({"relu": ""}, r"relu.py: holds no case; bind OpCase objects in it \(CASES = \[OpCase\('relu', ...\)\]\)"),
        (
            {"relu": "CASE = OpCase('gelu_grad')"},
            r"holds a case of op 'gelu_grad'; expected relu .* Write it in gelu.py",
        ),
        ({"conv2d": "CASE = OpCase('conv2d_transpose')"}, r"'conv2d_transpose'; expected conv2d or its gradient ops"),
    ],
)
def test_a_file_without_a_case_or_with_one_of_another_op_is_refused(
    tmp_path: Path, files: dict[str, str], text: str
) -> None:
    with pytest.raises(DefinitionError, match=text):
        collect_cases(write(tmp_path, **files))


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=re.escape(f"{tmp_path / 'cases'}: there is no such folder of case files")):
        collect_cases(tmp_path / "cases")
