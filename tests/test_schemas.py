"""Each verb's --json output is valid by its schema in docs/reference/schema."""
import json
import subprocess
import time

import conftest
import pytest

jsonschema = pytest.importorskip("jsonschema", reason="apt-get install python3-jsonschema")

FOLDER = conftest.ROOT / "docs/reference/schema"
SCHEMAS = {path.name: json.loads(path.read_text()) for path in FOLDER.glob("*.json")}


def check(value, name):
    schema = SCHEMAS[f"{name}.json"]
    resolver = jsonschema.RefResolver(f"{name}.json", schema, store=SCHEMAS)
    errors = sorted(jsonschema.Draft202012Validator(schema, resolver=resolver).iter_errors(value), key=lambda e: list(e.absolute_path))
    assert not errors, "\n".join(f"{'/'.join(map(str, e.absolute_path))}: {e.message[:300]}" for e in errors[:10])


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_schema_is_one(name):
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])


def test_a_key_that_no_schema_names_is_found():
    with pytest.raises(AssertionError, match="unknown"):
        check({"findings": [], "keeps_the_rules": True, "unknown": 1}, "load-validate")
    with pytest.raises(AssertionError, match="keeps_the_rules"):
        check({"findings": [], "keeps_the_rules": "yes"}, "load-validate")


def test_model(weir, made, tmp_path):
    check(weir.json("model", "make", "identity", "-o", tmp_path), "model-make")
    check(weir.json("model", "show", made[0]), "model-show")


def test_prepare(weir, made, tmp_path):
    result = weir.json("prepare", made[1], "-o", tmp_path / "set", "--format", "tar")
    check(result, "prepare")
    assert result["schema_version"] == 1
    check(weir.json("prepare", "--verify", tmp_path / "set"), "prepare-verify")


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_run(weir, made, mode):
    check(weir.json("run", made[0], made[1], "--engine", "emulated:base=0.1ms", "--mode", mode), "run")


def test_feed(weir, made):
    check(weir.json("feed", made[1], "--bench", "--epochs", 1, "--step", "1ms", "--hash", "--width", 32, "--height", 32), "feed")


def test_monitor(weir):
    check(json.loads(weir.run("monitor", "--json", "-", "--", "true").stdout), "monitor")


@pytest.mark.parametrize("phase", ["train", "etl", "infer", "stream", "mix", "all"])
def test_probe_storage(weir, tmp_path, phase):
    check(weir.json("probe", "storage", tmp_path, "--phase", phase, "--samples", 20, "--sample-bytes", 5000, "--step-ms", 1, "--steps", 25, "--repeats", 1, "--limit-s", 0.3, status=None), "probe-storage")


def test_probe_host(weir):
    check(weir.json("probe", "host", "--budget-ms", 10, "--threads", 1), "probe-host")


def test_doctor(weir):
    check(weir.json("doctor"), "doctor")


@pytest.mark.parametrize("more", [("--concurrency-range", "1:2:1"), ("--request-rate-range", 200)], ids=["closed", "open"])
def test_load(weir, made, tmp_path, more):
    out = tmp_path / "load.json"
    weir.run("load", made[0], "--engine", "emulated:base=0.1ms", *more, "--duration", 1, "--warmup", 0, "--json", out, status=None)
    check(json.loads(out.read_text()), "load")
    check(weir.json("load", "--validate", out, status=None), "load-validate")
    result = json.loads(out.read_text())
    for version, remedy in ((2, b"newer"), (0, b"make it again")):
        out.write_text(json.dumps(result | {"schema_version": version}))
        assert remedy in weir.run("load", "--validate", out, status=2).stderr


def test_watch(weir, made):
    check(weir.json("watch", "made:fps=20,frames=10,size=320x240,loss=0.2", "--classify", made[0], "--engine", "emulated:base=1ms", "--deadline", "1s"), "watch")


def test_serve(weir, made, tmp_path):
    ready = tmp_path / "ready.json"
    with subprocess.Popen([conftest.PROGRAM, "serve", "--model-repository", made[0].parent, "--http-port", "0", "--grpc-port", "0", "--metrics-port", "0", "--json", ready],
                          stderr=subprocess.DEVNULL) as process:
        try:
            until = time.monotonic() + 60
            while not ready.exists() and process.poll() is None and time.monotonic() < until:
                time.sleep(0.02)
            check(json.loads(ready.read_text()), "serve")
        finally:
            process.terminate()


def test_study(weir, made, tmp_path):
    file = tmp_path / "small.yaml"
    file.write_text(f"study: small\nmodel: {made[0]}\ndata: {made[1]}\nfactors: {{batch: [1, 4]}}\n"
                    "fixed: {engine: 'emulated:base=0.1ms', architecture: in-process}\nrepeats: 2\ntrial: {images: 60}\nseed: 1\n")
    check(weir.json("study", "--no-replay", file, "-o", tmp_path / "plan", "--dry-run", status=None), "study-plan")
    check(weir.json("study", "--no-replay", file, "-o", tmp_path / "small", status=None), "study")
    check(weir.json("report", tmp_path / "small"), "study")
    journal = tmp_path / "small/journal.jsonl"
    journal.write_text(journal.read_text().replace('"schema_version":1', '"schema_version":2', 1))
    assert b"schema version 2" in weir.run("report", tmp_path / "small", status=None).stderr


def test_identities(weir, tmp_path):
    folder, vectors = tmp_path / "people", tmp_path / "v.jsonl"
    vectors.write_text("".join(json.dumps({"name": f"n{i}", "embedding": [i + 1, 1, 2, 0.5 * i]}) + "\n" for i in range(5)))
    check(weir.json("identities", "build", folder, "--dimension", 4), "identities")
    check(weir.json("identities", "enrol", folder, vectors), "identities")
    check(weir.json("identities", "delete", folder, "n2"), "identities")
    check(weir.json("identities", "list", folder, "--with-names"), "identities")
    check(weir.json("identities", "search", folder, vectors, "--threshold", "0.5"), "identities")
    check(weir.json("identities", "evaluate", folder, "--mates", vectors, "--threshold", "0.5", "--exact"), "identities")
    check(weir.json("identities", "verify", folder), "identities")
    check(weir.json("identities", "export", folder, "-o", tmp_path / "out.jsonl"), "identities")
