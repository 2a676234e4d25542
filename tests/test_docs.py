"""The site of the documents: its pages are made, lead to each other, load nothing from elsewhere, and look right."""

from __future__ import annotations

import contextlib
import functools
import http.server
import importlib
import re
import sys
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from browser import open_page
from oprack import default_manager
from oprack.errors import OprackError
from oprack.packs import hookspecs
from oprack.packs.variables import CORE

mkdocs = pytest.importorskip("mkdocs.config", reason="the site is built with MkDocs, which `make setup` installs")

ROOT = Path(__file__).parents[1]
PICTURE = Path(__file__).parent / "data" / "site" / "relu.png"
ONLY = ["relu", "relu6", "gru", "gru_unit", "adam", "softmax", "softmax_with_cross_entropy", "lod_reset", "layer_norm"]
sys.path.insert(0, str(ROOT / "docs" / "site"))

examples, formulas, op_pages, pictures, reference_pages, search_index = map(
    importlib.import_module, ("examples", "formulas", "op_pages", "pictures", "reference_pages", "search_index")
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site with the pages of a few ops, built as `make docs` does: a warning is an error."""
    from mkdocs.commands.build import build

    folder = tmp_path_factory.mktemp("site")
    config = mkdocs.load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder))
    config.extra |= {"only": ONLY, "rooms": ["oprack.nn", "oprack.tensor"]}
    config.plugins.run_event("startup", command="build", dirty=False)
    build(config)
    return folder


class _Links(HTMLParser):
    """What a page names: anchors of its own, links, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif "src" in given or (tag == "link" and "href" in given):
            self.loads.append(given.get("src") or given["href"])


def test_links_lead_somewhere_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = {page: _Links(page.read_text("utf-8")) for page in site.rglob("*.html") if page.name != "404.html"}
    assert len(pages) > 40
    wrong = []
    for page, found in pages.items():
        for link in found.loads:
            target = page.parent / unquote(urlsplit(link).path)
            if urlsplit(link).scheme or not target.exists():
                wrong.append((page.name, link))
        for link in found.links:
            parts = urlsplit(link)
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if parts.scheme in ("https", "mailto"):  # links of the theme's own
                continue
            there = pages.get(target)
            if there is None and target.suffix != ".html" and target.is_file():
                continue
            if there is None or (parts.fragment and unquote(parts.fragment) not in there.ids | {"__skip"}):
                limited = target.parent.name == "ops" and target.stem not in ONLY
                wrong += [] if limited else [(page.name, link)]
    assert wrong == []


def test_formulas_and_pictures_are_drawn_in_the_pages(site: Path) -> None:
    gru = (site / "ops" / "gru.html").read_text("utf-8")
    assert gru.count("<math") >= 3 and "$$" not in gru
    design = (site / "design.html").read_text("utf-8")
    assert '<div class="picture"><svg' in design and "flowchart" not in design


def test_the_index_has_of_an_op_what_people_look_for() -> None:
    def entry(location: str, title: str) -> dict[str, str]:
        return {"location": location, "title": title, "text": title}

    kept = [
        *(entry(f"ops/{op}.html", op) for op in ("relu", "relu6", "tanh")),
        entry("ops/relu.html#relu_grad", "relu_grad"),
        entry("ops/relu6.html#attributes", "Attributes"),
        entry("how_to/train.html", "Train"),
        entry("how_to/train.html#kernels", "Kernels"),
    ]
    left = [entry("ops/relu.html#kernels", "Kernels"), entry("ops/tanh.html#example", "Example")]
    found = search_index.tidy({"config": 1, "docs": kept + left}, {"relu", "relu_grad", "relu6", "tanh"})
    assert [e["location"] for e in found["docs"]] == [e["location"] for e in kept] and found["config"] == 1
    boosted = {e["location"]: e["boost"] for e in found["docs"] if "boost" in e}
    assert set(boosted) == {"ops/relu.html", "how_to/train.html"}


def test_every_op_stands_on_one_page() -> None:
    types = sorted(default_manager().op_types())
    pages = op_pages.op_pages()
    index = pages.pop("ops/index.md")
    found = [name for text in pages.values() for name in re.findall(r"^(?:#|###) (\w+)$", text, re.MULTILINE)]
    assert sorted(found) == types
    assert sorted(re.findall(r"\]\((\w+)\.md\)", index)) == sorted(Path(p).stem for p in pages)
    relu = pages["ops/relu.md"]
    assert r"$$Out = \max(X, 0)$$" in relu and "| `X` | Tensor of any shape. |" in relu
    assert "| cpu |  | oprack-nn | 0 |" in relu and "### relu_grad" in relu and "F.relu(" in relu


def test_the_examples_of_ops_give_what_paddle_gives() -> None:
    compared = 0
    for op_type in default_manager().op_types():
        found = examples.example(op_type)
        if found is None:
            continue
        names: dict[str, object] = {}
        try:
            exec(found.code, names)
        except OprackError as error:
            raise AssertionError(f"{op_type}: {error}\n{found.code}") from error
        for slot, value in _results(op_type, names["result"]).items():
            if found.outputs and slot in found.outputs:
                compared += 1
                want = np.asarray(found.outputs[slot])
                got = value.numpy()
                if op_type == "eigvals":  # in any order
                    got, want = np.sort(got), np.sort(want)
                assert got.shape == want.shape, op_type
                np.testing.assert_allclose(got, want, 1e-2, 1e-3, err_msg=op_type)
    assert compared > 200


def test_examples_can_be_read() -> None:
    """Short lines, and a result on every page of an op that has an example."""
    manager = default_manager()
    ops = {t for t in manager.op_types() if op_pages.forward_of(t, set(manager.op_types())) == t}
    assert len(examples.written()) >= 60 and examples.written().keys() <= ops
    assert len(examples.written()) == examples.WRITTEN.read_text("utf-8").count("\n## ")
    shown = {op: (code, printed) for op, (code, printed) in examples.written().items()}
    for op in ops - shown.keys():
        found = examples.example(op)
        if found is not None:
            shown[op] = found.code, found.outputs or found.shapes
    assert {op for op, (code, _) in shown.items() if max(map(len, code.splitlines())) > examples.WIDTH} == set()
    assert {op for op, (_, result) in shown.items() if not result} == set()


# They take or give more than tensors, or nothing that can be shown in a call by itself.
WITHOUT_EXAMPLE = {
    *("conditional_block", "conditional_block_infer", "recurrent", "while"),  # blocks
    *("array_to_lod_tensor", "lod_array_length", "lod_tensor_to_array", "read_from_array", "tensor_array_to_tensor"),
    *("write_to_array", "lod_rank_table", "max_sequence_len", "reorder_lod_tensor_by_rank", "shrink_rnn_memory"),
    *(
        "merge_lod_tensor",
        "merge_lod_tensor_infer",
        "split_lod_tensor",
        "beam_search_decode",
        "select_input",
        "select_output",
    ),  # branches
    *("get_tensor_from_selected_rows", "merge_selected_rows"),  # SelectedRows
    *("assert", "delete_var", "feed", "fetch", "get_places", "print", "rnn_memory_helper"),  # act on a run
    "cuda_bias_act",  # of a plugin that needs a GPU
}


def test_every_other_op_has_an_example() -> None:
    manager = default_manager()
    types = sorted(manager.op_types())
    other = re.compile("^(onednn|onnx|onnxruntime)_|_grad")
    forward = {t for t in types if op_pages.forward_of(t, types) == t and not other.search(t)}
    alone = {t for t in forward if manager.owner(t) != "oprack-collective"}  # the others need several ranks
    assert {t for t in alone if examples.example(t) is None} == WITHOUT_EXAMPLE


def _results(op_type: str, result: object) -> dict[str, object]:
    """Tensors by slot, where it is plain which tensor is whose."""
    slots = list(default_manager().op_info(op_type).proto.outputs)
    if hasattr(result, "numpy"):
        return {slots[0]: result} if len(slots) == 1 else {}
    fields = getattr(result, "_fields", ())
    found = {s: getattr(result, s.lower()) for s in slots if s.lower() in fields}
    return {s: value for s, value in found.items() if hasattr(value, "numpy")}


def test_every_formula_of_every_op_becomes_mathml() -> None:
    for op_type in default_manager().op_types():
        for match in re.finditer(formulas.PATTERN, default_manager().op_info(op_type).proto.doc, re.DOTALL):
            assert formulas.mathml(match["block"] or match["line"], False).startswith("<math")


@pytest.mark.parametrize(
    "formula",
    [r"\text{</mtext><script>alert(1)</script>}", r"\text{a{<img src=x>}}", r"\href{javascript:alert(1)}{x}"],
)
def test_a_formula_brings_no_elements_into_its_page(formula: str) -> None:
    try:
        found = formulas.mathml(formula, False)
    except ValueError as error:
        assert "expected elements of MathML alone" in str(error)
    else:
        assert "<script" not in found and "<img" not in found and "&lt;script" in found


def test_tables_keep_formulas_with_bars_and_text_that_looks_like_html() -> None:
    assert formulas.in_cell("a | b, $|x|$ and `c|d` <e>") == r"a \| b, $\vert x\vert $ and `c\|d` \<e>"


def test_reference_pages_say_what_the_code_says() -> None:
    hooks = reference_pages.hooks()
    assert re.findall(r"^## (oprack_\w+)$", hooks, re.MULTILINE) == list(hookspecs.HOOKS)
    table = reference_pages.environment()
    assert all(f"| `{variable.name}` |" in table for variable in CORE) and "OPRACK_ONEDNN_RUNNER" in table
    errors = reference_pages.error_classes()
    assert "| `FeedDtypeError` | `FeedError` | A fed value has another dtype than its variable." in errors
    assert "`oprack.runtime`" in re.search(r"\| `LoopLimitError` .*", errors)[0]
    assert "## oprack show" in reference_pages.commands() and "## oprack passes" in reference_pages.commands()


def test_rooms_begin_with_what_people_use() -> None:
    for room, first in (("oprack.layers", "program_guard"), ("oprack.kernel", "kernel")):
        text = reference_pages.api_pages([room])[f"reference/{room.replace('.', '_')}.md"]
        assert re.search(r"^::: [\w.]*\.(\w+)$", text, re.MULTILINE)[1] == first
        assert "## More" not in text, "new names belong into reference_order.toml"
        module = importlib.import_module(room)
        named = {name for words in reference_pages.ORDER[room].values() for name in words.split() if "." not in name}
        assert {name for name in named if not hasattr(module, name)} == set()


@pytest.mark.parametrize("source", ["graph TD\na --> b", "flowchart TB\na ==> b", "flowchart TB\na --> (b)"])
def test_pictures_refuse_what_they_cannot_draw(source: str) -> None:
    with pytest.raises(ValueError, match="picture"):
        pictures.parse(source)


def test_pictures_hold_their_nodes_and_edges() -> None:
    chart = pictures.parse('flowchart TB\nsubgraph s ["S"]\na["A<br>b"]\nend\na -- "t" --> c\nc -.-> s')
    assert chart.labels == {"a": ["A", "b"], "c": ["c"]} and chart.titles == {"s": "S"}
    assert chart.edges == {("a", "c"): ("t", False), ("c", "a"): ("", True)}
    drawn = pictures.draw(chart)
    assert drawn.count("<rect") == 3 and drawn.count("marker-end") == 2 and ">A</text>" in drawn


# In a browser ---------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The site, served on this machine alone."""
    handler = functools.partial(_Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Says nothing."""


def test_the_page_of_an_op_looks_as_it_should(address: str, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="pictures are compared with Pillow, which `make setup` installs")
    with open_page(f"{address}/ops/relu.html", width=1200, height=900) as page:
        box = page.locator("math").first.bounding_box()
        assert box["width"] > 60 and box["height"] > 10
        page.screenshot(path=tmp_path / "relu.png")
        page.click(".md-search__input")
        page.keyboard.type("gated recurrent unit")
        page.wait_for_selector(".md-search-result__item >> text=gru", timeout=20_000)
        assert page.outside == [] and page.errors == []
    seen, kept = (image.open(p).convert("L").resize((60, 45)) for p in (tmp_path / "relu.png", PICTURE))
    # Fonts differ from machine to machine, and with them where lines end.
    assert np.abs(np.asarray(seen, "float32") - np.asarray(kept, "float32")).mean() < 3


WANTED = {
    "softmax": "softmax",
    "relu": "relu",
    "gru": "gru",
    "kernel LoD": "A kernel that reads LoD",
    "layer op": "A layer for your op",
    "TensorBoard": "Train: data, checkpoints, TensorBoard",
    "PyTorch": "Coming from PyTorch",
    "resume": "Train: data, checkpoints, TensorBoard",
}


FIRST = ".md-search-result__item > a h1"


def test_the_search_finds_first_what_is_meant(address: str) -> None:
    with open_page(f"{address}/index.html") as page:
        for words, wanted in WANTED.items():  # no two in a row want the same, so what is seen is the answer to these
            page.click(".md-search__input")
            page.keyboard.press("Control+a")
            page.keyboard.type(words)
            with contextlib.suppress(Exception):
                page.wait_for_function(
                    "([where, want]) => document.querySelector(where)?.innerText == want",
                    arg=[FIRST, wanted],
                    timeout=15_000,
                )
            assert (words, page.locator(FIRST).first.inner_text()) == (words, wanted)
