"""Relations between the manifests of deploy/: labels and policies, quotas and requests, folders and volumes, grace periods, images."""
import re
import shutil
import subprocess

import pytest

from conftest import ROOT

yaml = pytest.importorskip("yaml")
KUBERNETES = ROOT / "deploy/kubernetes"
JOBS = sorted(path for path in (KUBERNETES / "jobs").glob("*.yaml") if path.name != "kustomization.yaml")


def documents(*paths):
    return [document for path in paths for document in yaml.safe_load_all(path.read_text())]


def of_kind(kind, found):
    return [document for document in found if document["kind"] == kind]


def pod_of(document):
    return document["spec"]["template"]["spec"]


def labels_of(document):
    return document["spec"]["template"]["metadata"]["labels"]


def base(kind, name="weir"):
    return next(d for d in of_kind(kind, documents(*sorted((KUBERNETES / "base").glob("*.yaml")))) if d["metadata"]["name"] == name)


def count(quantity):
    """'500m', '4', '16Gi' as a number."""
    number, unit = re.fullmatch(r"(\d+)(m|Mi|Gi|)", str(quantity)).groups()
    return int(number) * {"m": 0.001, "": 1, "Mi": 2**20, "Gi": 2**30}[unit]


def arguments(container):
    return [str(argument) for argument in container.get("args", [])]


def value_of(container, flag):
    given = arguments(container)
    return [given[i + 1] for i, argument in enumerate(given) if argument == flag]


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.name)
def test_each_folder_that_a_job_names_is_on_a_volume_of_its_pods(path):
    jobs = of_kind("Job", documents(path))
    mounted = {mount["mountPath"] for job in jobs for container in pod_of(job)["containers"] for mount in container["volumeMounts"]}
    for job in jobs:
        for container in pod_of(job)["containers"]:
            for argument in arguments(container):
                if argument.startswith("/"):
                    assert any(argument == mount or argument.startswith(mount + "/") for mount in mounted), f"{path.name}: {argument} is on no volume"
            # A probe wants a folder that is there: that of the volume itself.
            if arguments(container)[:2] == ["probe", "storage"]:
                assert arguments(container)[2] in mounted, f"{path.name}: nobody makes {arguments(container)[2]}"


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.name)
def test_the_servers_policy_lets_in_the_jobs_that_call_it(path):
    server = labels_of(base("Deployment"))
    policy = base("NetworkPolicy")
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= server.items()
    callers = [source["podSelector"]["matchLabels"] for rule in policy["spec"]["ingress"] for source in rule["from"] if "podSelector" in source]
    jobs = of_kind("Job", documents(path))
    calls = any("http://weir:" in argument or "grpc://weir" in argument for job in jobs for container in pod_of(job)["containers"] for argument in arguments(container))
    for job in jobs if calls else []:  # with agents, all pods of the file call the server
        assert any(wanted.items() <= labels_of(job).items() for wanted in callers), f"{path.name}: the policy keeps {job['metadata']['name']} out"


def test_the_server_knows_each_name_by_which_pods_call_it():
    allowed = value_of(pod_of(base("Deployment"))["containers"][0], "--allow-host")

    def answers(host):
        return any(host == name or (name.startswith("*.") and host.endswith(name[1:])) for name in allowed)

    for service in ("weir", "weir-grpc"):
        for name in (service, f"{service}.default", f"{service}.default.svc", f"{service}.default.svc.cluster.local", f"{service}.other.svc", f"{service}.other.svc.cluster.local"):
            assert answers(name), name
    assert not answers("evil.example.com") and "*" not in allowed


def queues():
    found = documents(KUBERNETES / "kueue/queues.yaml")
    local = {queue["metadata"]["name"]: queue["spec"]["clusterQueue"] for queue in of_kind("LocalQueue", found)}
    quotas = {queue["metadata"]["name"]: {resource["name"]: count(resource["nominalQuota"]) for group in queue["spec"]["resourceGroups"] for flavor in group["flavors"]
                                          for resource in flavor["resources"]} for queue in of_kind("ClusterQueue", found)}
    priorities = {each["metadata"]["name"] for each in of_kind("WorkloadPriorityClass", found)}
    return {name: quotas[cluster] for name, cluster in local.items()}, priorities


def wanted(document, pods):
    return {resource: pods * sum(count(container["resources"]["requests"][resource]) for container in pod_of(document)["containers"]) for resource in ("cpu", "memory")}


def test_each_queue_holds_the_jobs_that_wait_in_it():
    quotas, priorities = queues()
    waiting = [job for job in of_kind("Job", documents(*JOBS)) if "kueue.x-k8s.io/queue-name" in job["metadata"]["labels"]]
    assert len(waiting) >= 2
    for job in waiting:
        labels = job["metadata"]["labels"]
        quota = quotas[labels["kueue.x-k8s.io/queue-name"]]
        assert labels["kueue.x-k8s.io/priority-class"] in priorities
        for resource, amount in wanted(job, job["spec"].get("parallelism", 1)).items():
            assert amount <= quota[resource], f"{job['metadata']['name']} wants {amount} of {resource}, its queue has {quota[resource]}"


def test_serving_is_in_its_queue_and_fits_at_its_largest():
    kustomization = yaml.safe_load((KUBERNETES / "kueue/kustomization.yaml").read_text())
    labels = yaml.safe_load(kustomization["patches"][0]["patch"])["metadata"]["labels"]
    quotas, priorities = queues()
    assert labels["kueue.x-k8s.io/priority-class"] in priorities
    most = base("HorizontalPodAutoscaler")["spec"]["maxReplicas"]
    for resource, amount in wanted(base("Deployment"), most).items():
        assert amount <= quotas[labels["kueue.x-k8s.io/queue-name"]][resource], resource


def test_grace_periods_hold_what_adds_up():
    deployment = base("Deployment")
    container = pod_of(deployment)["containers"][0]
    needed = sum(int(value_of(container, flag)[0]) for flag in ("--drain-delay-secs", "--exit-timeout-secs"))
    assert pod_of(deployment)["terminationGracePeriodSeconds"] >= needed + 5
    unit = (ROOT / "deploy/systemd/weir.service").read_text()
    assert int(re.search(r"TimeoutStopSec=(\d+)", unit)[1]) >= 30 + 5  # --exit-timeout-secs by default


def test_agents_have_one_count_and_call_the_run_of_their_file():
    for name in ("load-from-pods", "probe-from-pods"):
        found = documents(KUBERNETES / f"jobs/{name}.yaml")
        service, (run, agents) = of_kind("Service", found)[0], of_kind("Job", found)
        container, agent = pod_of(run)["containers"][0], pod_of(agents)["containers"][0]
        world = next(int(variable["value"]) for variable in agent["env"] if variable["name"] == "WORLD_SIZE")
        assert int(value_of(container, "--agents")[0]) == world == agents["spec"]["completions"] == agents["spec"]["parallelism"]
        assert service["spec"]["selector"].items() <= labels_of(run).items()
        port = service["spec"]["ports"][0]["port"]
        assert value_of(agent, "--rendezvous") == [f"{service['metadata']['name']}:{port}"]
        assert value_of(container, "--rendezvous")[0].endswith(f":{port}")


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not here")
@pytest.mark.parametrize("folder", ["kubernetes/base", "kubernetes/jobs", "kubernetes/gpu", "kubernetes/kueue", "kserve"])
def test_every_image_can_be_another_by_kustomize(folder, tmp_path):
    copy = tmp_path / "deploy"
    shutil.copytree(ROOT / "deploy", copy)
    path = copy / folder / "kustomization.yaml"
    kustomization = yaml.safe_load(path.read_text())
    kustomization["images"] = [{"name": "localhost/weir", "newName": "registry/weir", "newTag": "1.2"}]
    path.write_text(yaml.safe_dump(kustomization))
    done = subprocess.run(["kubectl", "kustomize", copy / folder], capture_output=True, text=True, check=True)
    images = re.findall(r"image: (\S+)", done.stdout)
    assert images and set(images) == {"registry/weir:1.2"}
    if folder == "kubernetes/gpu":
        limits = pod_of(next(d for d in yaml.safe_load_all(done.stdout) if d["kind"] == "Deployment"))["containers"][0]["resources"]["limits"]
        assert limits["nvidia.com/gpu"] == "1"


def test_each_job_can_be_chosen_by_its_label():
    for path in JOBS:
        assert {document["metadata"]["labels"]["weir-job"] for document in documents(path)} == {path.stem}
        assert path.name in yaml.safe_load((KUBERNETES / "jobs/kustomization.yaml").read_text())["resources"]
        assert "ReadWriteMany" in path.read_text() or "persistentVolumeClaim" not in path.read_text()


def test_requeued_jobs_append_to_their_logs():
    for path in (ROOT / "deploy/slurm").glob("*.slurm"):
        text = path.read_text()
        assert "#SBATCH --open-mode=append" in text, path.name


def test_the_gpu_variant_of_the_unit_opens_the_devices_that_the_unit_hides():
    assert "PrivateDevices=yes" in (ROOT / "deploy/systemd/weir.service").read_text()
    variant = (ROOT / "deploy/systemd/weir.service.d/gpu.conf").read_text()
    assert "PrivateDevices=no" in variant and "DeviceAllow=char-nvidia rw" in variant
