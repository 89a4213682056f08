"""Every study that ships plays, and so does every level of every factor: one short trial of each, on an emulated engine where it can be.

What this machine cannot do (a container, a GPU, a program that is not installed) is skipped by weir, which names it; nothing may fail.
"""
import copy
import json
import os
import re
import shutil

import pytest
import yaml

from conftest import MEASURED, PROGRAM, ROOT
from test_study import journal

STUDIES = sorted((ROOT / "studies").glob("*.yaml"))
IMAGES = 40


@pytest.fixture(scope="session")
def place(weir, made, tmp_path_factory):
    """Models and pictures under the names that the shipped studies give them. A tiny network stands in for the large one."""
    folder = tmp_path_factory.mktemp("shipped")
    (folder / "made").mkdir()
    shutil.copytree(made[0], folder / "made/tiny")
    shutil.copytree(made[0], folder / "made/resnet50")
    (folder / "made/pictures").symlink_to(made[1])
    weir.run("model", "make", "identity", "-o", folder / "made")
    return folder


def lists(levels):
    return {factor: value if isinstance(value, list) else [value] for factor, value in levels.items()}


def first(levels):
    return {factor: values[0] for factor, values in lists(levels).items()}


def each_level(entry):
    """Combinations of the entry's levels in which each level is at least once."""
    base = first(entry)
    return [base] + [base | {factor: level} for factor, values in lists(entry).items() for level in values[1:]]


def shortened(study):
    """The same factors and levels, each level once, in trials of a moment."""
    short = copy.deepcopy(study)
    factors = lists(study.get("factors", {}))
    fixed = dict(study.get("fixed", {}))
    short.update(design="star", repeats=1, factors=factors, base=first(factors) | dict(study.get("base", {})), fixed=fixed)
    short["trial"] = {"seconds": 1} if "seconds" in study["trial"] else {"images": IMAGES}
    for levels in (short["base"], fixed):
        if "images" in levels:
            levels["images"] = IMAGES
    short["also"] = [combination for entry in study.get("also", []) for combination in each_level(entry)]
    servers = short.get("server")
    if isinstance(servers, list):  # the others are programs that this repository does not have
        short["server"] = servers[0]
        short["figures"] = []
    for empty in [key for key, value in short.items() if value in ([], {})]:
        del short[empty]
    return short


def play(weir, study, place, image, out):
    path = place / f"{out.parent.name}.yaml"
    path.write_text(yaml.safe_dump(study, sort_keys=False))
    flags = [] if image.missing else ["--image", image.name]
    done = weir.run("study", "--no-replay", path, "-o", out, *flags, status=None, cwd=place, timeout=600)
    assert (out / "journal.jsonl").exists(), done.stderr.decode()
    return [entry["record"] for entry in journal(out)]


def faults(records):
    return {json.dumps(record["factors"]): record["verdict"].get("message") for record in records if record["verdict"]["verdict"] == "failed"}


def names_what_is_missing(message):
    return re.search(r"no container of|a network |no NVIDIA|no GPU|CUDA|is not (here|there|on this machine|installed)|install|cannot", message or "")


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_a_shipped_study_plays(weir, place, container_image, tmp_path, path):
    study = shortened(yaml.safe_load(path.read_text()))
    records = play(weir, study, place, container_image, tmp_path / "out")
    assert not faults(records)
    for record in records:
        verdict = record["verdict"]
        assert verdict["verdict"] != "skipped" or names_what_is_missing(verdict["message"]), verdict
    said = {(factor, json.dumps(level)) for record in records for factor, level in record["factors"].items()}
    for factor, levels in lists(study.get("factors", {})).items():
        for level in levels:
            if not isinstance(level, dict):
                assert (factor, json.dumps(level)) in said, f"{factor}: {level} is in no trial"


EMULATED = {"engine": "emulated:base=0ms,per_item=0.1ms"}
IN_PROCESS = {"architecture": "in-process", **EMULATED, "in_flight": 2, "batch": 2}
SERVED = {"architecture": "distributed", "protocol": "grpc", **EMULATED, "in_flight": 2, "batch": 2}
CLOSED = SERVED | {"load": "closed"}
CUDA = {"architecture": "in-process", "engine": "onnxruntime", "device": "cuda:0", "in_flight": 2, "batch": 2}
REAL = {"architecture": "in-process", "engine": "openvino", "in_flight": 2, "batch": 2}


def own_server(place):
    """weir as a server that the study starts by its command: a microservice also where no container can be."""
    return {"name": "by-command", "command": [PROGRAM, "serve", "--model-repository", "{model_repository}", "--http-port", "{http_port}", "--grpc-port", "{grpc_port}",
                                              "--metrics-port", "{metrics_port}", "--http-address", "{address}", "--allow-client-shm"],
            "repository": str(place / "repository"), "ready": "http://{address}:{http_port}/v2/health/ready", "http": "http://{address}:{http_port}", "grpc": "grpc://{address}:{grpc_port}"}


# factor -> (levels beside those that are words, what applies with it)
LEVELS = {
    "architecture": ([], SERVED),
    "model": (["made/tiny", "made/resnet50"], IN_PROCESS),
    "server": (["weir"], SERVED),
    "protocol": ([], SERVED),
    "mode": ([], SERVED),
    "in_flight": ([1, 3], SERVED),
    "load": (["application", "closed", {"rate_per_s": 50}, {"rate_per_s": 50, "distribution": "constant"}, {"streams": 2, "fps": 10, "deadline_ms": 500}], SERVED),
    "batch": ([1, 3], SERVED),
    "data_path": ([], SERVED),
    "payload": ([], CLOSED),
    "images": ([20, 30], SERVED),
    "replication": ([1, 2], SERVED),
    "engine": (["emulated:base=0ms"], IN_PROCESS),
    "accelerator": (["emulated:base=0ms"], SERVED),
    "device": (["cpu", "cuda:0", "cuda:all", "gpu:0", "npu"], REAL),
    "gpus": ([1, 2], {**CUDA, "device": "cpu"}),
    "preprocess": ([], CUDA),
    "cuda_graph": ([], CUDA),
    "precision": ([], REAL),
    "threads": ([0, 1], REAL),
    "streams": ([0, 1], REAL),
    "instances": ([1, 2], {**SERVED, "engine": "openvino"}),
    "servers": ([1, 2], SERVED),
    "balancer": ([], SERVED | {"servers": 2}),
    "clients": ([1, 2], CLOSED),
    "server_batching": (["model", "off", {"max_batch": 4, "delay_us": 100}], SERVED),
    "decode_threads": ([0, 1], SERVED),
    "network": (["unshaped", 5, "variable", {"rate_gbit_per_s": 5, "delay_us": 100}], SERVED),
    "placement": (["shared", {"server": "0", "client": "0"}], SERVED),
    "beside": ([], CLOSED | {"payload": "image"}),
    "limits": (["none", {"serve": 1, "feed": 0.5, "prepare": 0.5}], CLOSED | {"payload": "image", "beside": "prepare+feed"}),
    "page_cache": ([], SERVED),
}


@pytest.fixture(scope="session")
def words(weir):
    """factor -> the words that the program's own table lists for it."""
    table = re.findall(r"^\| `(\w+)` \| ([^|]*) \|", weir.run("study", "--factors").stdout.decode(), re.MULTILINE)
    assert len(table) > 20
    return {factor: [word for word in re.findall(r"`([^`]*)`", levels) if not word.endswith("SETTINGS")] for factor, levels in table}


def test_every_factor_has_its_levels_here(words):
    assert set(words) == set(LEVELS), "a new factor needs its levels in LEVELS"


@pytest.mark.long
@pytest.mark.parametrize("factor", LEVELS)
def test_every_level_of_a_factor_plays(weir, place, words, container_image, tmp_path, factor):
    more, fixed = LEVELS[factor]
    levels = words[factor] + more
    fixed = {name: level for name, level in fixed.items() if name != factor and not (factor in ("gpus", "accelerator") and name in ("device", "engine"))}
    study = {"study": "levels", "data": "made/pictures", "model": "made/tiny", "factors": {factor: levels}, "fixed": fixed, "repeats": 1,
             "trial": {"seconds": 1} if "beside" in (factor, *fixed) else {"images": IMAGES}}
    if factor == "model":
        del study["model"]
    records = play(weir, study, place, container_image, tmp_path / "out")
    assert not faults(records)
    skipped = [record["verdict"]["message"] for record in records if record["verdict"]["verdict"] == "skipped"]
    assert all(names_what_is_missing(message) for message in skipped), skipped
    played = [record["factors"].get(factor) for record in records if record["verdict"]["verdict"] != "skipped"]
    assert played or skipped


def test_shared_memory_is_played_with_a_server_on_this_host(weir, place, container_image, tmp_path):
    (place / "repository").mkdir(exist_ok=True)
    study = {"study": "shared", "model": "made/tiny", "data": "made/pictures", "server": own_server(place), "factors": {"payload": ["tensor", "shared-memory"]},
             "fixed": {"architecture": "microservice", "protocol": "grpc", "load": "closed", "in_flight": 2, "batch": 2}, "repeats": 1, "trial": {"images": IMAGES}}
    records = play(weir, study, place, container_image, tmp_path / "out")
    assert not faults(records)
    assert {record["factors"]["payload"] for record in records if record["verdict"]["verdict"] not in ("failed", "skipped")} == {"tensor", "shared-memory"}
