"""oprack ui: what its routes answer and refuse, and what the page shows in a browser."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import oprack
import pytest
from browser import open_page
from oprack.cli.main import main
from oprack.io.inference_model import load_program
from oprack_ui import installed
from oprack_ui.graph import draw
from shown_page import TOKEN, cookie, served

ROOT = Path(__file__).parents[3]
MODEL = ROOT / "tests" / "data" / "small_models" / "resnet"
LOOP = ROOT / "tests" / "data" / "programs" / "while_loop"
JSON = "application/json"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The application with a model, on this machine alone."""
    with served(MODEL) as url:
        yield url


def ask(url: str, body: bytes | None = None, **headers: str) -> tuple[int, dict]:
    """Status and answer."""
    headers = {"Cookie": cookie(url.partition("/api")[0])} | {k.replace("_", "-"): v for k, v in headers.items()}
    request = urllib.request.Request(url, body, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            status, text = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read()
    return status, json.loads(text) if text[:1] == b"{" else {"text": text.decode()}


def profile(address: str, shapes: object) -> tuple[int, dict]:
    return ask(f"{address}/api/model/profile", json.dumps({"shapes": shapes}).encode(), Content_Type=JSON)


def test_packs_and_ops(address: str) -> None:
    status, found = ask(f"{address}/api/packs")
    assert status == 200 and found["model"] == "resnet"
    assert {op["op"] for op in found["ops"]} == set(oprack.default_manager().op_types())
    relu = next(op for op in found["ops"] if op["op"] == "relu")
    assert relu["pack"] == "oprack-nn" and "cpu" in relu["places"]
    assert "cpu" in found["places"] and "float32" in found["dtypes"]


def test_an_op_with_its_formula(address: str) -> None:
    status, found = ask(f"{address}/api/op/relu")
    assert status == 200
    assert found["doc"][0]["formula"] == r"$$Out = \max(X, 0)$$" and found["doc"][0]["mathml"].startswith("<math")
    assert ask(f"{address}/api/op/relo")[0] == 404


def test_documentation_in_parts() -> None:
    parts = installed.documentation("Takes $x$ and\nmore.\n\n$$y$$")
    assert [p.get("text", p.get("formula")) for p in parts] == ["Takes ", "$x$", " and more.", "$$y$$"]


def test_the_kernel_that_is_said_to_run() -> None:
    manager = oprack.PackManager(blocked=["onednn"])
    found = installed.choice(manager, "relu", "cpu", "float32", "plain")
    assert found["runs"] == ["oprack_nn.kernels.activation.relu"]
    refused = installed.choice(manager, "relu", "cpu", "int8", "plain")
    assert refused["runs"] == [] and "no kernel for (cpu, int8)" in refused["note"]
    assert all("dtype int8 is not among" in c["reason"] for c in refused["candidates"])
    assert "The CPU's kernel runs" in installed.choice(manager, "unique", "cuda", "float32", "plain")["note"]
    assert "runs itself" in installed.choice(manager, "while", "cpu", "float32", "plain")["note"]
    with pytest.raises(oprack.errors.InvalidArgumentError, match="dtype 'float31'; expected one of"):
        installed.choice(manager, "relu", "cpu", "float31", "plain")


def test_the_graph_folds_chains_and_opens_them(address: str) -> None:
    _, folded = ask(f"{address}/api/model/graph")
    _, whole = ask(f"{address}/api/model/graph?fold=0")
    chains = [box for box in folded["boxes"] if box["kind"] == "chain"]
    assert chains and sum(len(b["details"]) for b in folded["boxes"]) == len(whole["boxes"])
    _, opened = ask(f"{address}/api/model/graph?open={chains[0]['key']}")
    assert len(opened["boxes"]) == len(folded["boxes"]) - 1 + len(chains[0]["details"])
    conv = next(box for box in whole["boxes"] if box["lines"][0] == ["conv2d", ""])
    weight, result = (more for _, more in conv["lines"][1:])
    assert re.fullmatch(r"Filter \[\d+, 3, \d, \d\]", weight) and re.fullmatch(r"→ float32 \[\?, \d+, .*\]", result)
    assert conv["packs"] == ["oprack-nn"]
    assert conv["details"][0]["attrs"]["groups"] == "1"
    for box in whole["boxes"]:
        assert -1e-6 <= box["x"] and box["x"] + box["width"] <= whole["width"] + 1e-6
        assert 0 <= box["y"] and box["y"] + box["height"] <= whole["height"]
    _, rewritten = ask(f"{address}/api/model/graph?stage=rewritten&fold=0")
    assert 0 < len(rewritten["boxes"]) <= len(whole["boxes"])


def test_blocks_inside_ops_are_named() -> None:
    program, _, _ = load_program(LOOP)
    owners = {op.type: "some-pack" for block in program.blocks for op in block.ops}
    drawn = draw(program.desc.blocks[0], owners, [], folded=True)
    inside = [d["blocks"] for box in drawn["boxes"] for d in box["details"] if d.get("blocks")]
    assert inside and draw(program.desc.blocks[inside[0][0]], owners, [], folded=True)["boxes"]


def test_ops_and_variables_are_found(address: str) -> None:
    _, found = ask(f"{address}/api/model/find?words=CONV2D%20w_0")
    assert found["count"] == len(found["places"]) > 1
    assert {p["op"] for p in found["places"]} == {"conv2d"} and "reads conv2d_0.w_0" in found["places"][0]["note"]
    _, readers = ask(f"{address}/api/model/find?words=image")
    assert [p["note"] for p in readers["places"] if p["op"] == "conv2d"] == ["reads image"]
    assert ask(f"{address}/api/model/find?words=nothing_of_it")[1] == {"count": 0, "places": []}
    assert ask(f"{address}/api/model/find?words=")[1]["count"] == 0
    assert ask(f"{address}/api/model/find?stage=x&words=a")[0] == 404


def test_passes_and_times(address: str) -> None:
    _, found = ask(f"{address}/api/model/passes")
    assert {p["pack"] for p in found["passes"]} >= {"oprack-ir", "oprack-nn"}
    assert sum(op["count"] for op in found["before"]) >= sum(op["count"] for op in found["after"])
    status, times = profile(address, {"image": [2, 3, 32, 32]})
    assert status == 200 and times["feed"] == {"image": [2, 3, 32, 32]} and times["median_ms"] > 0
    assert {o["op"] for o in times["ops"]} == {o["op"] for o in found["after"]}
    assert sum(p["total_ms"] for p in times["packs"]) == pytest.approx(sum(o["total_ms"] for o in times["ops"]))


@pytest.mark.parametrize(
    ("shapes", "says"),
    [
        ({"image": [1, 3]}, "expected 4 numbers"),
        ({"image": [1, 3, 1 << 20, 1 << 20]}, "more than"),
        ({"image": [1, 3, "x", 1]}, "expected 4 numbers"),
        ({"image": [1, 4, 32, 32]}, "image"),
        ([], "expected an object"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(address: str, shapes: object, says: str) -> None:
    status, answer = profile(address, shapes)
    assert status == 400 and says in answer["error"]


# Who may ask ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("host", ["example.org", "example.org:80", "127.0.0.1.example.org", "0.0.0.0"])
def test_other_names_of_the_host_are_refused(address: str, host: str) -> None:
    assert ask(f"{address}/api/packs", Host=host)[0] == 400
    assert ask(f"{address}/index.html", Host=host)[0] == 400


def test_who_has_no_token_gets_nothing(address: str) -> None:
    port = address.rpartition(":")[2]
    for path in ("/", "/index.html", "/api/packs", "/api/model/passes", "/?token=wrong", "/api/packs?token="):
        for sent in ("", f"oprack_ui_{port}=", f"oprack_ui_{port}=wrong", f"oprack_ui={TOKEN}"):
            assert ask(f"{address}{path}", Cookie=sent)[0] == 403
    assert ask(f"{address}/api/packs?token={TOKEN}", Cookie="")[0] == 200
    assert ask(f"{address}/api/model/passes", Sec_Fetch_Site="cross-site", Origin="http://evil.example")[0] == 403


def test_a_form_of_another_page_cannot_run_the_model(address: str) -> None:
    for kind in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data"):
        status, answer = ask(f"{address}/api/model/profile", b"{}", Content_Type=kind)
        assert status == 400 and JSON in answer["error"]


@pytest.mark.parametrize("body", [b"[" * 70_000, b"[" * 5_000, b"", b"3"])
def test_bodies_that_are_no_object_are_refused(address: str, body: bytes) -> None:
    assert ask(f"{address}/api/model/profile", body, Content_Type=JSON)[0] == 400


def test_answers_forbid_what_the_page_does_not_need(address: str) -> None:
    with urllib.request.urlopen(f"{address}/index.html?token={TOKEN}", timeout=30) as answer:
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy and answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("path", ["/../app.py", "/%2e%2e/app.py", "/static/../../pack.py"])
def test_files_beside_the_page_are_not_served(address: str, path: str) -> None:
    with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=10) as connection:
        connection.sendall(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nCookie: {cookie(address)}\r\n\r\n".encode()
        )
        assert b" 404 " in connection.recv(100)


@pytest.mark.parametrize("query", ["stage=other", "block=99", "block=-1", "block=x"])
def test_graphs_that_are_not_there(address: str, query: str) -> None:
    assert ask(f"{address}/api/model/graph?{query}")[0] == 404


def test_a_model_that_is_not_there_or_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ui", str(tmp_path / "none")]) == 3
    (tmp_path / "bad.pdmodel").write_bytes(MODEL.with_suffix(".pdmodel").read_bytes()[:-7])
    assert main(["ui", str(tmp_path / "bad.pdmodel")]) == 3
    assert "CorruptModelError" in capsys.readouterr().err


def test_the_command_listens_at_this_machine_alone() -> None:
    command = [sys.executable, "-m", "oprack", "ui", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            url = re.match(r"(http://127\.0\.0\.1:\d+)/(\?token=[\w-]{20,})  ", process.stdout.readline())
            assert ask(f"{url[1]}/api/packs{url[2]}")[1]["model"] is None
            assert ask(f"{url[1]}/api/model{url[2]}")[0] == 404
            assert ask(f"{url[1]}/api/packs")[0] == 403
        finally:
            process.terminate()
            process.wait(20)


# In a browser ---------------------------------------------------------------------------------------------------------
def test_the_page_in_a_browser(address: str) -> None:
    with open_page(f"{address}/?token={TOKEN}", width=1300, height=850) as page:
        page.set_default_timeout(30_000)
        page.click("nav button[data-view=ops]")
        page.fill("#search", "nn relu")
        page.click("#found button >> text=relu >> nth=0")
        page.wait_for_selector(".choice table")
        assert "relu" in page.inner_text("#op h2") and page.locator("#op math").count() >= 1
        page.click("nav button[data-view=graph]")
        page.wait_for_selector(".box.chain")
        before = page.locator(".box").count()
        page.dblclick(".box.chain >> nth=0")
        page.wait_for_selector(f".box >> nth={before}", state="attached")
        page.click(".box.op >> nth=0")
        assert "conv2d" in page.inner_text("#details")
        page.click("#larger")
        assert "scale(" in page.get_attribute("#world", "transform")
        page.click("nav button[data-view=passes]")
        page.wait_for_selector("#passes table")
        page.click("nav button[data-view=profile]")
        page.fill("input[aria-label='dims of image']", "1, 3, 32, 32")
        page.click("#run")
        page.wait_for_selector("#profile meter")
        assert page.outside == [] and page.errors == []
        page.fill("input[aria-label='dims of image']", "1")
        page.click("#run")
        page.wait_for_selector("#error:visible")
        assert "expected 4 numbers" in page.inner_text("#error")
