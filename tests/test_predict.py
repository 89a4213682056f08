"""weir fit and weir predict: bad rows told and the others answered, refusals with words, the same seed the same bytes, and a predicted accelerator that runs and serves."""
import csv
import json
import math
import random
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

import pytest

from conftest import MEASURED, PROGRAM, ROOT

SPEC = """
predict: made
rows: made.csv
id: row_id
hardware: {file: hardware.csv, key: gpu}
networks: {file: networks.csv, key: network}
target: {column: items_per_s, kind: rate, per: gpu_count}
devices: gpu_count
batch: batch
of: item
derive: {work: 2 * fwd_gflops_per_unit}
terms: {compute: work / tflops, memory: activations_m_per_unit / bandwidth, step: 1 / batch}
physics_by: [network]
ranges: [batch]
numbers:
  hardware: [tflops, bandwidth]
  network: [fwd_gflops_per_unit, activations_m_per_unit]
  run: [batch, gpu_count]
categories:
  network: [network]
  run: [precision]
"""
GPUS = {"alpha-10": (10, 300), "alpha-20": (20, 400), "beta-30": (30, 900), "beta-60": (60, 700), "gamma": (15, 600), "delta": (45, 500), "novum-80GB": (120, 2000)}
NETWORKS = {"small": (2, 50), "middle": (8, 90), "large": (40, 300), "wide": (10, 400)}


def step_ms(gpu, network, batch, devices=1):
    """The law of the made set: of a step on each device."""
    (tflops, bandwidth), (gflops, moved) = GPUS[gpu], NETWORKS[network]
    return (2 * gflops / tflops / 0.45 + moved / bandwidth / 0.7 + 5 / batch) * (1 + 0.03 * (devices - 1)) * batch


def lines_of_rows():
    chance, lines = random.Random(5), ["row_id,gpu,network,batch,gpu_count,precision,items_per_s"]
    for gpu in list(GPUS)[:6]:
        for network in NETWORKS:
            for batch in (8, 32, 64):
                for devices in (1, 2, 4):
                    rate = 1000 * devices * batch / step_ms(gpu, network, batch, devices) * math.exp(chance.gauss(0, 0.02))
                    lines.append(f"r{len(lines)},{gpu},{network},{batch},{devices},fp32,{rate:.6g}")
    return lines


def write_set(folder, lines=None):
    (folder / "made.yaml").write_text(SPEC)
    (folder / "made.csv").write_text("\n".join(lines or lines_of_rows()) + "\n")
    (folder / "hardware.csv").write_text("gpu,tflops,bandwidth\n" + "".join(f"{gpu},{a},{b}\n" for gpu, (a, b) in GPUS.items()))
    (folder / "networks.csv").write_text("network,fwd_gflops_per_unit,activations_m_per_unit\n" + "".join(f"{n},{a},{b}\n" for n, (a, b) in NETWORKS.items()))
    return folder / "made.yaml"


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return {row["row_id"]: row for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("predict")
    write_set(folder)
    return folder


@pytest.fixture(scope="module")
def physical(weir, folder):
    """A predictor that is fitted in no time."""
    weir.run("fit", folder / "made.yaml", "--data-dir", folder, "-o", folder / "physical.json", "--estimator", "physical")
    return folder / "physical.json"


@pytest.fixture(scope="module")
def auto(weir, folder):
    result = weir.json("fit", folder / "made.yaml", "--data-dir", folder, "-o", folder / "auto.json", "--html", folder / "auto.html")
    return folder / "auto.json", result


def test_fits_and_says_how_well(auto):
    _, result = auto
    assert result["fitted"] == 216 and result["rows"] == 216
    splits = {split["split"]: split for split in result["splits"]}
    assert splits.keys() == {"inside", "count", "hardware", "network"}
    assert splits["inside"]["log_mean_percent"] < 8 and splits["inside"]["mean_percent"] < 8
    names = {candidate["candidate"] for candidate in splits["inside"]["candidates"]}
    assert names == {"neighbours", "physical", "lr-sfs"}
    assert len(splits["hardware"]["by_hardware"]) == 6
    assert [point["fitted"] for point in result["learning_curve"]] == [40, 81, 162]


def test_the_page_is_one_file_that_needs_nothing_else(auto, folder):
    page = (folder / "auto.html").read_text()
    for words in ("Predicted against measured", "What more rows would bring", "Error by hardware", "neighbours", "alpha-10"):
        assert words in page
    assert not re.search(r"<script|<link|\bsrc=|url\(|@import", page)


def test_a_predictor_shows_its_models(weir, auto):
    path, fitted = auto
    shown = weir.json("predict", path, "--explain")
    assert shown == {"name": "made", "models": fitted["models"]} and "inside: log(time) is " in shown["models"] and "  time_ms = " in shown["models"]
    assert weir.run("predict", path, "--explain").stdout.decode() == shown["models"]


def test_the_same_seed_gives_the_same_bytes(weir, tmp_path):
    """Two splits of half the rows: the bytes do not depend on how much is fitted."""
    spec = write_set(tmp_path, lines_of_rows()[:109])
    spec.write_text(SPEC + "splits: [inside, hardware]\n")
    for name, threads in (("one", 1), ("two", 2)):
        weir.run("fit", spec, "--data-dir", tmp_path, "-o", tmp_path / f"{name}.json", "--threads", threads)
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()


def test_bad_rows_are_told_and_the_others_answered(weir, folder, auto):
    (folder / "rows.csv").write_text("row_id,gpu,network,batch,gpu_count,precision,remark\n"
                                     "good,alpha-10,small,8,1,fp32,x\nnogpu,omega,small,8,1,fp32,x\nempty,alpha-10,small,,1,fp32,x\n"
                                     "new,novum-80GB,large,32,1,fp32,x\nfar,alpha-10,small,64,32,fp32,x\n")
    result = weir.json("predict", auto[0], "--in", folder / "rows.csv", "--out", folder / "scored.csv")
    assert (result["inside"], result["outside"], result["refused"]) == (1, 2, 2)
    scored = read(folder / "scored.csv")
    assert list(scored) == ["good", "nogpu", "empty", "new", "far"]
    assert abs(float(scored["good"]["prediction"]) * step_ms("alpha-10", "small", 8) / 8000 - 1) < 0.08
    assert float(scored["good"]["low"]) < float(scored["good"]["prediction"]) < float(scored["good"]["high"])
    assert scored["nogpu"]["regime"] == "refused" and scored["nogpu"]["prediction"] == "" and "hardware.csv" in scored["nogpu"]["outside"]
    assert scored["empty"]["regime"] == "refused" and "1 / batch" in scored["empty"]["outside"]
    assert scored["new"]["regime"] == "outside" and "novum-80GB was never measured" in scored["new"]["outside"]
    assert "gpu_count 32 is above 4" in scored["far"]["outside"]


def test_findings_name_the_rows(weir, tmp_path):
    lines = lines_of_rows()
    fields = lines[50].split(",")
    fields[-1] = str(float(fields[-1]) * 1000)
    lines[50] = ",".join(fields)
    lines += [lines[7].replace("r7,", "copy,"), "nan,alpha-10,small,8,1,fp32,nan", "inf,alpha-10,small,8,inf,fp32,3", "omega,omega,small,8,1,fp32,3"]
    result = weir.json("fit", write_set(tmp_path, lines), "--data-dir", tmp_path, "--check")
    found = {row: finding["fault"] for finding in result["findings"] for row in finding["rows"]}
    assert found == {"r50": "unit", "copy": "duplicate", "nan": "not_a_number", "inf": "not_a_number", "omega": "unusable"}
    assert result["usable"] == 215 and result["left_out"] == 2
    for what in (["--check"], ["-o", tmp_path / "p.json", "--estimator", "physical"]):
        assert b"weir: --json FILE lists every finding with its rows\n" in weir.run("fit", tmp_path / "made.yaml", "--data-dir", tmp_path, *what).stderr


def test_words_of_files_do_nothing_to_a_terminal(weir, tmp_path):
    """An escape from the SPEC, U+009B from a row, and what is only unusual."""
    lines = lines_of_rows() + ["\u009b2J 写真\\\t,omega,small,8,1,fp32,3"]
    spec = write_set(tmp_path, lines)
    spec.write_text(SPEC.replace("predict: made", 'predict: "ma\\e]0;de"'), encoding="utf-8")
    text = weir.run("fit", spec, "--data-dir", tmp_path, "--check").stdout.decode()
    assert "ma\\x1B]0;de: 217 rows" in text and "\\xC2\\x9B2J 写真\\\t: " in text
    assert not set(text) & {"\x1b", "\u009b"}


def test_no_findings_are_not_told_of(weir, folder):
    assert b"finding" not in weir.run("fit", folder / "made.yaml", "--data-dir", folder, "--check").stderr


def test_several_sets_in_one_call(weir, folder, tmp_path):
    other = tmp_path / "other.yaml"
    other.write_text(SPEC.replace("predict: made", "predict: other"))
    broken = tmp_path / "broken.yaml"
    broken.write_text("predict: broken\n")
    common = ["--data-dir", folder, "--estimator", "physical"]
    result = weir.json("fit", folder / "made.yaml", other, *common, "-o", tmp_path / "out", "--html", tmp_path / "pages")
    assert [fit["name"] for fit in result["fits"]] == ["made", "other"]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"made.json", "other.json"}
    assert {path.name for path in (tmp_path / "pages").iterdir()} == {"made.html", "other.html"}
    done = weir.run("fit", folder / "made.yaml", broken, *common, "-o", tmp_path / "more", status=2)
    assert (tmp_path / "more/made.json").exists() and b"broken.yaml: line 1: SPEC: the key rows is missing" in done.stderr
    assert b"made " in done.stdout and b"median error / exp(mean |log ratio|) - 1" in done.stdout
    assert done.stdout.decode().endswith(f"\nweir predict {tmp_path}/more/NAME.json --explain shows the models\n")
    done = weir.run("fit", folder / "made.yaml", *common, "-o", tmp_path / "a b.json")
    assert done.stdout.decode().endswith(f"\nweir predict '{tmp_path}/a b.json' --explain shows the models\n")


@pytest.mark.parametrize("arguments, words", [
    (["--explain", "--in", "rows.csv"], "--explain prints the models"),
    (["--explain", "--calibrate", "rows.csv"], "--explain prints the models"),
    (["--explain", "--gpu", "gamma"], "--explain prints the models"),
    (["--in", "rows.csv"], "--in wants --out"),
    (["--gpu", "gamma", "--out", "x.csv"], "--out is for the answers to the rows of --in"),
    (["--in", "rows.csv", "--out", "x.csv", "--gpu", "gamma"], "leave them out"),
    (["--in", "rows.csv", "--out", "x.csv", "--items", "5"], "leave them out"),
    (["--gpu", "gamma", "--batch", "8", "--network", "small", "--epochs", "2"], "say --items"),
    (["--gpu", "gamma", "--batch", "8", "--network", "small", "--price-per-hour", "2"], "say --items"),
    (["--gpu", "gamma", "--batch", "8", "--network", "small", "--items", "9", "--price-per-hour", "1", "2"], "one price"),
    (["--gpu", "gamma", "--batch", "8", "--network", "small", "--items", "9", "--price-per-hour", "dear"], "not a number"),
    (["--gpu", "gamma", "--network", "small"], "say --batch"),
    (["--gpu", "gamma", "--batch", "8"], "say --network"),
    (["--network", "small", "--batch", "8"], "say --gpu"),
    (["--gpu", "alpha", "--network", "small", "--batch", "8"], "may be alpha-10, alpha-20"),
    (["--gpu", "gamma", "--network", "small", "--batch", "8", "--set", "precison=fp32"], "no column \"precison\""),
    (["--gpu", "gamma", "--network", "small", "--batch", "8", "--set", "batch=9"], "say the same"),
    (["--gpu", "gamma", "--network", "small", "--batch", "0"], "at least 1"),
    (["--gpu", "gamma", "--network", "small", "--as-engine", "--devices", "2"], "one device: gpu_count is 2"),
    (["--gpu", "gamma", "--network", "small", "--as-engine", "--set", "gpu_count=4"], "one device: gpu_count is 4"),
    (["--gpu", "gamma", "--network", "small", "--as-engine", "--items", "2"], "leave out --items"),
    (["--gpu", "gamma", "--network", "small", "--as-engine", "--batch", "1"], "two different --batch"),
    (["--gpu", "gamma", "", "--network", "small", "--batch", "8"], "--gpu: \"\" says nothing"),
    (["--gpu", "gamma", "--network", "small", "--batch", "8", "--items", "0"], "--items: Value 0 not in range 1 to "),
    (["--gpu", "gamma", "--network", "small", "--batch", "8", "--devices", "1.5"], "\"1.5\" is not a whole number"),
    (["--gpu", "gamma", "--network", "small", "--batch", "8", "--items", "99999999999999999999"], "beyond what a whole number can be"),
])
def test_what_says_nothing_is_refused_with_words(weir, folder, physical, arguments, words):
    (folder / "rows.csv").write_text("row_id,gpu,network,batch,gpu_count\na,gamma,small,8,1\n")
    done = weir.run("predict", physical, *arguments, status=2, cwd=folder)
    assert words in done.stderr.decode(), done.stderr.decode()


@pytest.mark.parametrize("flag", ["--network", "--in", "--out", "--calibrate", "--json"])
def test_an_empty_text_is_refused(weir, flag):
    done = weir.run("predict", "p.json", "--gpu", "gamma", "--batch", 8, flag, "", status=2)
    assert f'{flag}: "" says nothing: give it a value, or leave it out' in done.stderr.decode()


def test_fit_refuses_what_would_be_lost(weir, folder):
    spec = folder / "made.yaml"
    for arguments, words in [([spec], "-o FILE, or -o FOLDER"), ([spec, spec, "-o", "b"], "called made"),
                             ([spec, folder / "x.yaml", "-o", spec], "is a file, and the predictors of 2 SPECs"), ([spec, "--check", "-o", "a"], "--check fits nothing")]:
        assert words in weir.run("fit", *arguments, "--data-dir", folder, status=2).stderr.decode()


def test_a_table_over_hardware_and_batches_with_prices(weir, physical):
    asked = ["--gpu", "novum", "gamma", "--network", "large", "--batch", 8, 64, "--set", "precision=fp32"]
    done = weir.run("predict", physical, *asked, "--items", 1_000_000, "--epochs", 3, "--price-per-hour", 4, 1)
    lines = done.stdout.decode().splitlines()
    assert lines[0].split()[:8] == ["hardware", "regime", "batch", "items_per_s", "low", "high", "hours", "cost"]
    assert [line.split()[0] for line in lines[1:]] == ["novum-80GB", "novum-80GB", "gamma", "gamma"]
    answers = weir.json("predict", physical, *asked, "--items", 1_000_000, "--epochs", 3, "--price-per-hour", 4, 1)["answers"]
    for answer, price in zip(answers, (4, 4, 1, 1)):
        row, job = answer["row"], answer["job"]
        hours = 3 * math.ceil(1e6 / int(row["batch"])) * step_ms(row["gpu"], "large", int(row["batch"])) / 3.6e6
        assert abs(job["hours"] / hours - 1) < 0.25 and job["low_hours"] < job["hours"] < job["high_hours"]
        for cost, hours in (("cost", "hours"), ("low_cost", "low_hours"), ("high_cost", "high_hours")):
            assert abs(job[cost] / (price * job[hours]) - 1) < 1e-9
    one = weir.run("predict", physical, "--gpu", "gamma", *asked[3:5], "--batch", 8, "--items", 1_000_000, "--price-per-hour", 2).stdout.decode()
    assert re.search(r"the whole job: [0-9.,]+ h \([0-9.,]+ to [0-9.,]+\), cost [0-9.,]+ \([0-9.,]+ to [0-9.,]+\)\n", one), one


def test_refused_answers_are_told_by_the_exit_status(weir, physical):
    asked = ["predict", physical, "--network", "small", "--batch", 8, "--items", 9, "--gpu"]
    assert b"nosuch: refused: " in weir.run(*asked, "nosuch", status=2).stdout
    answer, = weir.json(*asked, "nosuch", status=2)["answers"]
    assert answer["regime"] == "refused" and "hardware.csv" in answer["outside"] and "job" not in answer
    assert len(weir.json(*asked, "nosuch", "nothing", status=2)["answers"]) == 2
    assert {answer["regime"] for answer in weir.json(*asked, "nosuch", "gamma")["answers"]} == {"refused", "inside"}


def test_says_what_it_took_as_unknown(weir, physical):
    done = weir.run("predict", physical, "--gpu", "gamma", "--network", "small", "--batch", 8)
    assert b"unknown (give them with --set): precision" in done.stderr
    assert b"unknown" not in weir.run("predict", physical, "--gpu", "gamma", "--network", "small", "--batch", 8, "--set", "precision=fp32").stderr


def test_a_few_runs_on_the_target(weir, folder, physical):
    (folder / "runs.csv").write_text("row_id,gpu,network,batch,gpu_count,items_per_s\n" + "".join(
        f"{network},novum-80GB,{network},32,1,{1000 * 32 / step_ms('novum-80GB', network, 32) / 1.5}\n" for network in NETWORKS))
    done = weir.run("predict", physical, "--gpu", "novum", "--network", "small", "--batch", 8, "--calibrate", folder / "runs.csv")
    assert re.search(rb"calibrate: novum-80GB: 4 runs took .* times the prediction", done.stderr)


def test_the_features_of_an_onnx_file(weir, made, physical):
    model = made[0] / "1/model.onnx"
    facts = weir.json("model", "show", model)
    answer = weir.json("predict", physical, "--gpu", "gamma", "--network", model, "--batch", 8)["answers"][0]
    assert abs(float(answer["row"]["fwd_gflops_per_unit"]) / (2e-9 * facts["multiply_adds_per_item"]) - 1) < 1e-9
    assert answer["regime"] == "outside" and "never measured" in answer["outside"]


@pytest.fixture(scope="module")
def knows_tiny(weir, made, tmp_path_factory):
    """A predictor whose network "middle" has the facts of the made model, to 1 %; beside it that model, in a folder of the same name and in another."""
    folder = tmp_path_factory.mktemp("knows")
    facts = weir.json("model", "show", made[0])
    known = (1.01e-6 * facts["parameters"], 2e-9 * facts["multiply_adds_per_item"], 0.99e-6 * facts["activations_per_item"], facts["depth"])
    spec = write_set(folder)
    lines = ["network,params_m,fwd_gflops_per_unit,activations_m_per_unit,depth"]
    lines += [",".join(map(str, (name, *(known if name == "middle" else (1, *NETWORKS[name], 3))))) for name in NETWORKS]
    (folder / "networks.csv").write_text("\n".join(lines) + "\n")
    weir.run("fit", spec, "--data-dir", folder, "-o", folder / "p.json", "--estimator", "physical")
    (folder / "networks.csv").write_text("\n".join([*lines, lines[2].replace("middle", "twin")]) + "\n")
    weir.run("fit", spec, "--data-dir", folder, "-o", folder / "twins.json", "--estimator", "physical")
    for name in ("middle", "tiny"):
        shutil.copytree(made[0] / "1", folder / name / "1")
    return folder


def test_a_model_that_the_table_knows_is_asked_by_its_name(weir, made, knows_tiny):
    asked = ["predict", "p.json", "--gpu", "gamma", "--batch", 8, "--network"]
    by_name = weir.json(*asked, "middle", cwd=knows_tiny)
    assert "fwd_gflops_per_unit" not in by_name["answers"][0]["row"]  # the table's, not the folder's
    for model in (made[0], made[0] / "1/model.onnx", "./middle", "tiny"):
        done = weir.run(*asked, model, "--json", "-", cwd=knows_tiny)
        assert f"{model} has the facts of middle: asked as middle" in done.stderr.decode()
        assert json.loads(done.stdout) == by_name
    asked[1] = "twins.json"
    assert b"tiny has the facts of middle and twin: asked as middle, --network NAME" in weir.run(*asked, "tiny", cwd=knows_tiny).stderr


def test_the_features_of_resnet50_are_those_of_the_table(weir, shared, physical):
    """The table's row is of publications; the file's batch normalisation is folded away."""
    with open(ROOT / "data/networks.csv", newline="", encoding="utf-8") as file:
        published = next(row for row in csv.DictReader(file) if row["network"] == "resnet50")
    model = shared / "data/models/resnet50_pq.onnx"
    row = weir.json("predict", physical, "--gpu", "gamma", "--network", model, "--batch", 8)["answers"][0]["row"]
    for fact in ("params_m", "fwd_gflops_per_unit", "activations_m_per_unit"):
        assert abs(float(row[fact]) / float(published[fact]) - 1) < 0.01, fact
    assert row["depth"] == published["depth"] and row["blocks"] == published["blocks"]


@pytest.mark.timing
def test_as_engine_runs(weir, made, physical):
    """The engine that is printed is an engine of weir run, and as slow as the law says."""
    model, pictures = made
    asked = ["predict", physical, "--gpu", "beta-30", "--network", "wide", "--as-engine", "--batch", 8, 32, 64]
    engine = weir.run(*asked).stdout.decode().strip()
    assert re.fullmatch(r"emulated:base=[0-9.]+ms,per_item=[0-9.]+ms,batch=64", engine)
    assert weir.json(*asked)["engines"][0]["batches_outside"] == 0
    ran = weir.json("run", model, pictures, "--engine", engine, "--batch", 8, "--mode", "sync", "--no-files")
    each = ran["stages_ms"]["infer"] / ran["images"]  # every picture of a batch waits for the whole of it
    assert abs(each / step_ms("beta-30", "wide", 8) - 1) < 0.2


def test_named_cards_give_emulated_trainers_their_step(weir, physical, tmp_path):
    engine = weir.json("predict", physical, "--gpu", "beta-30", "--network", "wide", "--as-engine", "--batch", 4, 8)["engines"][0]
    step = engine["base_ms"] + 8 * engine["per_item_ms"]
    probe = ["probe", "storage", tmp_path, "--source", "memory", "--samples", 60, "--sample-bytes", 2000, "--steps", 4, "--repeats", 1, "--threads", 2]
    named = ["--accelerators", "2xbeta-30", "--network", "wide", "--batch", 8]
    done = weir.run(*probe, *named, "--predictor", physical, "--json", tmp_path / "result.json", status=None)
    assert f"a step of 8 samples takes {step:.4g} ms on beta-30" in done.stderr.decode()
    assert json.loads((tmp_path / "result.json").read_text())["step_ms"] == pytest.approx(step, rel=1e-3)
    for flags, words in ((named, "--network names what --predictor"), (["--accelerators", "2", "--network", "wide"], "without a card"),
                         (["--accelerators", "2xnovum9", "--network", "wide", "--batch", 8, "--predictor", physical], "novum9"),
                         (["--accelerators", "2xbeta-30", "--network", "wide", "--predictor", physical], "--predictor wants --batch"),
                         ([*named, "--predictor", physical, "--step-ms", 3], "leave --profile-from and --step-ms out")):
        assert words in weir.run(*probe, *flags, status=2).stderr.decode()


def test_as_engine_says_what_is_outside(weir, physical):
    done = weir.run("predict", physical, "--gpu", "novum", "gamma", "--network", "wide", "--as-engine")
    lines = done.stdout.decode().splitlines()
    assert [line.split(": ")[0] for line in lines] == ["novum-80GB", "gamma"]
    assert re.search(rb"novum-80GB: 7 of 7 batches are outside the data: .*gpu novum-80GB was never measured", done.stderr)
    assert b"gamma: 3 of 7 batches are outside the data: batch 1 is 8 times beyond 8 to 64" in done.stderr


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_as_engine_serves(weir, physical, tmp_path):
    """A model folder without a file, whose accelerator is the predicted one."""
    engine = weir.run("predict", physical, "--gpu", "beta-30", "--network", "wide", "--as-engine", "--batch", 8, 32, 64).stdout.decode().strip()
    (tmp_path / "ghost").mkdir()
    (tmp_path / "ghost/config.pbtxt").write_text(
        'name: "ghost"\nbackend: "emulated"\nmax_batch_size: 64\ninput { name: "x" data_type: TYPE_FP32 dims: [ 4 ] }\n'
        'output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }\nparameters { key: "engine" value: { string_value: "%s" } }\n' % engine)
    port = free_port()
    server = subprocess.Popen([PROGRAM, "serve", "--model-repository", tmp_path, "--http-port", str(port), "--grpc-port", str(free_port()), "--metrics-port", str(free_port())],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        until = time.monotonic() + 30
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready", timeout=1)
                break
            except OSError:
                assert server.poll() is None and time.monotonic() < until, server.stderr.read()
                time.sleep(0.05)
        request = {"inputs": [{"name": "x", "shape": [8, 4], "datatype": "FP32", "data": [0.5] * 32}]}
        begin = time.monotonic()
        with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/v2/models/ghost/infer", json.dumps(request).encode(),
                                                           {"Content-Type": "application/json"})) as answer:
            assert json.load(answer)["outputs"][0]["shape"] == [8, 4]
        assert time.monotonic() - begin >= 0.8 * step_ms("beta-30", "wide", 8) / 1000
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=30)


HEAD = "row_id,gpu,network,batch,gpu_count,precision,items_per_s\n"


BAD = [
    ("ragged", HEAD + "a,gamma,small,8,1,fp32,5\nb,gamma,small\n", "line 3, column 1: 3 fields where the header has 7"),
    ("more", HEAD + "a,gamma,small,8,1,fp32,5,6\n", "line 2, column 26: more fields than the 7"),
    ("open quote", HEAD + 'a,"gamma,small,8,1,fp32,5\n', "line 2, column 3: the quote that opens here is not closed"),
    ("quote inside", HEAD + 'a,gam"ma,small,8,1,fp32,5\n', "line 2, column 6: a quote inside"),
    ("after a quote", HEAD + 'a,"gamma"x,small,8,1,fp32,5\n', "line 2, column 10: text after a closing quote"),
    ("binary", b"\x7fELF\x02\x01\x01\x00\x00" * 40, "line 1, column 1: a control character"),
    ("not UTF-8", HEAD.encode() + b"a,g\xffmma,small,8,1,fp32,5\n", "line 2, column 4: a byte (0xff) that is not UTF-8"),
    ("CR alone", (HEAD + "a,gamma,small,8,1,fp32,5\n").replace("\n", "\r"), "line 1, column 57: a control character"),
    ("empty", "", "line 1, column 1: the table is empty"),
    ("twice", "row_id,gpu,gpu\n", "field 3 of the header \"gpu\" is there twice"),
    ("a million columns", ",".join(f"c{i}" for i in range(1_000_000)) + "\n", "more fields than the 10000 that a table may have"),
]


@pytest.mark.parametrize("name, text, where", BAD, ids=[bad[0] for bad in BAD])
def test_a_bad_csv_is_refused_with_line_and_column(weir, physical, tmp_path, name, text, where):
    path = tmp_path / "bad.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    done = weir.run("predict", physical, "--in", path, "--out", tmp_path / "out.csv", status=2)
    said = done.stderr.decode()
    assert f"bad.csv: line {1 if name in ('twice', 'a million columns') else ''}" in said and where in said, said
    assert not (tmp_path / "out.csv").exists()


def test_a_csv_of_another_system_is_read(weir, physical, tmp_path):
    text = HEAD + 'a,"gamma",small,8,1,fp32,5\n"b, quoted ""so""",gamma,small,8,1,fp32,5\n'
    (tmp_path / "plain.csv").write_text(text)
    (tmp_path / "other.csv").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode() + b"\r\n\r\n")
    for name in ("plain", "other"):
        weir.run("predict", physical, "--in", tmp_path / f"{name}.csv", "--out", tmp_path / f"{name}.out")
    assert (tmp_path / "plain.out").read_bytes() == (tmp_path / "other.out").read_bytes()
    assert list(read(tmp_path / "plain.out")) == ["a", 'b, quoted "so"']


def test_numbers_beyond_all_measure_are_answered_or_refused(weir, physical, tmp_path):
    rows = "".join(f"{batch},gamma,small,{batch},1,fp32,5\n" for batch in ("1e308", "1e-308", "1e999", "-8", "0", "0x8", "1" * 400, "nan"))
    (tmp_path / "huge.csv").write_text(HEAD + rows)
    result = weir.json("predict", physical, "--in", tmp_path / "huge.csv", "--out", tmp_path / "out.csv")
    scored = read(tmp_path / "out.csv")
    assert len(scored) == 8 and result["refused"] >= 6
    for row in scored.values():
        assert (row["prediction"] == "") == (row["regime"] == "refused")
        assert row["prediction"] == "" or math.isfinite(float(row["prediction"]))


@pytest.mark.parametrize("arguments, one, other", [
    (["--in", "rows.csv", "--out", "rows.csv"], "--in", "--out"),
    (["--in", "rows.csv", "--out", "link.csv"], "--in", "--out"),
    (["--in", "rows.csv", "--out", "p.json"], "PREDICTOR", "--out"),
    (["--in", "rows.csv", "--out", "new", "--json", "./new"], "--out", "--json"),
    (["--in", "rows.csv", "--out", "new", "--json", "folder/../rows.csv"], "--in", "--json"),
    (["--in", "rows.csv", "--out", "runs.csv", "--calibrate", "runs.csv"], "--calibrate", "--out"),
    (["--gpu", "gamma", "--json", "p.json"], "PREDICTOR", "--json"),
    (["--gpu", "gamma", "--network", "net.onnx", "--json", "net.onnx"], "--network", "--json"),
])
def test_predict_writes_over_none_of_its_files(weir, tmp_path, arguments, one, other):
    (tmp_path / "folder").mkdir()
    for name in ("rows.csv", "runs.csv", "p.json", "net.onnx"):
        (tmp_path / name).write_text(name)
    (tmp_path / "link.csv").symlink_to("rows.csv")
    done = weir.run("predict", "p.json", *arguments, status=2, cwd=tmp_path)
    assert f"{one} and {other} are one file" in done.stderr.decode() and f"name another for {other}" in done.stderr.decode()
    assert all((tmp_path / name).read_text() == name for name in ("rows.csv", "runs.csv", "p.json", "net.onnx"))
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("arguments, one, other", [
    (["made.yaml", "-o", "made.yaml"], "SPEC", "-o"),
    (["made.yaml", "-o", "data/made.csv"], "the rows of made.yaml", "-o"),
    (["made.yaml", "-o", "p.json", "--html", "data/hardware.csv"], "the hardware table of made.yaml", "--html"),
    (["made.yaml", "-o", "p.json", "--json", "data/../data/networks.csv"], "the network table of made.yaml", "--json"),
    (["made.yaml", "--check", "--json", "data/made.csv"], "the rows of made.yaml", "--json"),
    (["made.yaml", "-o", "p.json", "--html", "p.json"], "-o", "--html"),
    (["made.yaml", "other.yaml", "-o", "out", "--json", "out/other.json"], "--json", "-o"),
    (["made.yaml", "other.yaml", "-o", "out", "--html", "pages", "--json", "pages/made.html"], "--json", "--html"),
])
def test_fit_writes_over_none_of_its_files(weir, tmp_path, arguments, one, other):
    (tmp_path / "data").mkdir()
    spec = write_set(tmp_path / "data").rename(tmp_path / "made.yaml")
    (tmp_path / "other.yaml").write_text(spec.read_text())
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    done = weir.run("fit", *arguments, "--data-dir", "data", status=2, cwd=tmp_path)
    assert f"{one} and {other} are one file" in done.stderr.decode(), done.stderr.decode()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_what_keeps_nothing_may_be_named_twice(weir, folder, physical):
    (folder / "one.csv").write_text("row_id,gpu,network,batch,gpu_count\na,gamma,small,8,1\n")
    weir.run("predict", physical, "--in", folder / "one.csv", "--out", "/dev/null", "--json", "/dev/null")


STUDY = """
study: rows
model: {model}
data: {data}
factors: {{batch: [1, 2, 3, 4]}}
fixed: {{engine: "emulated:base=0.5ms,per_item=0.1ms", mode: sync, images: 20}}
repeats: 4
trial: {{images: 20}}
"""
OF_A_STUDY = """
predict: engine
rows: {rows}
id: id
skip: verdict == 'failed' or not (stages_ms.infer > 0)
target: {{column: stages_ms.infer, kind: time, per: measured_images}}
of: item
terms: {{each: 1, batch: batch}}
numbers: {{run: [batch]}}
categories: {{run: [engine]}}
"""


def test_the_rows_of_a_study_are_its_journal_or_its_results(weir, made, tmp_path):
    """The study fixes images, which is a metric, too. Of its journal the last line is torn, as after a kill."""
    (tmp_path / "study.yaml").write_text(STUDY.format(model=made[0], data=made[1]))
    weir.run("study", tmp_path / "study.yaml", "--no-replay", "-o", tmp_path / "out", status=MEASURED)
    with open(tmp_path / "out/journal.jsonl", "ab") as journal:
        journal.write(b'{"entry":"trial","id":"')
    (tmp_path / "rows.csv").write_text("id,batch,measured_images\nq,3,1\n")
    said = {}
    for rows in ("journal.jsonl", "results.csv"):
        spec = tmp_path / f"{rows}.yaml"
        spec.write_text(OF_A_STUDY.format(rows=rows))
        result = weir.json("fit", spec, "--data-dir", tmp_path / "out", "-o", tmp_path / f"{rows}.json", "--estimator", "physical")
        assert result["fitted"] >= 4 * (4 + 3) - result["left_out"] and result["unusable"] == 0
        weir.run("predict", tmp_path / f"{rows}.json", "--in", tmp_path / "rows.csv", "--out", tmp_path / "scored.csv")
        said[rows] = float(read(tmp_path / "scored.csv")["q"]["prediction"])
        assert abs(said[rows] / (0.5 + 3 * 0.1) - 1) < 0.1  # a picture waits for the whole of its batch
    assert said["journal.jsonl"] == pytest.approx(said["results.csv"], rel=1e-9)
    lines = (tmp_path / "out/journal.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "out/journal.jsonl").write_text("".join([*lines[:3], "{}\n", *lines[3:]]))
    error = weir.run("fit", tmp_path / "journal.jsonl.yaml", "--data-dir", tmp_path / "out", "--check", status=2).stderr.decode()
    assert f"{tmp_path}/out/journal.jsonl: line 4: not the line of a trial" in error
