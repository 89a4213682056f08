"""A file system in user space that injects faults (tests/faultfs.c): built once, mounted for a test."""
import contextlib
import os
import pathlib
import shutil
import subprocess

import pytest

SOURCE = pathlib.Path(__file__).with_name("faultfs.c")


def build(folder):
    """Returns the program, or skips the test with the reason."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse is missing or may not be used: faults cannot be injected here")
    for tool in ("cc", "pkg-config", "fusermount3"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is missing: apt-get install gcc pkg-config fuse3")
    found = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        pytest.skip("libfuse3 is missing: apt-get install libfuse3-dev")
    program = folder / "faultfs"
    subprocess.run(["cc", "-O2", "-Wall", "-Werror", SOURCE, "-o", program, *found.stdout.split(), "-lm"], check=True)
    return program


@contextlib.contextmanager
def mounted(program, folder, mountpoint, *rules):
    mountpoint.mkdir(exist_ok=True)
    with subprocess.Popen([program, folder, mountpoint, *rules], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout.readline().strip() != "ready":
                pytest.skip("a file system cannot be mounted here: " + process.stderr.read())
            yield mountpoint
        finally:
            process.kill()  # ends the reads that hang
            process.wait(timeout=10)
            subprocess.run(["fusermount3", "-u", "-z", mountpoint], capture_output=True, check=False)
