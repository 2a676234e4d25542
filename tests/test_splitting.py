"""Every rule of splitting, by recorded cases: each signature computed on parts against the whole, gradients too."""

from __future__ import annotations

from pathlib import Path

import pytest
from oprack.packs.manager import default_manager
from oprack.testing.fuzz.examples.calls import seeds
from oprack.testing.splitting import check_splitting

ROOT = Path(__file__).parent
FOLDERS = [ROOT / "data" / "cases", *sorted((ROOT.parent / "op_packages").glob("*/tests/cases"))]
RULED = [t for t in sorted(default_manager().op_types()) if default_manager().op_info(t).sbp is not None]


@pytest.mark.parametrize("op_type", RULED)
def test_parts_make_up_the_whole(op_type: str) -> None:
    found = []
    for call in seeds(op_type, FOLDERS, most=1)[:2]:
        found += check_splitting(call, ranks=(2,))[1]
    assert not found, "\n".join(found)


def test_most_ops_that_nets_run_have_a_rule() -> None:
    assert len(RULED) >= 250
