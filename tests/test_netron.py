"""Models that oprack saves open in Netron, which is asked by a browser."""

from __future__ import annotations

from pathlib import Path

import oprack
import pytest
from browser import open_page
from oprack import nn

netron = pytest.importorskip("netron", reason="Netron is installed by `make setup`")


def test_a_saved_model_opens_in_netron(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2)).eval()
    traced = oprack.to_program(net, [oprack.InputSpec([None, 4], name="points")])
    oprack.io.save_inference_model(
        tmp_path / "points", traced.program, traced.feed_names, traced.fetch_names, traced.scope
    )
    address = netron.start(str(tmp_path / "points.pdmodel"), ("127.0.0.1", 0), browse=False)
    try:
        with open_page(f"http://{address[0]}:{address[1]}/", width=900, height=700) as page:
            page.click("#message-button", timeout=30_000)  # what it wants to report does not leave this machine
            page.wait_for_selector("#canvas text", timeout=30_000, state="attached")
            shown = page.locator("#canvas").text_content()
            # inputs and outputs with shapes, ops, and parameters with the shapes of their file
            for text in (
                "float32[?,4]",
                "matmul_v2float32[4,16]",
                "elementwise_addfloat32[16]",
                "relu",
                "float32[?,2]",
            ):
                assert text in shown, shown
    finally:
        netron.stop(address)
