"""A short soak; `python plugins/serve/tests/soak.py` is a long one."""

from __future__ import annotations

from soak import Soak


def test_under_everything_that_goes_wrong_answers_stay_right(tmp_path):
    soak = Soak(tmp_path, 3.0, 4)
    assert soak.run() == []
    assert soak.counts["answered 200"] > 20 and soak.counts["workers killed"] >= 1
    assert sum(count for what, count in soak.counts.items() if what.startswith("bad: ")) > 10
