"""The Slurm files of deploy/ on a real Slurm: a cluster of two nodes on this machine, with the partitions as they ship."""
import json
import subprocess
import time

import pytest

import conftest
import slurm_cluster

SLURM = conftest.ROOT / "deploy/slurm"
PICTURES = 1200
SLOW = ("--encoding", "png")  # a task then takes seconds, so that it is there to be preempted
PARTITIONS = (SLURM / "partitions.conf").read_text()

pytestmark = pytest.mark.skipif(bool(slurm_cluster.missing()), reason=f"apt-get install slurm-wlm munge: {slurm_cluster.missing()} are missing")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with slurm_cluster.Cluster(tmp_path_factory.mktemp("slurm") / "c", PARTITIONS) as running:
        yield running


@pytest.fixture(scope="module")
def pictures(weir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    weir.run("prepare", "--make", PICTURES, "--seed", 5, "-o", folder / "made")
    recipe = folder / "recipe.yaml"
    recipe.write_text("layout: NCHW\nresize: {width: 384, height: 384}\n")
    return folder / "made/pictures", recipe


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def submit_prepare(cluster, pictures, parts, *arguments):
    """The array of 8 as docs/how-to/slurm.md has it; two tasks run at a time."""
    sources, recipe = pictures
    return cluster.sbatch("--array=1-8%2", f"--chdir={parts.parent}", SLURM / "prepare.slurm", sources, recipe, parts, "--format", "tar", *arguments, WEIR=conftest.PROGRAM)


def check_joined(weir, pictures, parts, folder, *arguments):
    sources, recipe = pictures
    weir.run("prepare", "--join", parts, "-o", folder / "joined")
    weir.run("prepare", sources, "--recipe", recipe, "--format", "tar", *arguments, "-o", folder / "whole")
    assert contents(folder / "joined") == contents(folder / "whole")


def running_tasks(cluster, job):
    return sorted((task for task, facts in cluster.state(job).items() if facts["JobState"] == "RUNNING" and task.isdigit()), key=int)


def test_an_array_of_8_with_two_tasks_killed_and_requeued_equals_one_run(weir, cluster, pictures, tmp_path):
    parts = tmp_path / "parts"
    job = submit_prepare(cluster, pictures, parts)
    # Two tasks are requeued in the middle of their work: Slurm kills them and starts them again.
    hit = set()
    until = time.monotonic() + 60
    while len(hit) < 2 and time.monotonic() < until:
        for task in running_tasks(cluster, job):
            if task not in hit and len(hit) < 2:
                cluster.call("scontrol", "requeue", f"{job}_{task}")
                hit.add(task)
        time.sleep(0.05)
    states = cluster.wait(job)
    assert len(hit) == 2 and all(facts["JobState"] == "COMPLETED" for facts in states.values()), states
    assert sum(int(facts["Restarts"]) for facts in states.values()) == 2
    assert sorted(path.name for path in parts.iterdir()) == [f"part-{number}-of-8" for number in range(1, 9)]
    check_joined(weir, pictures, parts, tmp_path)


TRAIN = """#!/bin/bash
# A trainer whose checkpoint is the feed's cursor: so many epochs of SET, a step of 20 ms a batch.
set=$1 epochs=$2 folder=$3
done=$(grep -o '"epoch":[0-9]*' "$folder/state" 2>/dev/null | cut -d: -f2)
exec "$WEIR" feed "$set" --bench --epochs $((epochs - ${done:-0})) --batch 10 --width 64 --height 64 --step 20ms --ends pad --state "$folder/state" \\
  --json "$folder/feed-${SLURM_RESTART_COUNT:-0}.json"
"""


def test_three_phases_under_preemption_lose_nothing(weir, cluster, pictures, made, tmp_path):
    """Training takes the nodes from preparation, serving takes them from both; both go on where they were."""
    parts = tmp_path / "parts"
    weir.run("prepare", pictures[0], "-o", tmp_path / "set", "--recipe", pictures[1])
    (tmp_path / "train.sh").write_text(TRAIN)
    (tmp_path / "train.sh").chmod(0o755)
    prepare = submit_prepare(cluster, pictures, parts, *SLOW)
    cluster.wait_for(lambda: running_tasks(cluster, prepare), 60, "the array")
    train = cluster.sbatch("--partition=train", "--nodes=1", "--exclusive", f"--chdir={tmp_path}", SLURM / "train.slurm", tmp_path / "train.sh", tmp_path / "set", 3, tmp_path,
                           WEIR=conftest.PROGRAM)
    cluster.wait_for(lambda: cluster.state(train)[""]["JobState"] == "RUNNING", 60, "training")
    time.sleep(1.5)  # some steps
    cluster.wait_for(lambda: running_tasks(cluster, prepare), 60, "the array beside training")
    result = tmp_path / "load.json"
    serve = cluster.sbatch("--partition=serve", f"--chdir={tmp_path}", SLURM / "serve-and-load.slurm", made[0].parent, "tiny", result, "--request-rate-range", 50, "--duration", 3,
                           WEIR=conftest.PROGRAM, WEIR_PORT=str(slurm_cluster.free_ports(1)[0]))
    served = cluster.wait(serve)
    level = json.loads(result.read_text())["levels"][0]
    assert served[""]["JobState"] == "COMPLETED" or served[""]["ExitCode"] == "3:0", served
    assert level["answered"] == level["planned"] and level["failed"] == 0

    trained = cluster.wait(train)[""]
    assert trained["JobState"] == "COMPLETED" and int(trained["Restarts"]) >= 1, trained
    runs = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("feed-*.json"))]
    assert sum(run["samples"] for run in runs) == 3 * PICTURES, [run["samples"] for run in runs]

    prepared = cluster.wait(prepare)
    assert all(facts["JobState"] == "COMPLETED" for facts in prepared.values()), prepared
    assert sum(int(facts["Restarts"]) for facts in prepared.values()) >= 1
    check_joined(weir, pictures, parts, tmp_path, *SLOW)


def test_every_node_of_a_job_loads_one_server(weir, cluster, made, tmp_path):
    """load-from-nodes.slurm against a server that another job of two steps would start: an agent on each node, one result."""
    token, result, facts = tmp_path / "token", tmp_path / "load.json", tmp_path / "served.json"
    token.write_text("0123456789abcdef0123456789abcdef")
    with subprocess.Popen([conftest.PROGRAM, "serve", "--model-repository", made[0].parent, "--http-port", "0", "--grpc-port", "0", "--metrics-port", "0", "--json", facts],
                          stderr=subprocess.DEVNULL) as serving:
        try:
            cluster.wait_for(facts.exists, 30, "the server")
            url = json.loads(facts.read_text())["http"]["url"] + "/tiny"
            job = cluster.sbatch("--partition=serve", "--nodes=2", f"--chdir={tmp_path}", SLURM / "load-from-nodes.slurm", token, result, url, "--request-rate-range", 40,
                                 "--duration", 3, WEIR=conftest.PROGRAM, WEIR_PORT=str(slurm_cluster.free_ports(1)[0]))
            ended = cluster.wait(job)[""]
        finally:
            serving.terminate()
    log = "\n".join(path.read_text() for path in tmp_path.glob("*.log"))
    assert result.exists(), (ended, log)
    level = json.loads(result.read_text())["levels"][0]
    assert ended["JobState"] == "COMPLETED" or ended["ExitCode"] == "3:0", (ended, log)
    assert level["planned"] == level["answered"] == 120 and [host["planned"] for host in level["hosts"]] == [60, 60]
    assert [host["rank"] for host in level["hosts"]] == [0, 1] and not any("lost" in host for host in level["hosts"])


def test_a_probe_from_both_nodes_reads_one_order(cluster, tmp_path):
    (tmp_path / "token").write_text("0123456789abcdef0123456789abcdef")
    (tmp_path / "pool").mkdir()
    result = tmp_path / "probe.json"
    job = cluster.sbatch("--partition=serve", "--nodes=2", f"--chdir={tmp_path}", SLURM / "probe-from-nodes.slurm", tmp_path / "token", result, tmp_path / "pool", "--samples", 60,
                         "--sample-bytes", 20000, "--step-ms", 1, "--batch", 5, "--steps", 60, "--repeats", 1, "--limit-s", 5,
                         WEIR=conftest.PROGRAM, WEIR_PORT=str(slurm_cluster.free_ports(1)[0]))
    facts = cluster.wait(job)[""]
    assert facts["JobState"] == "COMPLETED" or facts["ExitCode"] == "3:0", (facts, [path.read_text() for path in tmp_path.glob("*.log")])
    probed = json.loads(result.read_text())
    assert len(probed["hosts"]) == 2 and all(host["ended_s"] > 0 for host in probed["hosts"])
    assert probed["epochs"]["whole"] >= 8 and probed["epochs"]["each_once"] == probed["epochs"]["whole"]
    assert not list((tmp_path / "pool").iterdir())
