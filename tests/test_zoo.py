"""Nets of public architectures, as Paddle saved them: small ones of those that `make zoo` compares."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from oprack.desc import ProgramDesc
from oprack.ir import Graph, verify

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data" / "zoo"
NETS = sorted(path.name for path in DATA.iterdir() if path.is_dir())
sys.path.append(str(ROOT / "tests" / "zoo"))

import compare  # noqa: E402
import distance as distances  # noqa: E402
import registry  # noqa: E402
import report  # noqa: E402
import run  # noqa: E402
import weights  # noqa: E402


def test_all_nets_are_here():
    assert len(NETS) == 14


@pytest.mark.parametrize("name", NETS)
def test_a_net_answers_as_paddle(name, tmp_path):
    folder = shutil.copytree(DATA / name, tmp_path / name)
    with np.load(folder / "io.npz") as found:
        feeds = {key.removeprefix("in/"): found[key] for key in found if key.startswith("in/")}
        wanted = [found[key] for key in sorted(found) if key.startswith("out/")]
    # what other runs left must not be seen in the third
    other = {key: value / 2 if value.dtype == np.float32 else value for key, value in feeds.items()}
    params = compare.remake(folder)
    for passes in (True, False):
        first, _, last = compare.outputs_of(folder / "model.pdmodel", params, passes, [feeds, other, feeds])
        for got in (first, last):
            assert max(distances.distance(a, b) for a, b in zip(got, wanted, strict=True)) < registry.TOLERANCE


@pytest.mark.parametrize("folder", ["encoders", "programs", "small_models", "zoo"])
def test_the_verifier_takes_what_paddle_saved(folder):
    """Shape rules know what Paddle leaves open: sizes of -1, and marks for sizes that only a tensor has."""
    saved = sorted((ROOT / "tests" / "data" / folder).rglob("*.pdmodel"))
    facts = {str(path): verify(Graph(ProgramDesc.parse(path.read_bytes()))) for path in saved}
    assert facts and all(facts.values())


def test_parameters_are_remade_bit_by_bit():
    gen = {"seed": 73945632, "mean": 0.0, "std": 0.05}
    # NumPy promises this stream: https://numpy.org/neps/nep-0019-rng-policy.html
    expected = np.random.RandomState(73945632).normal(0.0, 0.05, 6).astype("float32")
    np.testing.assert_array_equal(weights.draw(gen, [2, 3], "float32").reshape(-1), expected)
    assert weights.draw(gen, [], "float32").shape == ()


def test_a_recipe_keeps_the_spread_of_the_initial_value():
    initial = np.random.RandomState(1).normal(0.5, 0.2, (40, 50)).astype("float32")
    gen = weights.generator("net", "fc.weight", initial)
    drawn = weights.draw(gen, [40, 50], "float32")
    assert abs(drawn.mean() - 0.5) < 0.02 and abs(drawn.std() - 0.2) < 0.02
    assert gen != weights.generator("net", "other.weight", initial)
    assert weights.generator("net", "norm.bias", np.zeros(4, "float32"))["std"] == 0.05
    assert weights.generator("net", "positions", np.arange(4)) is None


@pytest.mark.parametrize(
    ("got", "want", "distance"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.0, 2.2], [1.0, 2.0], 0.05),
        ([1.0, np.inf], [1.0, 2.0], np.inf),
        ([1.0, np.inf], [1.0, np.inf], 0.0),
        ([1.0], [1.0, 2.0], np.inf),
        ([1, 2], [1, 3], np.inf),
        ([1, 2], [1.0, 2.0], np.inf),
        ([], [], 0.0),
    ],
)
def test_distance(got, want, distance):
    assert distances.distance(np.array(got), np.array(want)) == pytest.approx(distance)


def test_every_net_of_the_registry_says_what_it_takes():
    assert len(registry.ALL) >= 80
    for net in registry.ALL.values():
        assert net.inputs and (len(net.batches) > 1 or net.note), net.name
        for batch, size in net.cases():
            for name, value in net.feeds(batch, size).items():
                spec = net.spec(name)
                assert len(spec) == value.ndim and all(a in (None, b) for a, b in zip(spec, value.shape, strict=True))
        assert len(net.sizes) > 1 or net.note, f"{net.name} has one size and does not say why"


def test_the_report_tells_agreement_from_what_cannot_be_judged():
    net = registry.ALL["lenet"]
    one = {"write": "", "compare": {"passes": 1e-6, "plain": 2e-6}, "self_difference": 1e-6}
    assert report.agrees(net, one) == "yes"
    far = one | {"compare": {"passes": 1e-2, "plain": 1e-6}}
    assert report.agrees(net, far) == "no"
    assert report.agrees(net, far | {"self_difference": 1e-2}) == "unjudged"
    unsure = one | {"compare": {"passes": 4e-4, "plain": 3e-4}, "self_difference": 3e-4}
    assert report.agrees(net, unsure) == "yes" and report.agrees(net, unsure | {"self_difference": 1e-4}) == "no"
    assert report.agrees(net, {"write": "no such module"}) == "not written"
    assert report.agrees(net, one | {"compare": {"error": "ended with -11"}}) == "fails"
    times = {"oprack": {"median_ms": 2.0}, "paddle": {"median_ms": 4.0}}
    columns = [line for line in report.table([net], {"lenet": one}) if line.startswith("|")]
    assert len({line.count("|") for line in columns}) == 1
    timed, slower = ({"times": times | {"oprack": {"median_ms": ms}}} for ms in (2.0, 6.0))
    assert report.pace({"a": timed, "b": slower, "c": {}}) == (
        "Of 2 ratios of times half are below 1.50; the greatest are b at 1.50, a at 0.50."
    )
    assert report.pace({"c": {}}) == ""
    pir = one | {"pir": {"passes": 1e-6, "plain": 1e-6, "paddle3_itself": 0.0}}
    assert report.paddle3(net, pir) == "yes"
    assert report.paddle3(net, one | {"pir": pir["pir"] | {"paddle3_itself": np.inf}}) == "yes, not as Paddle 2"
    assert report.paddle3(net, one | {"pir": pir["pir"] | {"plain": 1.0}}) == "no"
    assert report.ratio(one | {"times": times}) == 0.5 and "0.50" in report.row(net, one | {"times": times})


def test_what_is_kept_of_a_net_is_its_recipe():
    for name in NETS:
        recipe = json.loads((DATA / name / weights.RECIPE).read_text("utf-8"))
        assert recipe and not (DATA / name / "model.pdiparams").exists()


def test_a_run_of_some_nets_says_which_differ(tmp_path, monkeypatch):
    """`make zoo ARGS="lenet bert"` ends with 1 then, so that a workflow that runs a sample can fail."""
    found = {
        "lenet": {"compare": {"passes": 1e-6, "plain": 0.0}},
        "alexnet": {"compare": {"passes": 1e-2, "plain": 0.0}},
        "vgg11": {"compare": {"passes": 1e-2, "plain": 0.0}, "self_difference": 1e-2},  # nobody can tell
        "vgg16": {"compare": {"error": "ended with -11"}},
        "resnet18": {"write": "took more than 300 s"},
    }
    for name, result in found.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "result.json").write_text(json.dumps(result), "utf-8")
    monkeypatch.setattr(run, "OUT", tmp_path)
    assert run.differing(list(found)) == ["alexnet", "vgg16", "resnet18"]
