"""What is launched never outlives what launched it: also after kill -9, also containers and network links."""
import json
import os
import pathlib
import signal
import subprocess
import time

from conftest import PROGRAM


def marked(owner):
    """The processes that process `owner` has started."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"WEIR_OWNER={owner}-".encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            pass
    return found


def devices():
    return {link["ifname"] for link in json.loads(subprocess.run(["ip", "-j", "link"], capture_output=True, check=True).stdout)}


def containers(owner):
    try:
        listed = subprocess.run(["podman", "ps", "--all", f"--filter=name=weir-{owner}-", "--format={{.Names}}"], capture_output=True, text=True)
    except FileNotFoundError:
        return []
    return listed.stdout.split()


def gone(check, seconds=30):
    until = time.monotonic() + seconds
    while check():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def test_three_architectures_give_the_same_answers_or_say_why_they_are_not_here(weir, made, tmp_path):
    out = tmp_path / "result.json"
    weir.run("compare", made[0], made[1], "--repeats", 1, "--seconds", "0.1", "--json", out)
    result = json.loads(out.read_text())
    assert result["answers_equal"]
    assert len(result["rows"]) == 10
    for row in result["rows"]:
        if row["architecture"] == "in-process":
            assert "fault" not in row
        if "fault" in row:
            assert row["n"] == 0
            assert "a network link" in row["fault"] or "a network namespace" in row["fault"] or "no container of" in row["fault"]
            continue
        assert row["n"] == 1
        assert row["throughput_images_per_s"]["mean"] > 0
        assert row["client_cpu_ms_per_image"]["mean"] > 0
        assert ("server_cpu_ms_per_image" in row) == (row["architecture"] != "in-process")


def test_nothing_outlives_a_comparison_that_is_killed(made):
    before = devices()
    running = subprocess.Popen([PROGRAM, "compare", made[0], made[1], "--repeats", "50", "--seconds", "1"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=os.setpgrp)
    try:
        assert gone(lambda: not marked(running.pid) and not containers(running.pid) and running.poll() is None, 60)
        assert running.poll() is None, "it ended before it had launched anything"
    finally:
        running.send_signal(signal.SIGKILL)
        running.wait()
    assert gone(lambda: marked(running.pid)), f"left running: {marked(running.pid)}"
    if not gone(lambda: containers(running.pid), 20):  # killed while podman was making one: the next start finds it
        subprocess.run([PROGRAM, "compare", made[0], "/no-such-pictures"], capture_output=True, check=False)
    assert not containers(running.pid)
    assert gone(lambda: devices() - before), f"left behind: {devices() - before}"
