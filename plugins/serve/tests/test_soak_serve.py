"""A short soak; `python plugins/serve/tests/soak.py` is a long one."""

from __future__ import annotations

from soak import Soak


def test_under_everything_that_goes_wrong_answers_stay_right(tmp_path):
    soak = Soak(tmp_path, 4.0, 5)
    assert soak.run() == []
    assert soak.counts["answered 200"] > 0 and soak.counts["workers killed"] >= 1
    assert soak.counts["sizes of pictures"] > 0
    assert sum(count for what, count in soak.counts.items() if what.startswith("bad: ")) > 10
