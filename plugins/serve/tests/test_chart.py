"""The Helm chart and the runtime for a whole cluster: what they render to agrees with Kubernetes and with the command.

`data/helm_chart.yaml` is what Helm renders of the chart for a release `lac`; where Helm is installed, it is made again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest
import yaml
from oprack_serve.command import configure

DEPLOY, DATA = Path(__file__).parents[1] / "deploy", Path(__file__).parent / "data"
CHART = DEPLOY / "helm" / "oprack-serve"
HELM = shutil.which("helm")
needs_helm = pytest.mark.skipif(HELM is None, reason="helm is not installed")


def helm(*options: str) -> subprocess.CompletedProcess:
    return subprocess.run([HELM, "template", "lac", str(CHART), *options], capture_output=True, text=True, check=False)


def documents(text: str) -> dict[str, dict]:
    """By kind."""
    return {document["kind"]: document for document in yaml.safe_load_all(text)}


def errors_of(document: dict) -> list[str]:
    schemas = json.loads((DATA / "kubernetes_schema.json").read_text("utf-8"))
    runtime = json.loads((DATA / "kserve_schema.json").read_text("utf-8"))["serving.kserve.io/v1alpha1 ServingRuntime"]
    container = runtime["properties"]["spec"]["properties"]["containers"]["items"]
    schema = schemas[f"{document['apiVersion']} {document['kind']}"] | {
        "$defs": schemas["$defs"] | {"container": container}
    }
    return [f"{e.json_path}: {e.message}" for e in jsonschema.Draft202012Validator(schema).iter_errors(document)]


def arguments(deployment: dict) -> argparse.Namespace:
    """The options of the deployment's container, behind those of the image."""
    image = next(
        line for line in (DEPLOY / "Dockerfile").read_text("utf-8").splitlines() if line.startswith("ENTRYPOINT")
    )
    parser = argparse.ArgumentParser()
    configure(parser)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return parser.parse_args([*json.loads(image.partition(" ")[2])[2:], *container["args"]])


def check(rendered: dict[str, dict]) -> None:
    assert {kind: errors_of(document) for kind, document in rendered.items() if errors_of(document)} == {}
    pod = rendered["Deployment"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    args = arguments(rendered["Deployment"])
    assert args.models == Path("/mnt/models") and args.port == container["ports"][0]["containerPort"]
    assert args.drain_delay + args.grace < pod["spec"]["terminationGracePeriodSeconds"]
    assert rendered["Service"]["spec"]["selector"] == pod["metadata"]["labels"]
    assert rendered["Service"]["spec"]["ports"][0]["targetPort"] == container["ports"][0]["name"]
    volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    assert pod["metadata"]["annotations"]["prometheus.io/port"] == str(args.port)


def test_the_recorded_rendering_is_what_kubernetes_and_the_command_take():
    rendered = documents((DATA / "helm_chart.yaml").read_text("utf-8"))
    assert set(rendered) == {"Deployment", "Service"}
    check(rendered)


def test_a_wrong_rendering_is_noticed():
    rendered = documents((DATA / "helm_chart.yaml").read_text("utf-8"))
    spec = rendered["Deployment"]["spec"]["template"]["spec"]
    spec["terminationGracePeriod"] = 30
    spec["containers"][0]["readinesProbe"] = {}
    rendered["Service"]["spec"]["ports"][0]["port"] = "80"
    assert len(errors_of(rendered["Deployment"])) == 2 and len(errors_of(rendered["Service"])) == 1


@pytest.mark.parametrize("change", [{}, {"workers": "two"}, {"worker": 2}, {"grace": -1}, {"models": {"claim": ""}}])
def test_values_that_are_wrong_are_refused(change):
    values = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
    schema = json.loads((CHART / "values.schema.json").read_text("utf-8"))
    assert jsonschema.Draft7Validator(schema).is_valid(values | change) == (change == {})
    assert set(values) == set(schema["properties"]) - {"global"}


def test_the_chart_has_the_version_of_the_distribution():
    from importlib.metadata import version

    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    assert chart["version"] == chart["appVersion"] == version("oprack-serve")


@needs_helm
def test_helm_renders_what_was_recorded():
    found = helm()
    assert found.returncode == 0, found.stderr
    assert found.stdout == (DATA / "helm_chart.yaml").read_text("utf-8")


@needs_helm
def test_values_reach_the_command_and_the_autoscaler():
    options = ("autoscaling.enabled=true", "allowPipelines=true", "models.path=ocr", "grace=7", "workers=4")
    found = helm(
        *(word for option in options for word in ("--set", option)), "--set-string", "extraArgs={--max-batch,16}"
    )
    assert found.returncode == 0, found.stderr
    rendered = documents(found.stdout)
    check(rendered)
    args = arguments(rendered["Deployment"])
    assert (args.allow_pipelines, args.workers, args.max_batch, args.grace) == (True, 4, 16, 7.0)
    assert "replicas" not in rendered["Deployment"]["spec"]
    assert rendered["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]["name"] == "lac"


def test_the_runtime_of_a_cluster_is_that_of_a_namespace():
    runtime, _ = yaml.safe_load_all((DEPLOY / "kserve.yaml").read_text("utf-8"))
    cluster = yaml.safe_load((DEPLOY / "kserve-cluster.yaml").read_text("utf-8"))
    assert cluster.pop("kind") == "ClusterServingRuntime" and runtime.pop("kind") == "ServingRuntime"
    assert cluster == runtime
