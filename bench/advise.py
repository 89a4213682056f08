#!/usr/bin/env python3
"""Searches the best configuration of a server whose best is known by construction, with several seeds, and loads the server that the files start.

    bench/advise.py [--program build/release/weir] [--seeds 3] [--server "tritonserver --backend-directory=..."]

Without --server it is weir with an emulated accelerator, and one instance. A request of b rows takes 10 + 0.25 b ms in each of s instances. With k requests in flight
its rate is min(k, s) b / t(b), and its response time ceil(k / s) t(b). With --server it is Triton, started by that command: its Python backend sleeps for
these times.

Wanted: the best configuration, or one within 2 %, for nine of ten seeds, in at most a fifth of the time of the full study; and the target holds in a
fresh load of the server that the advice's files start. The time of the full study is that of its trials by the formula, each with what the trials of the
search took beside it. A busy machine makes trials SUSPECT, and the advice then has no answer: the configuration with the highest mean is taken in its
place, and marked.
"""
import argparse
import json
import math
import pathlib
import shlex
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The streams of an emulated accelerator are its own, so its instances do not vary.
BATCHES, IN_FLIGHT, INSTANCES = [1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32], [1, 2, 3, 4, 6, 8], [1]
OF_TRITON = [1, 2, 4, 8, 16, 32], [1, 2, 4, 8], [1, 2, 4]
REPEATS = 5
REQUESTS, BATCHES_OF_TRIAL = 100, 110  # a p90 needs 100 response times
TENSORS = """max_batch_size: 32
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 16 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 16 ] } ]
"""
EMULATED = 'backend: "emulated"\nparameters { key: "engine" value: { string_value: "emulated:base=10ms,per_item=0.25ms" } }\n' + TENSORS
PYTHON = 'backend: "python"\ninstance_group [ { kind: KIND_CPU count: 1 } ]\n' + TENSORS
MODEL = """import time
import triton_python_backend_utils as p


class TritonPythonModel:
    def execute(self, requests):
        inputs = [p.get_input_tensor_by_name(r, "INPUT0").as_numpy() for r in requests]
        time.sleep(0.010 + 0.00025 * sum(x.shape[0] for x in inputs))
        return [p.InferenceResponse([p.Tensor("OUTPUT0", x)]) for x in inputs]
"""


def step_ms(batch):
    return 10 + 0.25 * batch


def rate(batch, in_flight, instances):
    return 1000 * min(in_flight, instances) * batch / step_ms(batch)


def response_ms(batch, in_flight, instances):
    return math.ceil(in_flight / instances) * step_ms(batch)


def command_of(asked):
    if asked.server:
        return shlex.split(asked.server) + ["--model-repository={model_repository}", "--http-port={http_port}", "--grpc-port={grpc_port}", "--metrics-port={metrics_port}"]
    ports = [word for name in ("http", "grpc", "metrics") for word in (f"--{name}-port", "{" + name + "_port}")]
    return [str(asked.program), "serve", "--model-repository", "{model_repository}", "--address", "{address}", *ports]


def share_of_time(advice):
    """The time of the trials of a search, relative to that of the full study."""
    played = [json.loads(line) for line in (advice / "search.jsonl").read_text().splitlines()[1:]]

    def alone(batch, in_flight, instances):
        return max(REQUESTS, BATCHES_OF_TRIAL + in_flight) * batch / rate(batch, in_flight, instances)

    beside = [one["took_s"] - alone(*(one["record"]["factors"][name] for name in ("batch", "in_flight", "instances"))) for one in played]
    full = REPEATS * sum(alone(b, k, s) + sum(beside) / len(beside) for b in BATCHES for k in IN_FLIGHT for s in INSTANCES)
    return sum(one["took_s"] for one in played) / full


def write_study(folder, command, seed):
    study = {
        "study": "known", "seed": seed, "repeats": REPEATS, "trial": {"batches": BATCHES_OF_TRIAL},
        "server": {"name": "known", "command": command, "ready": "http://{address}:{http_port}/v2/health/ready", "model": "known", "repository": "models"},
        "factors": {"batch": BATCHES, "in_flight": IN_FLIGHT, "instances": INSTANCES},
        "fixed": {"architecture": "microservice", "load": "closed"}, "targets": {"price_per_hour": {"microservice": 1}}}
    path = folder / f"known-{seed}.yaml"
    path.write_text(json.dumps(study))  # JSON is YAML
    return path


def best_mean(advice):
    met = [one for one in advice["candidates"] if one["standing"] in ("meets", "disturbed", "undecided")]
    return max(met, key=lambda one: one["expected"]["throughput_images_per_s"]["value"])["factors"] if met else None


def ports_of(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def fresh_load(asked, folder, command, config, levels):
    """Serves the model with the advice's configuration and loads it once more; returns p90 in ms and rows a second."""
    repository = folder / "fresh"
    (repository / "known/1").mkdir(parents=True, exist_ok=True)
    (repository / "known/config.pbtxt").write_text(config)
    (repository / "known/1/model.py").write_text(MODEL)
    http, grpc, metrics = ports_of(3)
    values = {"model_repository": repository, "address": "127.0.0.1", "http_port": http, "grpc_port": grpc, "metrics_port": metrics}
    words = [word.format(**values) for word in command]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            end = time.monotonic() + 60
            while time.monotonic() < end:
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{http}/v2/health/ready", timeout=1)
                    break
                except OSError:
                    time.sleep(0.1)
            load = subprocess.run([asked.program, "load", f"http://127.0.0.1:{http}/known", "--batch-size", str(levels["batch"]), "--concurrency-range", str(levels["in_flight"]),
                                   "--request-count", "400", "--json", "-"], capture_output=True, text=True, check=False)
        finally:
            server.terminate()
    level = json.loads(load.stdout)["levels"][0]
    return level["response_ms"]["p90"], level["rows_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/weir")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--server")
    asked = parser.parse_args()
    global BATCHES, IN_FLIGHT, INSTANCES
    if asked.server:
        BATCHES, IN_FLIGHT, INSTANCES = OF_TRITON
    command = command_of(asked)
    found_all = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "models/known/1").mkdir(parents=True)
        (folder / "models/known/config.pbtxt").write_text(PYTHON if asked.server else EMULATED)
        (folder / "models/known/1/model.py").write_text(MODEL)
        for seed in range(asked.first, asked.first + asked.seeds):
            target = [30, 24, 40][seed % 3]  # ms, with room for what the wire takes
            met = {(b, k, s): rate(b, k, s) for b in BATCHES for k in IN_FLIGHT for s in INSTANCES if response_ms(b, k, s) < 0.9 * target}
            path = write_study(folder, command, seed)
            done = subprocess.run([asked.program, "advise", path, "--target", f"p90<{target}ms", "-o", folder / f"advice-{seed}", "--json", "-"], capture_output=True, text=True, check=False)
            if done.returncode not in (0, 3):
                sys.exit(done.stderr)
            advice = json.loads(done.stdout)
            marked = "" if "configuration" in advice else f" (no answer: {advice['no_answer']}; the highest mean)"
            levels = advice.get("configuration") or best_mean(advice)
            share = rate(levels["batch"], levels["in_flight"], levels["instances"]) / max(met.values())
            trials, full = advice["search"]["trials"], len(BATCHES) * len(IN_FLIGHT) * len(INSTANCES) * REPEATS
            time_share = share_of_time(folder / f"advice-{seed}")
            meets = response_ms(levels["batch"], levels["in_flight"], levels["instances"]) < target
            good = meets and share >= 0.98 and time_share <= 0.2
            found_all += good
            line = f"{'ok  ' if good else 'MISS'} seed {seed}, p90<{target}ms: batch {levels['batch']}, in flight {levels['in_flight']}, instances {levels['instances']}: {100 * share:.1f} % of the best{'' if meets else ', over the target'}, {trials} of {full} trials, {100 * time_share:.0f} % of the time{marked}"
            config = folder / f"advice-{seed}/config.pbtxt"
            if config.exists():
                p90, rows = fresh_load(asked, folder, command, config.read_text(), levels)
                line += f"; fresh load: p90 {p90:.1f} ms, {rows:.0f} rows/s, target {'holds' if p90 < target else 'MISSED'}"
            print(line, flush=True)
    print(f"{found_all} of {asked.seeds} seeds")
    return int(found_all < math.ceil(0.9 * asked.seeds))


if __name__ == "__main__":
    sys.exit(main())
