"""The manifests of deploy/: core kinds against Kubernetes' own schemas, custom resources against the fields their projects define, and all against the program's flags."""
import json
import pathlib
import re
import subprocess

import kubernetes_validate
import pytest
import yaml

import conftest

DEPLOY = conftest.ROOT / "deploy"
VERSION = "1.37"
CUSTOM = json.loads((pathlib.Path(__file__).parent / "custom_resources.json").read_text())
# Files that are no manifests: values of a Helm chart.
VALUES = {"adapter-values.yaml"}


def documents():
    for path in sorted(DEPLOY.rglob("*.yaml")):
        if path.name in VALUES:
            continue
        for number, document in enumerate(yaml.safe_load_all(path.read_text())):
            yield pytest.param(path, document, id=f"{path.relative_to(DEPLOY)}-{number}")


def kind_of(document):
    return f"{document['apiVersion']} {document['kind']}"


def paths_of(value, prefix=""):
    """The path of each value that is no list or object; those of lists without numbers."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from paths_of(inner, f"{prefix}.{key}" if prefix else key)
    elif isinstance(value, list) and value:
        for inner in value:
            yield from paths_of(inner, prefix)
    else:
        yield prefix


def is_known(path, fields):
    patterns = ("^" + re.escape(field).replace(r"\*\*", ".+").replace(r"\*", r"[^.]+(\.[^.]+)*") + "$" for field in fields)
    return any(re.match(pattern, path) for pattern in patterns)


@pytest.mark.parametrize("path,document", list(documents()))
def test_each_manifest_is_of_its_schema(path, document):
    kind = kind_of(document)
    if kind not in CUSTOM:
        kubernetes_validate.validate(document, VERSION, strict=True)
        return
    definition = CUSTOM[kind]
    body = {key: value for key, value in document.items() if key not in ("apiVersion", "kind", "metadata")}
    unknown = [field for field in paths_of(body) if not is_known(field, definition["fields"])]
    assert not unknown, f"{path}: {kind} has no {unknown}; see {definition['source']}"
    given = set(paths_of(body))
    for field in definition["required"]:
        assert any(one == field or one.startswith(field + ".") for one in given), f"{path}: {kind} wants {field}"


def test_a_wrong_field_is_found():
    job = yaml.safe_load((DEPLOY / "kubernetes/jobs/prepare.yaml").read_text())
    job["spec"]["backoffLimitPerIndexx"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, VERSION, strict=True)
    assert not is_known("spec.cohort", CUSTOM["kueue.x-k8s.io/v1beta2 ClusterQueue"]["fields"])


def pods():
    for parameter in documents():
        path, document = parameter.values
        template = document.get("spec", {}).get("template", {}).get("spec")
        if template is None and document["kind"] == "ClusterServingRuntime":
            template = {"containers": document["spec"]["containers"]}
        if template:
            yield pytest.param(path, document, template, id=parameter.id)


@pytest.mark.parametrize("path,document,pod", list(pods()))
def test_each_container_runs_as_an_ordinary_user_on_a_read_only_root(path, document, pod):
    outer = pod.get("securityContext", {})
    # Containers of custom resources are those of core/v1.
    kubernetes_validate.validate({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {**pod, "containers": pod["containers"]}}, VERSION, strict=True)
    for container in pod["containers"]:
        context = {**outer, **container.get("securityContext", {})}
        assert context["runAsNonRoot"] is True and context["runAsUser"] > 0
        assert context["readOnlyRootFilesystem"] is True and context["allowPrivilegeEscalation"] is False
        assert context["capabilities"]["drop"] == ["ALL"]
        assert container["resources"]["limits"]["memory"]


@pytest.mark.parametrize("path,document,pod", list(pods()))
def test_each_argument_is_a_flag_of_the_program(path, document, pod):
    for container in pod["containers"]:
        arguments = [str(a) for a in container["args"]]
        verb = "serve" if "command" not in container else arguments[0]
        if verb == "probe":
            arguments = arguments[1:]
            verb = f"probe {arguments[0]}"
        known = subprocess.run([conftest.PROGRAM, *verb.split(), "--help"], capture_output=True, text=True, check=False)
        if known.returncode != 0 and verb.startswith("probe"):
            pytest.skip("this program has no probe")
        for flag in (a for a in arguments if a.startswith("-")):
            assert re.search(rf"(^|[ ,]){re.escape(flag)}\b", known.stdout, re.M), f"{path}: weir {verb} has no {flag}"


def test_selectors_ports_and_names_fit_each_other():
    base = {d["kind"] + "/" + d["metadata"]["name"]: d for p in sorted((DEPLOY / "kubernetes/base").glob("*.yaml")) for d in yaml.safe_load_all(p.read_text()) if "metadata" in d}
    deployment = base["Deployment/weir"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    ports = {p["name"] for p in deployment["spec"]["template"]["spec"]["containers"][0]["ports"]}
    for name, document in base.items():
        spec = document.get("spec", {})
        if name.startswith("Service/"):
            assert spec["selector"].items() <= labels.items() and {p["targetPort"] for p in spec["ports"]} <= ports
        if name.startswith(("PodDisruptionBudget/", "Deployment/")):
            assert spec["selector"]["matchLabels"].items() <= labels.items()
        if name.startswith("HorizontalPodAutoscaler/"):
            assert spec["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
            rules = yaml.safe_load((DEPLOY / "kubernetes/prometheus/adapter-values.yaml").read_text())["rules"]["custom"]
            assert spec["metrics"][0]["pods"]["metric"]["name"] in [rule["name"]["as"] for rule in rules]
        if name.startswith("NetworkPolicy/"):
            assert {p["port"] for rule in spec["ingress"] for p in rule["ports"]} <= ports
    grace = deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    seconds = [int(arguments[arguments.index(flag) + 1]) for flag in ("--drain-delay-secs", "--exit-timeout-secs")]
    assert grace > sum(seconds)
    for path in DEPLOY.rglob("kustomization.yaml"):
        for resource in yaml.safe_load(path.read_text())["resources"]:
            assert (path.parent / resource).exists(), f"{path} names {resource}"


def test_an_indexed_job_names_its_count_twice_alike():
    job = yaml.safe_load((DEPLOY / "kubernetes/jobs/prepare.yaml").read_text())
    arguments = job["spec"]["template"]["spec"]["containers"][0]["args"]
    assert arguments[arguments.index("--part") + 1] == f"auto/{job['spec']['completions']}"
    assert job["spec"]["maxFailedIndexes"] <= job["spec"]["completions"]


def test_the_metrics_that_manifests_name_are_the_servers():
    known = (conftest.ROOT / "docs/reference/metrics.md").read_text()
    known = known.replace("nv_inference_{request,queue,compute_input,compute_infer,compute_output}_duration_us", "nv_inference_request_duration_us nv_inference_queue_duration_us")
    names = set()
    for path in [*DEPLOY.rglob("*.yaml"), *DEPLOY.rglob("*.json")]:
        names |= set(re.findall(r"\b(?:nv_inference|weir)_[a-z_]+\b", path.read_text()))
    names -= {"weir_queue_seconds"}  # defined by the adapter's rule
    for name in names:
        assert re.sub(r"_(bucket|sum|count)$", "", name) in known or name in known, f"{name} is no metric of the server"


@pytest.mark.parametrize("path", sorted(DEPLOY.rglob("*.slurm")), ids=lambda p: p.name)
def test_each_script_is_one_that_bash_reads(path):
    subprocess.run(["bash", "-n", path], check=True)
    assert subprocess.run(["bash", path], capture_output=True, check=False).returncode == 2


@pytest.mark.parametrize("path", sorted(DEPLOY.rglob("*.service")), ids=lambda p: p.name)
def test_each_unit_names_keys_of_systemd(path):
    section, keys = "", {}
    for line in path.read_text().splitlines():
        if line.startswith("["):
            section = line
        elif line and not line.startswith("#"):
            key, _, value = line.partition("=")
            keys.setdefault((section, key), value)
    assert keys[("[Service]", "ExecStart")].startswith("/usr/bin/weir ")
    assert keys[("[Service]", "NoNewPrivileges")] == "yes" and keys[("[Service]", "ProtectSystem")] == "strict"
