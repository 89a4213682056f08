"""What weir predict answers, refuses and warns of: memory, vendors, unknown networks, clusters, runs without ids, a study as a SPEC."""
import csv
import json
import math
import random

import pytest
from conftest import MEASURED

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
derive: {work: 2 * fwd_gflops_per_unit, hosts: 'nodes ?? 1', wire: 'if(hosts > 1, network_gbit_per_s / 8, 50)'}
optional: {nodes: gpu_count > 8, network_gbit_per_s: hosts > 1}
memory: {capacity: memory_gb, weights: params_m * 16 / 1000, activations: 8 * activations_m_per_unit * batch / 1000}
terms: {compute: work / tflops, memory: activations_m_per_unit / bandwidth, step: 1 / batch, link: 'if(gpu_count > 1, params_m / wire / batch, 0)'}
physics_by: [network]
ranges: [batch]
splits: [inside, hardware]
numbers:
  hardware: [tflops, bandwidth]
  network: [fwd_gflops_per_unit, activations_m_per_unit, params_m]
  run: [batch, gpu_count]
categories:
  network: [network]
  run: [precision]
"""
GPUS = {"alpha": (10, 300, "one"), "beta": (30, 900, "one"), "gamma": (15, 600, "one"), "delta": (45, 500, "one"), "novum": (120, 2000, "one"), "strange": (60, 700, "two")}
NETWORKS = {"small": (2, 5, 11), "middle": (8, 9, 25), "large": (40, 30, 60)}


def step_ms(gpu, network, batch, devices=1):
    (tflops, bandwidth, _), (gflops, moved, params) = GPUS[gpu], NETWORKS[network]
    return (2 * gflops / tflops / 0.45 + moved / bandwidth / 0.7 + 5 / batch + (params / 50 / batch if devices > 1 else 0)) * batch


def rows_of(extra="", column=""):
    chance, lines = random.Random(5), ["row_id,gpu,network,batch,gpu_count,precision,items_per_s" + column]
    for gpu in list(GPUS)[:4]:
        for network in NETWORKS:
            for batch in (8, 32, 64):
                for devices in (1, 2, 4):
                    rate = 1000 * devices * batch / step_ms(gpu, network, batch, devices) * math.exp(chance.gauss(0, 0.02))
                    lines.append(f"r{len(lines)},{gpu},{network},{batch},{devices},fp32,{rate:.6g}" + extra)
    return lines


def write_set(folder, spec=SPEC):
    (folder / "made.yaml").write_text(spec)
    (folder / "made.csv").write_text("\n".join(rows_of()) + "\n")
    (folder / "hardware.csv").write_text("gpu,tflops,bandwidth,vendor,memory_gb\n" + "".join(f"{gpu},{a},{b},{v},80\n" for gpu, (a, b, v) in GPUS.items()))
    (folder / "networks.csv").write_text("network,fwd_gflops_per_unit,activations_m_per_unit,params_m\n"
                                         + "".join(f"{n},{a},{b},{c}\n" for n, (a, b, c) in {**NETWORKS, "huge": (350000, 9000, 175000)}.items()))
    return folder / "made.yaml"


@pytest.fixture(scope="module")
def made_predictor(weir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("answers")
    weir.run("fit", write_set(folder), "--data-dir", folder, "-o", folder / "p.json", "--estimator", "physical")
    return folder / "p.json"


def ask(weir, predictor, *more, status=0):
    done = weir.run("predict", predictor, *more, "--json", "-", status=status)
    return json.loads(done.stdout)["answers"][0]


def test_a_batch_that_does_not_fit_in_memory_is_refused(weir, made_predictor):
    answer = ask(weir, made_predictor, "--gpu", "beta", "--network", "middle", "--batch", 4096, "--set", "precision=fp32", status=2)
    assert answer["regime"] == "refused" and "it does not fit" in answer["outside"] and "activations 295" in answer["outside"]
    fits = ask(weir, made_predictor, "--gpu", "beta", "--network", "middle", "--batch", 64, "--set", "precision=fp32")
    assert fits["regime"] == "inside"


def test_a_network_of_175_billion_parameters_is_refused(weir, made_predictor):
    answer = ask(weir, made_predictor, "--gpu", "beta", "--network", "huge", "--batch", 8, status=2)
    assert answer["regime"] == "refused" and "weights 2800" in answer["outside"]


def test_a_network_that_no_term_uses_is_refused(weir, tmp_path):
    spec = SPEC.replace("{compute: work / tflops, memory: activations_m_per_unit / bandwidth, step: 1 / batch, link: 'if(gpu_count > 1, params_m / wire / batch, 0)'}",
                        "{compute: 1 / tflops, step: 1 / batch}").replace("memory: {", "# {")
    weir.run("fit", write_set(tmp_path, spec), "--data-dir", tmp_path, "-o", tmp_path / "p.json", "--estimator", "physical")
    answer = ask(weir, tmp_path / "p.json", "--gpu", "beta", "--network", "huge", "--batch", 8, status=2)
    assert "no term of the physical model uses a fact of the network" in answer["outside"]


def test_another_vendor_is_outside_and_wider(weir, made_predictor):
    common = ["--network", "small", "--batch", 8, "--set", "precision=fp32", "--gpu"]
    same, other = (ask(weir, made_predictor, *common, gpu) for gpu in ("novum", "strange"))
    assert "hardware of two was never measured, only of one" in other["outside"] and "vendor" not in same["outside"]
    width = [math.log(answer["high"] / answer["low"]) for answer in (same, other)]
    assert width[1] > 1.5 * width[0]


def test_a_card_is_given_by_its_data_sheet(weir, made_predictor):
    answer = ask(weir, made_predictor, "--gpu", "mine", "--network", "small", "--batch", 8,
                 "--set", "tflops=28", "bandwidth=880", "memory_gb=48", "precision=fp32")
    assert answer["regime"] == "outside" and "mine was never measured, beta is nearest" in answer["outside"]


def test_nodes_and_the_network_card_are_part_of_a_job(weir, made_predictor):
    job = ["--gpu", "beta", "--network", "middle", "--batch", 32, "--devices", 64, "--set", "precision=fp32", "--items", 1_000_000]
    unknown = ask(weir, made_predictor, *job)
    assert "nodes is not given and matters here" in unknown["outside"]
    assert "network_gbit_per_s" in ask(weir, made_predictor, *job, "--nodes", 8, status=2)["outside"]
    slow, fast = (ask(weir, made_predictor, *job, "--nodes", 8, "--network-gbit", gbit)["job"]["hours"] for gbit in (1, 400))
    assert slow > 1.2 * fast
    assert "uses no column nodes" in weir.run("predict", plain_predictor(weir, made_predictor), "--gpu", "beta", "--network", "small", "--batch", 8, "--nodes", 2,
                                              status=2).stderr.decode()


def plain_predictor(weir, made_predictor):
    """One whose SPEC has no nodes."""
    folder = made_predictor.parent / "plain"
    folder.mkdir(exist_ok=True)
    spec = SPEC.replace("hosts: 'nodes ?? 1', wire: 'if(hosts > 1, network_gbit_per_s / 8, 50)'", "wire: 50 + 0 * batch").replace("optional: {nodes", "# {")
    weir.run("fit", write_set(folder, spec), "--data-dir", folder, "-o", folder / "p.json", "--estimator", "physical")
    return folder / "p.json"


def test_runs_to_calibrate_by_need_no_ids(weir, made_predictor, tmp_path):
    runs = tmp_path / "runs.csv"
    runs.write_text("gpu,network,batch,gpu_count,precision,items_per_s\n" + "".join(
        f"novum,{network},32,1,fp32,{1000 * 32 / step_ms('novum', network, 32) / 1.5:.6g}\n" for network in NETWORKS))
    done = weir.run("predict", made_predictor, "--gpu", "novum", "--network", "small", "--batch", 8, "--calibrate", runs)
    assert b"calibrate: novum: " in done.stderr


def test_an_onnx_file_names_the_nearest_network(weir, made, made_predictor):
    answer = ask(weir, made_predictor, "--gpu", "beta", "--network", made[0] / "1/model.onnx", "--batch", 8)
    assert "was never measured, small is nearest: " in answer["outside"]


def test_a_known_network_brings_its_facts_from_the_rows(weir, tmp_path):
    """Without a network table: the rows of the fit have its facts."""
    spec = write_set(tmp_path, SPEC.replace("networks: {file: networks.csv, key: network}", "networks: {key: network}"))
    lines = rows_of()
    facts = {name: f",{a},{b},{c}" for name, (a, b, c) in NETWORKS.items()}
    (tmp_path / "made.csv").write_text("\n".join([lines[0] + ",fwd_gflops_per_unit,activations_m_per_unit,params_m", *(line + facts[line.split(",")[2]] for line in lines[1:])]) + "\n")
    weir.run("fit", spec, "--data-dir", tmp_path, "-o", tmp_path / "p.json", "--estimator", "physical")
    answer = ask(weir, tmp_path / "p.json", "--gpu", "beta", "--network", "middle", "--batch", 32, "--set", "precision=fp32")
    assert answer["regime"] == "inside" and abs(answer["items_per_s"] * step_ms("beta", "middle", 32) / 32000 - 1) < 0.1
    assert "give " in ask(weir, tmp_path / "p.json", "--gpu", "beta", "--network", "new", "--batch", 32, status=2)["outside"]


def test_copies_under_another_machine_are_found(weir, tmp_path):
    spec = write_set(tmp_path, SPEC + "  machine: [system]\n")
    lines = rows_of(",first", ",system")
    lines += [line.replace(",first", ",second").replace("r", "copy", 1) for line in lines[1:4]]
    (tmp_path / "made.csv").write_text("\n".join(lines) + "\n")
    result = weir.json("fit", spec, "--data-dir", tmp_path, "--check")
    assert [finding["rows"] for finding in result["findings"] if finding["fault"] == "duplicate"] == [["copy1"], ["copy2"], ["copy3"]]


def test_an_estimator_answers_beside_the_baselines(weir, made_predictor, tmp_path):
    folder = made_predictor.parent
    spec = tmp_path / "inside.yaml"
    spec.write_text((folder / "made.yaml").read_text().replace("splits: [inside, hardware]", "splits: [inside]"))
    result = weir.json("fit", spec, "--data-dir", folder, "-o", tmp_path / "p.json", "--estimator", "physical")
    assert [one["candidate"] for one in result["splits"][0]["candidates"]] == ["physical", "lr-sfs"]
    assert result["estimator"] == "physical"
    refused = weir.run("fit", spec, "--data-dir", folder, "-o", tmp_path / "p.json", "--estimator", "oracle", status=2)
    assert b"known: neighbours, physical, lr-sfs" in refused.stderr


@pytest.mark.parametrize(("facts", "figure"), [
    (["--gpu", "beta", "--set", "tflops=0.3"], "tflops is 0.3, and 30 in the hardware table"),
    (["--gpu", "beta", "--set", "bandwidth=-900"], "bandwidth is -900, below 0"),
    (["--gpu", "mine", "--set", "tflops=28", "bandwidth=88000", "memory_gb=48"], "bandwidth is 88000, and 300 to 2000 for all cards"),
])
def test_a_fact_that_no_card_can_have_is_refused_with_its_figure(weir, made_predictor, facts, figure):
    answer = ask(weir, made_predictor, "--network", "small", "--batch", 8, *facts, "precision=fp32", status=2)
    assert answer["regime"] == "refused" and figure in answer["outside"]


def test_the_vendor_of_a_card_is_asked_for_and_kept(weir, made_predictor):
    card = ["--network", "small", "--batch", 8, "--gpu", "mine", "--set", "tflops=28", "bandwidth=880", "memory_gb=48", "precision=fp32"]
    unknown, same, other = (ask(weir, made_predictor, *card, *vendor) for vendor in ([], ["vendor=one"], ["vendor=two"]))
    assert "the vendor is not given (--set vendor=NAME; measured: one)" in unknown["outside"]
    assert "vendor" not in same["outside"] and "hardware of two was never measured" in other["outside"]
    widths = [math.log(answer["high"] / answer["low"]) for answer in (unknown, same, other)]
    assert widths[0] == pytest.approx(widths[2]) and widths[0] > 1.5 * widths[1]


def test_a_row_that_cannot_be_is_refused_with_its_figures(weir, made_predictor, tmp_path):
    spec = tmp_path / "made.yaml"
    spec.write_text((made_predictor.parent / "made.yaml").read_text().replace("terms:", "require: {no more hosts than devices: hosts <= gpu_count}\nterms:", 1))
    weir.run("fit", spec, "--data-dir", made_predictor.parent, "-o", tmp_path / "p.json", "--estimator", "physical")
    answer = ask(weir, tmp_path / "p.json", "--gpu", "beta", "--network", "small", "--batch", 8, "--devices", 8, "--nodes", 16, "--network-gbit", 100,
                 "--set", "precision=fp32", status=2)
    assert "impossible: hosts is 16, gpu_count is 8: the SPEC requires no more hosts than devices" in answer["outside"]


def test_a_weight_is_at_least_what_the_spec_says(weir, made_predictor, tmp_path):
    spec = tmp_path / "made.yaml"
    spec.write_text((made_predictor.parent / "made.yaml").read_text().replace("physics_by:", "least: {step: 50}\nphysics_by:", 1))
    weir.run("fit", spec, "--data-dir", made_predictor.parent, "-o", tmp_path / "p.json", "--estimator", "physical")
    answer = ask(weir, tmp_path / "p.json", "--gpu", "beta", "--network", "small", "--batch", 1, "--set", "precision=fp32")
    assert answer["items_per_s"] <= 1000 / 50


STUDY = """
study: rows
model: {model}
data: {data}
factors: {{batch: [1, 2, 3, 4]}}
fixed: {{engine: "emulated:base=5ms,per_item=0.2ms", mode: sync}}
repeats: 5
trial: {{images: 20}}
"""


@pytest.mark.long
def test_the_folder_of_a_study_is_a_spec(weir, made, tmp_path):
    (tmp_path / "study.yaml").write_text(STUDY.format(model=made[0], data=made[1]))
    weir.run("study", tmp_path / "study.yaml", "-o", tmp_path / "out", status=MEASURED)
    weir.run("fit", tmp_path / "out", "-o", tmp_path / "p.json", "--estimator", "physical")
    (tmp_path / "rows.csv").write_text("id,batch\none,1\nfour,4\n")
    weir.run("predict", tmp_path / "p.json", "--in", tmp_path / "rows.csv", "--out", tmp_path / "scored.csv")
    with open(tmp_path / "scored.csv", newline="", encoding="utf-8") as file:
        rates = {row["id" if "id" in row else "row_id"]: float(row["prediction"]) for row in csv.DictReader(file)}
    assert rates["four"] > rates["one"] > 0
    assert b"a folder is a study's, with its journal" in weir.run("fit", made[1], "-o", tmp_path / "q.json", status=2).stderr
