"""weir monitor: what any command used, held against what the command did."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from conftest import PROGRAM, SANITIZED


def script(text):
    return "--", sys.executable, "-c", text


def monitor(weir, *arguments, status=0):
    """The result of `weir monitor`, whose --json must stand before the command."""
    return json.loads(weir.run("monitor", "--json", "-", *arguments, status=status).stdout)


def filesystem(path):
    return subprocess.run(["stat", "--file-system", "--format=%T", path], capture_output=True, text=True, check=True).stdout.strip()


def machine_bytes():
    """Bytes so far of the machine's block devices, each layer counted, and of its network, loopback apart."""
    disks = [line.split() for line in pathlib.Path("/proc/diskstats").read_text().splitlines()]
    counts = {"disk_read_bytes": 512 * sum(int(line[5]) for line in disks), "disk_written_bytes": 512 * sum(int(line[9]) for line in disks)} if disks else {}
    devices = [line.replace(":", " ").split() for line in pathlib.Path("/proc/self/net/dev").read_text().splitlines()[2:]]
    network = [line for line in devices if line[0] != "lo"]
    return counts | {"received_bytes": sum(int(line[1]) for line in network), "sent_bytes": sum(int(line[9]) for line in network)}


def wait_for_thread(process, name):
    """Until `process` has a thread of this name."""
    while process.poll() is None:
        names = [path.read_text().strip() for path in pathlib.Path(f"/proc/{process.pid}/task").glob("*/comm")]
        if name in names:
            return
        time.sleep(0.01)
    raise AssertionError(f"it ended with {process.returncode}")


@pytest.mark.timing
def test_tells_what_a_command_used(weir, tmp_path):
    work = tmp_path / "written"
    result = monitor(weir, *script(
        "import os, threading, time\n"
        "held = bytearray(150_000_000)\n"
        "go = threading.Event()\n"
        "threads = [threading.Thread(target=go.wait) for _ in range(20)]\n"
        "[t.start() for t in threads]\n"
        f"with open({str(work)!r}, 'wb') as f:\n"
        "    f.write(os.urandom(8_000_000)); f.flush(); os.fsync(f.fileno())\n"
        "until = time.process_time() + 0.5\n"
        "while time.process_time() < until: pass\n"
        "go.set()\n"))
    used = result["resources"]
    cpu = result["user_s"] + result["system_s"]
    assert cpu >= 0.5
    assert used["app_cpu"]["mean"] * used["wall_s"] == pytest.approx(cpu, abs=0.05)
    assert used["threads"]["max"] == 21
    assert used["process_memory_bytes"]["max"] > 150e6
    assert 150e6 < result["max_resident_bytes"] < 300e6
    assert "largest_process_bytes" not in used  # it has its place beside resources
    for key in ("app_cpu", "server_cpu", "threads", "process_memory_bytes", "host_memory_bytes"):
        assert used[key]["min"] <= used[key]["mean"] <= used[key]["max"], key
    if "written_bytes" in used and filesystem(tmp_path) != "tmpfs":
        assert used["written_bytes"] >= 8_000_000


@pytest.mark.timing
def test_says_what_watching_cost(weir):
    used = monitor(weir, "--period-ms", 20, *script("import time; time.sleep(0.5)"))["resources"]
    assert used["samples"] >= 15 and used["period_ms"] == 20
    assert 0 < used["observer_us_per_sample"] < (20_000 if SANITIZED else 2_000)
    assert used["observer_first_us"] > 0
    # What all samples cost together is what the monitor used.
    assert used["observer_cpu"] * used["wall_s"] * 1e6 == pytest.approx(used["observer_us_per_sample"] * used["samples"], rel=0.25)


def test_a_small_command_is_not_charged_with_the_programs_own_memory(weir):
    small = monitor(weir, "--", "sleep", 0.1)["max_resident_bytes"]
    assert 100e3 < small < 6e6  # sleep has 2 MB; weir's own were 13


def test_counts_the_threads_of_the_whole_tree(weir):
    used = monitor(weir, "--", "sh", "-c", "sleep 0.5 & sleep 0.5 & sleep 0.5 & wait")["resources"]
    assert used["threads"]["max"] == 4


def test_tells_of_the_machine_around(weir):
    before = machine_bytes()
    used = monitor(weir, "--", "sleep", 0.3)["resources"]
    after = machine_bytes()
    assert used["context_switches_per_s"] > 0
    for key, first in before.items():
        assert 0 <= used[key] <= after[key] - first, key
    if os.path.exists("/proc/driver/nvidia/version"):
        return
    for key in ("gpu_percent", "gpu_label", "gpu_power_watts", "gpu_samples"):
        assert key not in used, key


def test_text_has_the_same_figures(weir):
    said = weir.run("monitor", "--", "sleep", 0.2).stderr.decode()
    for words in ("largest process", "CPU, processes", "threads", "this monitor", "us a sample"):
        assert words in said, said


def test_exit_status_is_the_commands(weir):
    assert monitor(weir, "--", "sh", "-c", "exit 7", status=7)["exit_status"] == 7
    result = monitor(weir, "--", "sh", "-c", "kill -KILL $$", status=128 + signal.SIGKILL)
    assert result["signal"] == signal.SIGKILL
    weir.run("monitor", "--", "no-such-command", status=127)
    weir.run("monitor", status=2)
    weir.run("monitor", "--period-ms", 0, "--", "true", status=2)


def test_passes_a_signal_on(weir):
    running = subprocess.Popen([PROGRAM, "monitor", "--json", "-", *script(
        "import signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\n"
        "print('ready', flush=True)\n"
        "signal.pause()\n")], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert running.stdout.readline() == b"ready\n"
    running.terminate()
    assert json.loads(running.communicate(timeout=30)[0])["exit_status"] == 9
    assert running.returncode == 9


def test_watches_a_process_that_runs_already(weir):
    other = subprocess.Popen(["sh", "-c", "read line; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"], stdin=subprocess.PIPE)
    running = subprocess.Popen([PROGRAM, "monitor", "--pid", str(other.pid), "--json", "-"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    wait_for_thread(running, "monitor")
    other.communicate(b"go\n", timeout=60)
    result = json.loads(running.communicate(timeout=60)[0])
    assert running.returncode == 0
    assert result["pids"] == [other.pid]
    assert result["resources"]["app_cpu"]["max"] > 0
    weir.run("monitor", "--pid", other.pid, status=2)  # it has ended
    weir.run("monitor", "--pid", os.getpid(), "--", "true", status=2)


def test_watching_ends_with_the_standard_input(weir):
    other = subprocess.Popen(["sleep", "600"])
    try:
        running = subprocess.Popen([PROGRAM, "monitor", "--pid", str(other.pid), "--until-eof", "--json", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)
        result = json.loads(running.communicate(timeout=60)[0])
        assert running.returncode == 0 and result["pids"] == [other.pid]
    finally:
        other.kill()
        other.wait()
    assert b"--pid" in weir.run("monitor", "--until-eof", "--", "true", status=2).stderr
