"""get_places."""

from __future__ import annotations

import pytest
from oprack import CPUPlace
from oprack.types import VarType


@pytest.mark.parametrize(("kind", "count"), [("AUTO", 3), ("CPU", 2)])
def test_get_places(builder, kind, count):
    b = builder()
    b.var("places", kind=VarType.PLACE_LIST)
    b.op("get_places", Out="places", device_count=count, device_type=kind)
    (places,) = b.run({}, ["places"])
    assert places == [CPUPlace()] * count
