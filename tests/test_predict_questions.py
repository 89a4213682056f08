"""Ten questions of a person who rents or buys hardware, asked from the command line of a fit to published training rates.

Each is answered, or refused for a reason that names what is wrong or missing. The fit takes the physical model alone, which takes seconds.
"""
import csv
import json
import math
import shutil

import pytest

from conftest import ROOT

PRECISION = ["--set", "precision=fp32"]


@pytest.fixture(scope="module")
def trained(weir, shared, tmp_path_factory):
    rows = shared / "data/perf/train_pytorch.csv"
    if not rows.is_file():
        pytest.skip(f"there are no measured rows at {rows}")
    folder = tmp_path_factory.mktemp("questions")
    for table in (rows, ROOT / "data/hardware.csv", ROOT / "data/networks.csv"):
        shutil.copyfile(table, folder / table.name)
    weir.run("fit", ROOT / "studies/predict/train_pytorch.yaml", "--data-dir", folder, "-o", folder / "p.json", "--estimator", "physical")
    return folder / "p.json"


def ask(weir, predictor, *more, status=0):
    done = weir.run("predict", predictor, *more, "--json", "-", status=status)
    answers = json.loads(done.stdout)["answers"]
    for answer in answers:
        if answer["regime"] == "refused":
            assert answer["outside"] and "throughput_per_s" not in answer
        else:
            assert 0 < answer["low"] <= answer["throughput_per_s"] <= answer["high"] < math.inf
            assert (answer["regime"] == "outside") == bool(answer.get("outside"))
    return answers


def test_time_and_cost_of_training_an_onnx_file_on_an_h100(weir, shared, trained):
    answer, = ask(weir, trained, "--gpu", "H100-PCIe-80GB", "--network", shared / "data/models/resnet50_pq.onnx", "--batch", 64,
                  "--items", 1281167, "--epochs", 90, "--price-per-hour", 2.5, *PRECISION)
    assert answer["row"]["network"] == "resnet50" and answer["regime"] == "inside"
    assert 5 < answer["job"]["hours"] < 200  # 90 epochs at 160 to 6,000 images a second
    assert answer["job"]["cost"] == pytest.approx(2.5 * answer["job"]["hours"])
    assert answer["job"]["low_cost"] < answer["job"]["cost"] < answer["job"]["high_cost"]


def test_a_job_on_64_devices_in_8_hosts(weir, trained):
    job = ["--gpu", "A100-SXM4-80GB", "--network", "resnet50", "--batch", 64, "--items", 1281167, "--epochs", 90, *PRECISION]
    one, = ask(weir, trained, *job, "--devices", 8, "--nodes", 1)
    many, = ask(weir, trained, *job, "--devices", 64, "--nodes", 8, "--network-gbit", 200)
    assert "gpu_count 64 is above" in many["outside"]
    assert one["job"]["hours"] / 8 < many["job"]["hours"] < one["job"]["hours"]
    slow, = ask(weir, trained, *job, "--devices", 64, "--nodes", 8, "--network-gbit", 1)
    assert slow["job"]["hours"] > 1.5 * many["job"]["hours"]


def test_64_devices_without_a_word_of_their_hosts(weir, trained):
    answer, = ask(weir, trained, "--gpu", "A100-SXM4-80GB", "--network", "resnet50", "--batch", 64, "--devices", 64, *PRECISION)
    assert "nodes is not given and matters here" in answer["outside"]


def test_a_card_by_its_data_sheet(weir, trained):
    """The RTX A6000 under another name, with the figures that the terms need."""
    with open(ROOT / "data/hardware.csv", newline="", encoding="utf-8") as file:
        sheet = next(row for row in csv.DictReader(file) if row["gpu"] == "RTX A6000")
    facts = [f"{name}={sheet[name]}" for name in ("fp32_tflops", "tf32_tensor_tflops", "fp16_tensor_tflops", "fp16_tensor_fp32acc_tflops", "sm_count",
                                                  "boost_clock_mhz", "memory_bandwidth_gbps", "memory_gb", "pcie_gen", "interconnect_gbps")]
    mine, = ask(weir, trained, "--gpu", "card of mine", "--network", "resnet50", "--batch", 64, "--set", "precision=fp32", *facts)
    known, = ask(weir, trained, "--gpu", "RTX A6000", "--network", "resnet50", "--batch", 64, *PRECISION)
    assert mine["regime"] == "outside" and "card of mine was never measured, RTX A6000 is nearest" in mine["outside"]
    assert mine["high"] / mine["low"] > known["high"] / known["low"]
    assert mine["throughput_per_s"] == pytest.approx(known["throughput_per_s"], rel=0.5)


def test_a_network_that_is_in_no_table(weir, trained):
    asked = ["--gpu", "A100-SXM4-80GB", "--network", "mine", "--batch", 16]
    answer, = ask(weir, trained, *asked, "--set", "precision=fp32", "params_m=80", "fwd_gflops_per_unit=30", "activations_m_per_unit=40", "depth=100", "blocks=30")
    assert answer["regime"] == "outside" and "network mine was never measured" in answer["outside"] and "is nearest" in answer["outside"]
    # On hardware that is new, too, no less is unknown.
    both, = ask(weir, trained, "--gpu", "H200-SXM-141GB", *asked[2:], "--set", "precision=fp32", "params_m=80", "fwd_gflops_per_unit=30",
                "activations_m_per_unit=40", "depth=100", "blocks=30")
    assert both["high"] / both["low"] > 0.99 * answer["high"] / answer["low"]
    refused, = ask(weir, trained, *asked, *PRECISION, status=2)
    assert "; add it to networks.csv, or give its facts: " in refused["outside"] and "params_m" in refused["outside"]
    misspelt, = ask(weir, trained, "--gpu", "A100-SXM4-80GB", "--network", "resnet-50", "--batch", 16, *PRECISION, status=2)
    assert "is not in the network table (is it resnet50?)" in misspelt["outside"]


def test_three_own_runs_on_a_new_card(weir, trained, tmp_path):
    """1.3 times as slow as predicted: so is the answer, and its interval holds the runs. On a card that the fit knew, too."""
    for gpu in ("H200-SXM-141GB", "A100-SXM4-80GB"):
        asked = ["--gpu", gpu, "--network", "resnet50", "--batch", 64, *PRECISION]
        before, = ask(weir, trained, *asked)
        run = before["throughput_per_s"] / 1.3
        runs = tmp_path / "runs.csv"
        runs.write_text("gpu,network,precision,gpu_count,batch_per_gpu,throughput_per_s\n" + f"{gpu},resnet50,fp32,1,64,{run}\n" * 3)
        after = json.loads(weir.run("predict", trained, *asked, "--calibrate", runs, "--json", "-").stdout)["answers"][0]
        assert after["throughput_per_s"] == pytest.approx(run, rel=0.05)
        assert after["low"] < run < after["high"]


def test_a_step_costs_its_launches(weir, trained):
    """A batch of 1 is not as fast as one of 256."""
    asked = ["--gpu", "A100-SXM4-80GB", "--network", "resnet50", "--set", "precision=fp16-mixed", "--batch"]
    one, many = (ask(weir, trained, *asked, batch)[0]["throughput_per_s"] for batch in (1, 256))
    assert one < 0.5 * many


@pytest.mark.parametrize("network", [["--network", "resnet50"],
                                     ["--network", "mine", "--set", "params_m=25", "fwd_gflops_per_unit=8", "activations_m_per_unit=11", "depth=54", "blocks=16"]])
def test_gradients_cross_the_network_card(weir, trained, network):
    asked = ["--gpu", "A100-SXM4-80GB", *network, *(["precision=fp32"] if len(network) > 2 else PRECISION), "--batch", 64, "--devices", 16, "--nodes", 2]
    slow, fast = (ask(weir, trained, *asked, "--network-gbit", gbit)[0]["throughput_per_s"] for gbit in (1, 400))
    assert 2 < fast / slow < 100


def test_a_batch_that_no_memory_holds(weir, trained):
    answer, = ask(weir, trained, "--gpu", "A100-SXM4-80GB", "--network", "resnet50", "--batch", 16384, *PRECISION, status=2)
    assert "GB of memory a device" in answer["outside"] and "it does not fit" in answer["outside"]


def test_a_card_of_another_vendor(weir, trained):
    answer, = ask(weir, trained, "--gpu", "MI300X", "--network", "resnet50", "--batch", 64, *PRECISION)
    assert "hardware of AMD was never measured, only of NVIDIA" in answer["outside"]
    same, = ask(weir, trained, "--gpu", "H200-SXM-141GB", "--network", "resnet50", "--batch", 64, *PRECISION)
    assert answer["high"] / answer["low"] > same["high"] / same["low"]


def test_a_chip_whose_data_sheet_lacks_a_fact(weir, trained):
    answer, = ask(weir, trained, "--gpu", "TPU v5e", "--network", "resnet50", "--batch", 64, *PRECISION, status=2)
    assert "is unknown: give " in answer["outside"]


def test_the_cheapest_of_three_cards(weir, trained):
    gpus, prices = ["A100-SXM4-80GB", "H100-PCIe-80GB", "RTX A6000"], [1.8, 2.5, 0.8]
    answers = ask(weir, trained, "--gpu", *gpus, "--network", "resnet50", "--batch", 64, "--items", 1281167, "--price-per-hour", *prices, *PRECISION)
    assert [answer["row"]["gpu"] for answer in answers] == gpus
    for answer, price in zip(answers, prices, strict=True):
        assert answer["job"]["cost"] == pytest.approx(price * answer["job"]["hours"], rel=1e-6)


def test_the_first_token_of_a_served_model_without_experts(weir, shared, tmp_path):
    """Its model card gives no expert degrees, and one replica takes all requests."""
    rows = shared / "data/perf/llm_serving.csv"
    if not rows.is_file():
        pytest.skip(f"there are no measured rows at {rows}")
    for table in (rows, ROOT / "data/hardware.csv"):
        shutil.copyfile(table, tmp_path / table.name)
    weir.run("fit", ROOT / "studies/predict/llm_serving_ttft.yaml", "--data-dir", tmp_path, "-o", tmp_path / "p.json", "--estimator", "physical")
    asked = ["--gpu", "H100-SXM", "--network", "meta-llama/Llama-3.1-70B", "--set", "backend=vllm", "input_tokens=1024", "output_tokens=1024", "concurrency=16"]
    done = weir.json("predict", tmp_path / "p.json", *asked, "precision=fp8", "tensor_parallel=8")
    answer, = done["answers"]
    assert answer["regime"] == "inside" and 20 < answer["low"] < answer["ttft_ms"] < answer["high"] < 5000
    assert not {"moe_tp", "moe_ep", "concurrency_per_replica"} & set(done["taken_as_unknown"])
    refused = weir.run("predict", tmp_path / "p.json", *asked, "precision=bf16", "tensor_parallel=1", status=2).stdout
    assert b"it does not fit" in refused
