"""weir run on made data: counts, modes, planted bottlenecks, interruption."""
import json
import os
import signal
import subprocess
import time

import conftest
import pytest


def test_a_made_network_is_right_about_fresh_pictures(weir, made):
    result = weir.json("run", *made)
    assert result["images"] == 200 and result["rejected"] == 0
    assert result["accuracy"]["top1"] >= 0.9


def test_stage_times_sum_to_their_total(weir, made):
    for mode in ("sync", "async"):
        stages = weir.json("run", *made, "--mode", mode)["stages_ms"]
        parts = sum(stages[key] for key in ("load_prepare", "wait", "send", "infer", "result_load", "print"))
        assert parts == pytest.approx(stages["total"], rel=1e-9)


def test_the_json_has_what_is_promised(weir, made):
    result = weir.json("run", *made)
    for key in ("images", "rejected", "skipped", "throughput_images_per_s", "wall_s", "precision", "stages_ms", "resources",
                "bound_images_per_s", "bottleneck", "accuracy"):
        assert key in result, key
    assert {"model_prepare", "load_prepare", "wait", "send", "infer", "result_load", "print"} <= set(result["stages_ms"])
    assert {"decode", "infer", "pipeline"} <= set(result["bound_images_per_s"])
    for key in ("server_cpu", "recogniser_cpu", "client_cpu", "app_cpu", "host_memory_bytes"):
        assert {"mean", "max", "min"} <= set(result["resources"][key]), key


def test_passes_over_the_data_add_up(weir, made):
    result = weir.json("run", *made, "--repeat-data", 3, "--no-files")
    assert result["images"] == 600


def test_a_raw_set_runs_as_its_pictures_do_and_fits_only_its_recipe(weir, made, tmp_path):
    model, pictures = made
    weir.run("prepare", pictures, "--recipe", model / "recipe.yaml", "--format", "raw", "-o", tmp_path / "raw")
    raw, files = (weir.json("run", model, data)["accuracy"]["top1"] for data in (tmp_path / "raw", pictures))
    assert raw == pytest.approx(files, abs=0.011)  # a near tie may fall otherwise in another batch
    other = tmp_path / "other.yaml"
    recipe = (model / "recipe.yaml").read_text().replace("labels.txt", str(model / "labels.txt"))
    other.write_text(recipe.replace("short_side: ", "short_side: 1"))
    done = weir.run("run", model, tmp_path / "raw", "--recipe", other, status=2)
    assert b"another geometry" in done.stderr
    facts = tmp_path / "raw/set.json"
    facts.write_text(facts.read_text().replace('"width": 64', '"width": 512'))
    weir.run("run", model, tmp_path / "raw", status=2)


@pytest.mark.parametrize("options,bottleneck", [
    (("--engine", "emulated:base=12ms,per_item=0ms", "--batch", "1", "--repeat-data", "1"), "infer"),
    (("--engine", "emulated:base=0ms,per_item=0ms", "--decode-threads", "1", "--repeat-data", "3"), "decode"),
    (("--engine", "emulated:base=12ms,per_item=0ms,streams=8", "--batch", "1", "--in-flight", "1"), "in_flight"),
], ids=["slow engine", "one decode thread", "depth 1"])
def test_a_planted_bottleneck_is_named(weir, made, options, bottleneck):
    result = weir.json("run", *made, *options)
    assert result["bottleneck"]["stage"] == bottleneck, result["bottleneck"]


def test_an_interrupted_run_keeps_what_is_done(made, tmp_path):
    answers = tmp_path / "answers.csv"
    child = subprocess.Popen([conftest.PROGRAM, "run", *map(str, made), "--engine", "emulated:base=20ms", "--batch", "1", "--repeat-data", "1000",
                              "--answers", str(answers), "--json", str(tmp_path / "r.json")], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    beside = tmp_path / f"answers.csv.{child.pid}.tmp"
    for _ in range(600):  # until some answers are written: the file is buffered in blocks
        if beside.exists() and beside.stat().st_size > 0:
            break
        time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    child.wait(timeout=60)
    assert child.returncode == 130
    result = json.loads((tmp_path / "r.json").read_text())
    assert result["interrupted"] and 0 < result["images"] < 200_000
    rows = answers.read_text().splitlines()
    assert sum(",ok,1," in row for row in rows) == result["images"]


@pytest.mark.parametrize("arguments", [
    ("run",), ("run", "nowhere.onnx", "."), ("frobnicate",), ("run", "--batch", "-3", "m.onnx", "d"), ("model",), ("model", "show", "nowhere.onnx"),
], ids=" ".join)
def test_wrong_usage_exits_2_and_says_why(weir, arguments):
    done = weir.run(*arguments, status=2)
    assert done.stderr


def test_every_verb_has_help_with_an_example(weir):
    for verb in (("run",), ("prepare",), ("model", "make"), ("model", "show"), ("monitor",), ("doctor",)):
        text = weir.run(*verb, "--help").stdout.decode()
        assert "Example:" in text and "weir " + verb[0] in text


def test_a_missing_engine_library_is_a_clear_error(weir, made, tmp_path):
    done = weir.run("run", *made, "--engine", "nosuch", status=2)
    assert b"nosuch" in done.stderr and b"onnxruntime" in done.stderr  # and the engines that there are
    broken = tmp_path / "libonnxruntime.so.1"
    broken.write_bytes(b"no library")
    done = weir.run("run", *made, "--engine", "onnxruntime", status=1, env={**os.environ, "WEIR_ENGINES": str(tmp_path)})
    assert str(tmp_path).encode() in done.stderr and b"onnxruntime" in done.stderr
